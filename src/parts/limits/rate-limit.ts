import {
  isRecord,
  kind,
  type OptionProblem,
  type OptionTable,
  oneOf,
  tableProblems,
  text,
} from "../../base/errors/option-table.ts";
import type { ConfigKeyHandle } from "../config/declare/key.ts";
import type { RateWindow } from "./rate-window.ts";

/**
 * Limit on the number of requests per window, across all processes. `Context` is the `ctx` that
 * `per` receives.
 */
export interface RateLimit<Context = never> {
  /**
   * Callers that share a number: all callers of a tenant, one user, one address (an IPv6 address by
   * its /64), all callers together, or the callers of a tenant for whom a function returns the same
   * string. A caller without a tenant or a user counts by address. `ip` is checked before the
   * token, everything else after it, without the body.
   */
  readonly per: "tenant" | "user" | "ip" | "all" | ((ctx: Context) => string | Promise<string>);
  /**
   * Number of requests per window, from 1 to 999,999,999,999,999, or the key with it, whose value is
   * rounded down; it may be 0, and a larger one counts as 999,999,999,999,999. A key that users set
   * for themselves needs `per: "user"`.
   */
  readonly requests: number | ConfigKeyHandle<number>;
  /** Fixed window, aligned in UTC. */
  readonly window: RateWindow;
  /**
   * Name in kebab case, for the response headers and the log. Default: the key's name; without a
   * key, `per` and `window`, for example `tenant-minute`.
   */
  readonly name?: string;
  /**
   * Handling of requests while the store fails: `open` lets them through, `shut` answers them with
   * 503 `overloaded`. Default `open`.
   */
  readonly onFailure?: "open" | "shut";
}

/** Structured fields have integers of at most 15 digits. */
export const largestNumber = 999_999_999_999_999;

const table: OptionTable = {
  per: kind(
    (per) => typeof per === "function" || ["tenant", "user", "ip", "all"].includes(per as never),
    '"tenant", "user", "ip", "all" or a function',
  ),
  requests: kind(
    (given) =>
      isRecord(given)
        ? Object(given["definition"]).type === "number"
        : Number.isInteger(given) && Number(given) > 0 && Number(given) <= largestNumber,
    "a whole number from 1 to 999,999,999,999,999, or the handle of a number key",
  ),
  window: oneOf(
    ["second", "minute", "hour", "day"] satisfies RateWindow[],
    '"second", "minute", "hour" or "day"',
  ),
  name: text(/^[a-z][a-z0-9-]{0,62}$/, "a name in kebab case"),
  onFailure: oneOf(["open", "shut"], "open or shut"),
};

/** Checks a limit or a list of limits. Never throws. */
export function rateLimitProblems(key: string, given: unknown): OptionProblem[] {
  return [given ?? []].flat().flatMap((limit) => limitProblems(key, limit, table));
}

/** Checks a limit of `r.rateLimit`, which is never a list, and whose name is an argument. Never throws. */
export function ownLimitProblems(key: string, given: unknown): OptionProblem[] {
  const { name: _argument, ...options } = table;
  return limitProblems(key, given, options);
}

function limitProblems(key: string, limit: unknown, options: OptionTable): OptionProblem[] {
  return [
    ...tableProblems(key, limit ?? false, options),
    ...(isRecord(limit) ? ["per", "requests", "window"] : [])
      .filter((name) => Object(limit)[name] === undefined)
      .map(
        (name): OptionProblem => ({
          key: `${key}.${name}`,
          rule: "option-missing",
          message: "it is not there",
          fix: `use ${table[name]?.(undefined)}`,
        }),
      ),
  ];
}
