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
