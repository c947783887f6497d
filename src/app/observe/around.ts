import {
  failed,
  type SpanOptions,
  type Tracer,
  type TracerContext,
  type TracerSpan,
} from "./tracer.ts";

export interface AroundOptions extends SpanOptions {
  readonly name: string;
}

export async function around<Result>(
  tracer: Tracer,
  context: TracerContext,
  { name, ...options }: AroundOptions,
  work: (span: TracerSpan) => Promise<Result>,
  fail: (span: TracerSpan, error: unknown) => void,
  within: (context: TracerContext) => TracerContext = (same) => same,
): Promise<Result> {
  const span = tracer.start(name, options, context);
  try {
    return await tracer.within(within(tracer.withSpan(context, span)), () => work(span));
  } catch (error) {
    fail(span, error);
    throw error;
  } finally {
    span.end();
  }
}

export function fail(span: TracerSpan, error: unknown, isRecorded: boolean): void {
  if (isRecorded) record(span, error);
  span.setAttribute("error.type", typeOf(error)).setStatus(failed);
}

export function record(span: TracerSpan, error: unknown): void {
  try {
    span.recordException(error instanceof Error ? error : String(error));
  } catch {} // the log has such an error
}

/** Returns the code of an error, or otherwise its name. */
export function typeOf(error: unknown): string {
  try {
    const { code, name } = Object(error) as { readonly code?: unknown; readonly name?: unknown }; // safe: only read
    return String(
      [code, name].find((given) => typeof given === "string" && /^[\w.:-]{1,64}$/.test(given)) ??
        "_OTHER",
    );
  } catch {
    return "_OTHER";
  }
}
