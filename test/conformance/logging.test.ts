import { loggingRows } from "./logging.ts";
import { prove } from "./row.ts";

prove(loggingRows);
