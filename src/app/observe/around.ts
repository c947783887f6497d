import type { SpanOptions, Tracer, TracerContext, TracerSpan } from "./tracer.ts";

export interface AroundOptions extends SpanOptions {
  readonly name: string;
}

/** Runs work in a new span. `fail` receives the error that the work throws. */
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
