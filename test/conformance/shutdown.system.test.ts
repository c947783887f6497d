import { prove } from "./row.ts";
import { shutdownRows } from "./shutdown.ts";

prove(shutdownRows);
