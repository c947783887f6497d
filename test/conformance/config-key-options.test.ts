import { configKeyOptionRows } from "./config-key-options.ts";
import { prove } from "./row.ts";

prove(configKeyOptionRows);
