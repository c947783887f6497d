import { contextRows } from "./contexts.ts";
import { prove } from "./row.ts";

prove(contextRows);
