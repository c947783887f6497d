import { failed, type TracerSpan } from "./tracer.ts";

/** A span's work has failed. */
export function fail(span: TracerSpan, error: unknown, isRecorded: boolean): void {
  if (isRecorded) record(span, error);
  span.setAttribute("error.type", typeOf(error)).setStatus(failed);
}

/** An error whose members cannot be read is not recorded: it is logged all the same. */
export function record(span: TracerSpan, error: unknown): void {
  try {
    span.recordException(error instanceof Error ? error : String(error));
  } catch {}
}

/** The type of an error as attributes have it: the code that it says, or its name. */
export function typeOf(error: unknown): string {
  try {
    const { code, name } = Object(error) as { readonly code?: unknown; readonly name?: unknown }; // safe: any member of an object may be read
    return String(
      [code, name].find((given) => typeof given === "string" && /^[\w.:-]{1,64}$/.test(given)) ??
        "_OTHER",
    );
  } catch {
    return "_OTHER";
  }
}
