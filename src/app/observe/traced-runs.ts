import type { RunObserver } from "./run-observer.ts";

/**
 * Reports whether a tracer is registered. OpenTelemetry's API keeps registered SDKs under this
 * symbol.
 */
export function isTracerRegistered(): boolean {
  // Safe: reading any member of `globalThis` is allowed.
  const api = (globalThis as { readonly [key: symbol]: unknown })[
    Symbol.for("opentelemetry.js.api.1")
  ];
  return Object(api).trace !== undefined;
}

/** Observer that ends the span of each run. */
export const spanEnds: RunObserver = {
  began: () => undefined,
  ended: (run, end) => run.spans?.ended(end),
};
