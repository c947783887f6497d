import { errorRows } from "./errors.ts";
import { prove } from "./row.ts";

prove(errorRows);
