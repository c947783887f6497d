import type { RunObserver } from "./run-observer.ts";

/** Whether a tracer is registered. OpenTelemetry's API keeps registered SDKs under this symbol. */
export function isTracerRegistered(): boolean {
  // The cast is safe: any member of an object may be read.
  const api = (globalThis as { readonly [key: symbol]: unknown })[
    Symbol.for("opentelemetry.js.api.1")
  ];
  return Object(api).trace !== undefined;
}

export const spanEnds: RunObserver = {
  began: () => undefined,
  ended: (run, end) => run.spans?.ended(end),
};
