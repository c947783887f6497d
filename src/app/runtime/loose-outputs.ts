import { looseAt } from "../registry/loose-output.ts";
import type { Runtime } from "./runtime.ts";

/** Maximum number of handlers in one log line, because the length of a line is bounded. */
const namesPerLine = 100;

/** Warns of `output` schemas that accept undeclared members, with the first place in each schema. */
export function warnOfLooseOutputs({ log, server }: Pick<Runtime, "log" | "server">): void {
  const loose = [...server.registry.handlers.values()].flatMap(({ name, output }) => {
    const at = output === undefined ? undefined : looseAt(output);
    return at === undefined ? [] : [{ name, at }];
  });
  for (let start = 0; start < loose.length; start += namesPerLine) {
    log.warn("output.loose", { handlers: loose.slice(start, start + namesPerLine) });
  }
}
