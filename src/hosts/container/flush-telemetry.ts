/**
 * OpenTelemetry provider that buffers spans or metrics. The API may register a proxy whose delegate
 * is the actual provider.
 */
interface Provider {
  forceFlush?(): Promise<void>;
  getDelegate?(): Provider;
}

/**
 * Global under which the OpenTelemetry API registers its providers. Without it, no flush is needed.
 */
export const telemetry = Symbol.for("opentelemetry.js.api.1");

/**
 * Flushes the OpenTelemetry SDK, which exports only at intervals, for at most `limitMs`
 * milliseconds. Never rejects.
 */
export function flushTelemetry(limitMs: number): Promise<unknown> {
  // Safe: only version 1 of the OpenTelemetry API sets this key, and it sets this shape.
  const { [telemetry]: api } = globalThis as {
    readonly [key: symbol]: { readonly metrics?: Provider; readonly trace?: Provider } | undefined;
  };
  const flushes = [api?.metrics, api?.trace].flatMap((registered) => {
    const provider = registered?.getDelegate?.() ?? registered;
    return provider?.forceFlush === undefined ? [] : [flushed(provider)];
  });
  const { promise: tooLate, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, limitMs);
  return Promise.race([Promise.allSettled(flushes), tooLate]).finally(() => clearTimeout(timer));
}

/** Turns a synchronous throw of `forceFlush` into a rejection. */
async function flushed(provider: Provider): Promise<void> {
  await provider.forceFlush?.();
}
