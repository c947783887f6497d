import { drainingRows } from "./draining.ts";
import { prove } from "./row.ts";

prove(drainingRows);
