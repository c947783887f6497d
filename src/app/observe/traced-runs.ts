import type { RunObserver } from "./run-observer.ts";

/** OpenTelemetry's API keeps there what an SDK has registered itself with. */
export function isTracerRegistered(): boolean {
  // Safe: any member of it may be read.
  const api = (globalThis as { readonly [key: symbol]: unknown })[
    Symbol.for("opentelemetry.js.api.1")
  ];
  return Object(api).trace !== undefined;
}

/** Ends the span of a run. */
export const spanEnds: RunObserver = {
  began: () => undefined,
  ended: (run, end) => run.spans?.ended(end),
};
