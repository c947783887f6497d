import { eventRows } from "./events.ts";
import { prove } from "./row.ts";

prove(eventRows);
