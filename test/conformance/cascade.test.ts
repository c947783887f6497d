import { cascadeRows } from "./cascade.ts";
import { prove } from "./row.ts";

prove(cascadeRows);
