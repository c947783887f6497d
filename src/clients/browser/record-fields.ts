import { metricNames, renaming } from "../../base/log/record-names.ts";

/** What context and data cannot be named, at the server too. */
const fixed: readonly string[] = ["level", "msg", "time", "clientTime", ...metricNames];

/** Context and data as members of one record, named as the server's logger names them. */
export function recordFields(
  context: Record<string, unknown>,
  given: Record<string, unknown> | null | undefined,
) {
  const data = given ?? {}; // plain JavaScript gives null, too
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
