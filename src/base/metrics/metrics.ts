import { kind } from "../errors/option-table.ts";
import { type AccessRule, isAccessRule } from "../identity/access.ts";
import type { Logger } from "../log/logger.ts";
import { type Handle, type LabelsOf, nameOf } from "../types/handles.ts";
import type { MetricLabelsOf, MetricName } from "./metric-list.ts";

/** Values by label; `undefined` omits a label. */
export type MetricLabels = Readonly<Record<string, string | undefined>>;

type GivenLabels<Labels> = keyof Labels extends never ? [] : [labels: Labels];

/** Receives values. Absent if nothing reads metrics, so that measuring costs only a comparison. */
export interface Metrics {
  /**
   * Increments a counter, samples a histogram or sets a gauge. A label value that is not allowed
   * becomes `other`. Never throws.
   */
  record<Name extends MetricName>(
    name: Name,
    value: number,
    ...labels: GivenLabels<MetricLabelsOf<Name>>
  ): void;
  /** Records a value of a feature's metric. Returns, once per name, why the value was rejected. */
  add(name: string, value: number, labels?: MetricLabels): string | undefined;
  /** Current values in Prometheus format. Absent if scraping is disabled. */
  readonly page?: (() => Promise<MetricsPage>) | undefined;
  /** Sends the values since the last flush. Absent if a reader fetches them. */
  readonly flush?: (() => void) | undefined;
  readonly close?: (() => void) | undefined;
}

export interface MetricsPage {
  readonly text: string;
  readonly contentType: string;
}

/** `metrics` option of `buildServer`. */
export interface MetricsOptions {
  /** Access to `GET /metrics`, which containers serve with `prom-client`. Default: none, a 404. */
  readonly access?: AccessRule;
  /** `service` dimension in CloudWatch. Default: `dynamodb.prefix`. */
  readonly service?: string;
}

export const metricsChecks = {
  access: kind(isAccessRule, "a rule of `access`"),
  service: kind(
    (value) => /^[\w./-]{1,100}$/.test(String(value)),
    "letters, digits, `.`, `_`, `/` and `-`",
  ),
};

/** Metrics of the application. */
export interface MetricsAccessor {
  /**
   * Adds to a counter declared with `r.metric`, or samples a histogram. The metric is exported with
   * keelson's metrics. Never throws: a wrong call logs `metrics.ignored`, once per name.
   *
   * @param metric - the metric's handle, or its full name, `<feature>.<entity>.<name>`.
   * @param value - from 0 to 2^360.
   * @param labels - an undeclared value becomes `other`; an undeclared label is dropped.
   */
  readonly add: <Metric extends Handle<"metric"> | string>(
    metric: Metric,
    value: number,
    labels?: LabelsOf<Metric>,
  ) => void;
}

export function ownMetrics(metrics: Metrics | undefined, log: Logger): MetricsAccessor {
  return {
    add: (metric, value, labels) => {
      const name = nameOf(metric);
      // Safe cast: every metric's labels are strings, and others are dropped.
      const problem = metrics?.add(name, value, labels as MetricLabels | undefined);
      if (problem === undefined) return;
      log.warn("metrics.ignored", { metric: name.slice(0, 200), reason: problem });
    },
  };
}
