import type { BootProblem } from "../../base/errors/boot.ts";
import { isRecord, type Report } from "../../base/errors/option-table.ts";
import { nearest, quoted } from "../../base/errors/quoted.ts";
import { rateLimitProblems } from "../../parts/limits/rate-limit.ts";
import type { RateLimits } from "../handlers/handler.ts";
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
  /** Limits that all routes of the feature share. See `docs/rate-limits.md`. Default: none. */
  readonly rateLimit?: RateLimits;
}

export function featureUses(options: unknown, report: Report): ReadonlyMap<string, TableUse> {
  const none = new Map<string, TableUse>();
  if (options === undefined) return none;
  const key = "defineFeature";
  if (!isRecord(options)) {
    const message = "the options are not an object";
    report({ key, rule: "option-type", message, fix: "pass { uses, rateLimit }" });
    return none;
  }
  const { uses = {}, rateLimit } = knownOptions(key, options, ["uses", "rateLimit"], report);
  rateLimitProblems("rateLimit", rateLimit).map(report);
  const problem = problemsOf("uses", report);
  if (!isRecord(uses)) {
    const fix = 'pass an object by the names of features, such as { orders: "read" }';
    problem("uses", `\`uses\` is ${quoted(uses)}`, fix);
    return none;
  }
  for (const [name, use] of Object.entries(uses)) {
    const message = `it uses ${quoted(name)} as ${quoted(use)}`;
    if (use !== "read" && use !== "write") problem("uses-value", message, 'use "read" or "write"');
  }
  return new Map(Object.entries(uses) as [string, TableUse][]); // safe: other values are reported, and a server with problems is never built
}

export function useProblems(
  features: readonly { readonly name: string; readonly uses: ReadonlyMap<string, TableUse> }[],
): BootProblem[] {
  const names = new Set(features.map(({ name }) => name));
  return features.flatMap(({ name: feature, uses }) =>
    [...uses.keys()].flatMap((used): BootProblem[] => {
      const problem = { feature, key: "uses" };
      if (used === feature) {
        const fix = "leave it out: its own tables are its own";
        return [{ ...problem, rule: "uses-itself", message: "it uses itself", fix }];
      }
      if (names.has(used)) return [];
      const message = `it uses ${quoted(used)}, which is not a feature of this server`;
      const meant = nearest(used, names);
      const fix =
        meant === undefined ? `the server has ${[...names].join(", ")}` : `did you mean ${meant}?`;
      return [{ ...problem, rule: "uses-unknown", message, fix }];
    }),
  );
}
