// Measures what writes to stdout, in a process of its own whose stdout is /dev/null; started by `runs.ts`.
import { lineResults } from "./lines.ts";
import { wrappedResults } from "./wrapped.ts";

process.send?.([...(await wrappedResults()), ...(await lineResults())]);
process.disconnect?.();
process.exit();
