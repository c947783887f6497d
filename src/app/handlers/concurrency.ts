import type { ConfigKeyHandle } from "../../parts/config/declare/key.ts";
import type { Requirement } from "./requirements.ts";

/**
 * Maximum number of runs of a job or a consumer at a time, in all processes of all hosts together:
 * numbers from 1 to 1,000, or number keys of scope `system` or `tenant`. A message above a limit
 * waits, which uses no attempt. See `docs/fairness.md`.
 */
export interface Concurrency {
  /** Of each tenant. Runs without a tenant share one limit. Default: no limit. */
  readonly perTenant?: number | ConfigKeyHandle<number>;
  /** Of all tenants together. Default: no limit. */
  readonly total?: number | ConfigKeyHandle<number>;
}

export const aConcurrency: Requirement = {
  accepts: isConcurrency,
  rule: "concurrency",
  fix: "use { perTenant: 2 } or { total: 10 }, from 1 to 1,000, or number keys",
};

function isConcurrency(given: unknown): boolean {
  const limits = Object.entries(Object(given));
  return (
    limits.some(([, limit]) => limit !== undefined) &&
    limits.every(([name, limit]) => isLimit(name, limit))
  );
}

/** A limit of `undefined` is absent. */
function isLimit(name: string, limit: unknown): boolean {
  const isNumber = Number.isInteger(limit) && Number(limit) >= 1 && Number(limit) <= 1_000;
  const isAccepted = limit === undefined || isNumber || typeof Object(limit).id === "string";
  return (name === "perTenant" || name === "total") && isAccepted;
}
