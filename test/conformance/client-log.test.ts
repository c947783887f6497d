import { clientLogRows } from "./client-log.ts";
import { prove } from "./row.ts";

prove(clientLogRows);
