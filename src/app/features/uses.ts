import type { BootProblem } from "../../base/errors/boot.ts";
import { isRecord, type Report } from "../../base/errors/option-table.ts";
import { nearest, quoted } from "../../base/errors/quoted.ts";
import { knownOptions, problemsOf } from "../handlers/requirements.ts";

/** Access of a feature to another feature's tables. `write` includes reading. */
export type TableUse = "read" | "write";

/** Options of a feature. */
export interface FeatureOptions {
  /**
   * Other features whose tables this feature's handlers use, also through queries run by
   * `ctx.query`: `{ orders: "read" }`. Generated roles allow access to no others. Default: none.
   */
  readonly uses?: Readonly<Record<string, TableUse>>;
}

export function featureUses(options: unknown, report: Report): ReadonlyMap<string, TableUse> {
  if (options === undefined) return new Map();
  const key = "defineFeature";
  if (!isRecord(options)) {
    const message = "the options are not an object";
    report({ key, rule: "option-type", message, fix: "pass { uses }" });
    return new Map();
  }
  const { uses = {} } = knownOptions(key, options, ["uses"], report);
  const problem = problemsOf("uses", report);
  if (!isRecord(uses)) {
    const fix = 'pass an object by the names of features, such as { orders: "read" }';
    problem("uses", `\`uses\` is ${quoted(uses)}`, fix);
    return new Map();
  }
  for (const [name, use] of Object.entries(uses)) {
    if (use === "read" || use === "write") continue;
    const message = `it uses ${quoted(name)} as ${quoted(use)}`;
    problem("uses-value", message, 'use "read" or "write"');
  }
  return new Map(Object.entries(uses) as [string, TableUse][]); // safe: other values are reported, and a server with problems is never built
}

export function useProblems(
  features: readonly { readonly name: string; readonly uses: ReadonlyMap<string, TableUse> }[],
): BootProblem[] {
  const names = features.map(({ name }) => name);
  return features.flatMap(({ name: feature, uses }) =>
    [...uses.keys()].flatMap((used) => {
      const found = useProblem(feature, used, names);
      return found === undefined ? [] : [{ feature, key: "uses", ...found }];
    }),
  );
}

function useProblem(
  feature: string,
  used: string,
  names: readonly string[],
): Pick<BootProblem, "rule" | "message" | "fix"> | undefined {
  if (used === feature) {
    const fix = "leave it out: its own tables are its own";
    return { rule: "uses-itself", message: "it uses itself", fix };
  }
  if (names.includes(used)) return undefined;
  const meant = nearest(used, names);
  return {
    rule: "uses-unknown",
    message: `it uses ${quoted(used)}, which is no feature of this server`,
    fix: meant === undefined ? `the server has ${names.join(", ")}` : `did you mean ${meant}?`,
  };
}
