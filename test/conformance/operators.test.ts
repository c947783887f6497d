import { operatorRows } from "./operators.ts";
import { prove } from "./row.ts";

prove(operatorRows);
