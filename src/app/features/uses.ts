import type { BootProblem } from "../../base/errors/boot.ts";
import { type RawOptions, type Report, unknownOptions } from "../../base/errors/declared.ts";
import { nearest } from "../../base/errors/nearest.ts";
import { quoted } from "../../base/errors/quoted.ts";

/** Access of a feature to another feature's tables. `write` includes reading. */
export type TableUse = "read" | "write";

/** Options of a feature. */
export interface FeatureOptions {
  /**
   * Features whose tables this feature's handlers use, in addition to its own:
   * `{ orders: "read" }`. Generated roles allow no other tables. Queries run by `ctx.query` count.
   * Default: none.
   */
  readonly uses?: Readonly<Record<string, TableUse>>;
}

const tableUses: readonly unknown[] = ["read", "write"] satisfies readonly TableUse[];

/** Registers the features that a feature uses. Boot checks that they exist. */
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
  return new Map(Object.entries(uses) as [string, TableUse][]); // safe: other values are already reported, and a server with problems is never built
}

/** Reports features that use themselves or a feature that the server does not have. */
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
