/** What keeps spans or values until it sends them; what the API registers may stand for another one. */
interface Provider {
  forceFlush?(): Promise<void>;
  getDelegate?(): Provider;
}

/** What is registered there has to be flushed, if it is there. */
export const telemetry = Symbol.for("opentelemetry.js.api.1");

/**
 * Has an SDK of OpenTelemetry send what it has, since it does so only now and then, and the process ends. Never rejects.
 *
 * @param limitMs - for how long its receiver is waited for.
 */
export function flushTelemetry(limitMs: number): Promise<unknown> {
  // Safe: what lies there is what the API of this major version puts there.
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

/** It may throw as well. */
async function flushed(provider: Provider): Promise<void> {
  await provider.forceFlush?.();
}
