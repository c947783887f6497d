import { failed, type TracerSpan } from "./tracer.ts";

export function fail(span: TracerSpan, error: unknown, isRecorded: boolean): void {
  if (isRecorded) record(span, error);
  span.setAttribute("error.type", typeOf(error)).setStatus(failed);
}

/**
 * Records an error on a span, unless its members cannot be read. The log still has such an error.
 */
export function record(span: TracerSpan, error: unknown): void {
  try {
    span.recordException(error instanceof Error ? error : String(error));
  } catch {}
}

/** Returns the type of an error for attributes: its code, or otherwise its name. */
export function typeOf(error: unknown): string {
  try {
    const { code, name } = Object(error) as { readonly code?: unknown; readonly name?: unknown }; // safe: `Object()` allows any member access
    return String(
      [code, name].find((given) => typeof given === "string" && /^[\w.:-]{1,64}$/.test(given)) ??
        "_OTHER",
    );
  } catch {
    return "_OTHER";
  }
}
