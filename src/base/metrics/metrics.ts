import type { MetricLabelsOf, MetricName } from "./metric-list.ts";

/** Label values by name. A label that is `undefined` is left out. */
export type MetricLabels = Readonly<Record<string, string | undefined>>;

/** Empty for a metric without labels. */
type GivenLabels<Labels> = keyof Labels extends never ? [] : [labels: Labels];

/**
 * Receives measured values. A runtime without a reader of metrics does not create one, so measuring
 * only costs a comparison.
 */
export interface Metrics {
  /**
   * Records a value of one of keelson's metrics: the increment of a counter, a sample of a
   * histogram, or the current value of a gauge. Never throws. A label value that is not allowed
   * becomes `other`.
   */
  record<Name extends MetricName>(
    name: Name,
    value: number,
    ...labels: GivenLabels<MetricLabelsOf<Name>>
  ): void;
  /**
   * Records a value of a metric that a feature declares.
   *
   * @returns The reason if the value was rejected, once per name.
   */
  add(name: string, value: number, labels?: MetricLabels): string | undefined;
  /** Returns the current values in Prometheus format. Absent if scraping is disabled. */
  readonly page?: (() => Promise<MetricsPage>) | undefined;
  /** Sends the values measured since the last flush. Absent if a reader fetches them. */
  readonly flush?: (() => void) | undefined;
  /** Stops periodic measurements. */
  readonly close?: (() => void) | undefined;
}

export interface MetricsPage {
  readonly text: string;
  readonly contentType: string;
}
