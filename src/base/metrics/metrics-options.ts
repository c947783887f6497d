import { type AccessRule, isAccessRule } from "../identity/access.ts";

export interface MetricsOptions {
  /** Access to `GET /metrics`, which containers serve with `prom-client`. Default: none, a 404. */
  readonly access?: AccessRule;
  /** `service` dimension in CloudWatch. Default: `dynamodb.prefix`. */
  readonly service?: string;
}

/** Checks of the options. A check returns the accepted form if the value is wrong. */
export const metricsChecks = {
  access: (value: unknown) => (isAccessRule(value) ? undefined : "a rule of `access`"),
  service: (value: unknown) =>
    /^[\w./-]{1,100}$/.test(String(value)) ? undefined : "letters, digits, `.`, `_`, `/` and `-`",
};
