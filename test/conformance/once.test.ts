import { onceRows } from "./once.ts";
import { prove } from "./row.ts";

prove(onceRows);
