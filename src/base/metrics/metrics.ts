import type { MetricLabelsOf, MetricName } from "./metric-list.ts";

/** Values of labels, by name. One that is `undefined` is left out. */
export type MetricLabels = Readonly<Record<string, string | undefined>>;

/** Nothing for a metric without labels. */
type GivenLabels<Labels> = keyof Labels extends never ? [] : [labels: Labels];

/** Takes what is measured. A runtime on which nobody listens has none, so that measuring costs a comparison. */
export interface Metrics {
  /**
   * Takes a value of one of keelson's metrics: what a counter grows by, what a histogram counts, what a gauge shows. Never throws.
   * A label that is none of those it may have becomes `other`.
   */
  record<Name extends MetricName>(
    name: Name,
    value: number,
    ...labels: GivenLabels<MetricLabelsOf<Name>>
  ): void;
  /**
   * The same, of a metric that a feature declares.
   *
   * @returns what is wrong with it, where it was not taken: once for each name.
   */
  add(name: string, value: number, labels?: MetricLabels): string | undefined;
  /** The values of the moment as Prometheus reads them; absent where nobody may. */
  readonly page?: (() => Promise<MetricsPage>) | undefined;
  /** Sends what was measured since the last time, where nobody comes to read it. */
  readonly flush?: (() => void) | undefined;
  /** Measures nothing more by itself. */
  readonly close?: (() => void) | undefined;
}

/** What a scrape reads. */
export interface MetricsPage {
  readonly text: string;
  readonly contentType: string;
}
