import { configKeyRows } from "./config-keys.ts";
import { prove } from "./row.ts";

prove(configKeyRows);
