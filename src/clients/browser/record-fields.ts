import { metricNames, renaming } from "../../base/log/record-names.ts";

/** Names that context and data cannot use, as on the server. */
const fixed: readonly string[] = ["level", "msg", "time", "clientTime", ...metricNames];

export function recordFields(
  context: Record<string, unknown>,
  given: Record<string, unknown> | null | undefined,
) {
  const data = given ?? {}; // plain JavaScript may pass null
  const present = Object.entries(context).filter(([, value]) => value !== undefined);
  const contextName = renaming("context", Object.keys(context), (name) => fixed.includes(name));
  const written = present.map(([name, value]) => [contextName(name), value] as const);
  const taken = new Set([...fixed, ...written.map(([name]) => name)]);
  const dataName = renaming("data", Object.keys(data), (name) => taken.has(name));
  return Object.fromEntries([
    ...written,
    ...Object.entries(data).map(([name, value]) => [dataName(name), value] as const),
  ]);
}
