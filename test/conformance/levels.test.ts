import { levelRows } from "./levels.ts";
import { prove } from "./row.ts";

prove(levelRows);
