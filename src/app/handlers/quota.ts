import { isRecord, type Report } from "../../base/errors/option-table.ts";
import { quoted } from "../../base/errors/quoted.ts";
import type { User } from "../../base/identity/access.ts";
import { isZoneName } from "../../base/process/time-zone.ts";
import type { ConfigKeyHandle } from "../../parts/config/declare/key.ts";
import type { QuotaChange, QuotaStore } from "../../parts/limits/quota-change.ts";
import type { QuotaStatus } from "../../parts/limits/quota-error.ts";
import type { QuotaWindow } from "../../parts/limits/quota-period.ts";
import type { PipelineContext } from "./pipeline-context.ts";
import {
  isWord,
  knownOptions,
  named,
  problemsOf,
  type Requirements,
  required,
  requireOptions,
} from "./requirements.ts";

/** Options of a quota. */
export interface QuotaOptions {
  /** Most that a tenant may use in a period: a whole number from 0, or a number key. */
  readonly limit: number | ConfigKeyHandle<number>;
  /** Period after which the usage starts at 0 again. `forever` never starts again. */
  readonly window: QuotaWindow;
  /** IANA time zone in which days and months start. Default `UTC`. */
  readonly timeZone?: string;
  /** Status of `quota_exceeded`: 429, or 402 if more can be bought. Default 429. */
  readonly status?: QuotaStatus;
}

/** Usage of a tenant in the current period. */
export interface QuotaUsage {
  readonly used: number;
  readonly limit: number;
  /** End of the period; `undefined` with `window: "forever"`. */
  readonly resetsAt: Date | undefined;
}

/** The part of a `ctx` that a quota reads. */
export type QuotaContext = Pick<PipelineContext, "config"> & {
  readonly user: Pick<User, "tenantId">;
};

/** A declared quota, as handlers use it. */
export interface Quota {
  /** Full name: `files.storage`. */
  readonly name: string;
  /**
   * Counts with the commit of the run: if the tenant would use more than its limit, the whole commit
   * fails with `quota_exceeded`. A negative number gives back, down to 0. Several calls of a commit
   * are one of its 100 items.
   * @param number - a whole number.
   * @throws TypeError for any other number, and for a `ctx` without a tenant; Error in a query, and
   * after the commit; FrameworkError `config_unavailable` if the limit cannot be read.
   * @example
   * await storage.add(ctx, file.sizeMb);
   * return ctx.commit([{ Put: { TableName: table.name, Item } }], file);
   */
  readonly add: (ctx: QuotaContext, number: number) => Promise<void>;
  /**
   * Sets the usage with the commit of the run, as a correction. It may be above the limit.
   * @param used - a whole number from 0.
   * @throws the errors of `add`.
   */
  readonly set: (ctx: QuotaContext, used: number) => Promise<void>;
  /**
   * Reads the usage consistently. Changes that wait for the commit of the run do not count yet.
   * @throws the errors of `add` for the `ctx` and the limit.
   */
  readonly get: (ctx: QuotaContext) => Promise<QuotaUsage>;
}

export interface QuotaDeclaration extends Required<QuotaOptions> {
  readonly feature: string;
  /** Full name: `files.storage`. */
  readonly name: string;
}

/** Member of a `ctx` that its quotas use. */
export const quotaUse: unique symbol = Symbol("keelson.quotaUse");

export interface QuotaUse {
  readonly nowMs: number;
  count(quota: string, change: () => Promise<QuotaChange>): Promise<void>;
  store(): Promise<QuotaStore>;
}

const requirements: Requirements = {
  limit: required({
    accepts: (limit) => isLimit(limit) || isNumberKey(limit),
    rule: "quota-limit",
    wrong: (limit) => `is ${quoted(limit)}, neither a whole number from 0 nor a key of numbers`,
    fix: "use a number, or the handle of a number key of the scope system or tenant",
  }),
  window: required({
    accepts: (window) => ["day", "month", "forever"].includes(window as never),
    rule: "quota-window",
    fix: 'use "day", "month" or "forever"',
  }),
  timeZone: {
    accepts: isZoneName,
    rule: "quota-time-zone",
    fix: 'use an IANA name, for example "Europe/Berlin"',
  },
  status: {
    accepts: (status) => status === 429 || status === 402,
    rule: "quota-status",
    fix: "use 429, or 402 if more can be bought",
  },
};

export function quota(
  feature: string,
  name: string,
  options: unknown,
  report: Report,
): QuotaDeclaration {
  const key = `quota ${named(name)}`;
  const problem = problemsOf(key, report);
  const given = knownOptions(key, options, Object.keys(requirements), report);
  if (!isWord(name)) {
    const fix = "name it with lower-case letters, digits and hyphens, beginning with a letter";
    problem("quota-name", `quota name ${quoted(name)} is not in kebab case`, fix);
  }
  requireOptions(given, requirements, problem);
  // Safe cast: wrong types are reported, and a server with problems is never built.
  const { limit, window, timeZone = "UTC", status = 429 } = given as unknown as QuotaOptions;
  return { feature, name: `${feature}.${named(name)}`, limit, window, timeZone, status };
}

function isLimit(limit: unknown): boolean {
  return Number.isSafeInteger(limit) && Number(limit) >= 0;
}

/** A user's own value must not decide about the whole tenant. */
function isNumberKey(limit: unknown): boolean {
  const { type, scope } =
    isRecord(limit) && isRecord(limit["definition"]) ? limit["definition"] : {};
  return type === "number" && scope !== "user";
}
