import { type AccessRule, isAccessRule } from "../../base/identity/access.ts";

/** What is measured, and who reads it. */
export interface MetricsOptions {
  /** Who may read `GET /metrics` of a container, which takes `prom-client`. Default: nobody, it is a 404. */
  readonly access?: AccessRule;
  /** The dimension `service` in CloudWatch. Default: `dynamodb.prefix`. */
  readonly service?: string;
}

/** What each of them may be. */
export const metricsChecks = {
  access: (value: unknown) => (isAccessRule(value) ? undefined : "a rule of `access`"),
  service: (value: unknown) =>
    /^[\w./-]{1,100}$/.test(String(value)) ? undefined : "letters, digits, `.`, `_`, `/` and `-`",
};
