import { type AccessRule, isAccessRule } from "../identity/access.ts";

/** Options of metrics. */
export interface MetricsOptions {
  /**
   * Access rule of `GET /metrics`, which containers serve with `prom-client`. Default: no access,
   * and the route is a 404.
   */
  readonly access?: AccessRule;
  /** The `service` dimension in CloudWatch. Default: `dynamodb.prefix`. */
  readonly service?: string;
}

/** Checks of the options. Each returns the accepted form if a value is invalid. */
export const metricsChecks = {
  access: (value: unknown) => (isAccessRule(value) ? undefined : "a rule of `access`"),
  service: (value: unknown) =>
    /^[\w./-]{1,100}$/.test(String(value)) ? undefined : "letters, digits, `.`, `_`, `/` and `-`",
};
