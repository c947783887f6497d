import { looseAt } from "../registry/loose-output.ts";
import type { Runtime } from "./runtime.ts";

/** How many handlers a line names: lines are bounded. */
const namesPerLine = 100;

/** Warns of handlers whose `output` lets through what it does not declare, with where it does. */
export function warnOfLooseOutputs({ log, server }: Pick<Runtime, "log" | "server">): void {
  const loose = [...server.registry.handlers.values()].flatMap(({ name, output }) => {
    const at = output === undefined ? undefined : looseAt(output);
    return at === undefined ? [] : [{ name, at }];
  });
  for (let start = 0; start < loose.length; start += namesPerLine) {
    log.warn("output.loose", { handlers: loose.slice(start, start + namesPerLine) });
  }
}
