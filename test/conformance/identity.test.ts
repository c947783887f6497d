import { identityRows } from "./identity.ts";
import { prove } from "./row.ts";

prove(identityRows);
