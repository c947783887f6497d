import type { BootProblem } from "../../base/errors/boot.ts";
import { nearest } from "../../base/errors/nearest.ts";
import { quoted } from "../../base/errors/quoted.ts";
import { type RawOptions, type Report, unknownOptions } from "./declare.ts";

/** What a feature does with another's tables: `write` reads them too. */
export type TableUse = "read" | "write";

/** Options of a feature. */
export interface FeatureOptions {
  /**
   * Whose tables its handlers reach beside its own, by the feature's name: `{ orders: "read" }`. Generated roles allow no
   * other. A query that is run by `ctx.query` counts. Default: none.
   */
  readonly uses?: Readonly<Record<string, TableUse>>;
}

const tableUses: readonly unknown[] = ["read", "write"] satisfies readonly TableUse[];

/** Registers what a feature uses; whether such features are there is known at boot. */
export function featureUses(
  options: RawOptions | undefined,
  report: Report,
): ReadonlyMap<string, TableUse> {
  if (options === undefined) return new Map();
  if (!isRecord(options)) {
    report({
      key: "defineFeature",
      rule: "option-type",
      message: "the options are not an object",
      fix: "pass { uses }",
    });
    return new Map();
  }
  unknownOptions("defineFeature", options, ["uses"], report);
  const { uses = {} } = options;
  if (!isRecord(uses)) {
    const fix = 'pass an object by the names of features, such as { orders: "read" }';
    report({ key: "uses", rule: "uses", message: `\`uses\` is ${quoted(uses)}`, fix });
    return new Map();
  }
  for (const [name, use] of Object.entries(uses)) {
    if (tableUses.includes(use)) continue;
    report({
      key: "uses",
      rule: "uses-value",
      message: `it uses ${quoted(name)} as ${quoted(use)}`,
      fix: 'use "read" or "write"',
    });
  }
  return new Map(Object.entries(uses) as [string, TableUse][]); // safe: what is neither was reported, and such a server is never built
}

/** Features that use themselves, or one that the server does not have. */
export function useProblems(
  features: readonly { readonly name: string; readonly uses: ReadonlyMap<string, TableUse> }[],
): BootProblem[] {
  const names = features.map(({ name }) => name);
  const problem = (feature: string, rule: string, message: string, fix: string) => ({
    feature,
    key: "uses",
    rule,
    message,
    fix,
  });
  return features.flatMap(({ name: feature, uses }) =>
    [...uses.keys()].flatMap((used) => {
      if (used === feature)
        return [
          problem(
            feature,
            "uses-itself",
            "it uses itself",
            "leave it out: its own tables are its own",
          ),
        ];
      if (names.includes(used)) return [];
      const meant = nearest(used, names);
      const fix =
        meant === undefined ? `the server has ${names.join(", ")}` : `did you mean ${meant}?`;
      return [
        problem(
          feature,
          "uses-unknown",
          `it uses ${quoted(used)}, which is no feature of this server`,
          fix,
        ),
      ];
    }),
  );
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
