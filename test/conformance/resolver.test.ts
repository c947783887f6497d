import { resolverRows } from "./resolver.ts";
import { prove } from "./row.ts";

prove(resolverRows);
