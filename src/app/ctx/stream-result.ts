import { type EarlyEnd, itemTexts, mediaTypes } from "../../parts/http/event-stream.ts";
import { type Reply, reply } from "../../parts/http/reply.ts";
import { isReply } from "../../parts/http/response.ts";
import type { StreamForm } from "../../parts/http/streamed-output.ts";
import type { RequestScope } from "../runtime/scope.ts";

/**
 * Gives the run of a stream its own signal, which also aborts when the stream ends before its source.
 * Returns a function that turns the checked result into a reply with its items as encoded lines. Any
 * other result, such as a reply without a body, stays unchanged.
 */
export function runStream(form: StreamForm, scope: RequestScope): (result: unknown) => unknown {
  const ended = new AbortController();
  const { signal } = scope;
  scope.runSignal = signal === undefined ? ended.signal : AbortSignal.any([signal, ended.signal]);
  const end: EarlyEnd = { watch: endOf(scope), abort: () => ended.abort() };
  return (result) => streamedReply(form, result, end);
}

function streamedReply(form: StreamForm, result: unknown, end: EarlyEnd): unknown {
  const { body, ...options }: Partial<Reply<unknown>> = isReply(result) ? result : { body: result };
  if (!isIterable(body)) return result;
  const headers = {
    "cache-control": "no-store",
    ...options.headers,
    "content-type": mediaTypes[form.kind],
  };
  return reply(itemTexts(form, body, end), { ...options, headers });
}

export function isIterable(body: unknown): body is AsyncIterable<unknown> {
  return Symbol.asyncIterator in Object(body);
}

/** Time before the end of a function's time at which a stream ends, in milliseconds. */
const endEarlyMs = 1_000;

/** Ends a stream when the process drains, or its time is nearly over. */
function endOf({ runtime, deadlineMs }: RequestScope): EarlyEnd["watch"] {
  return (end) => {
    const { draining } = runtime.lifecycle;
    if (draining.aborted) end();
    draining.addEventListener("abort", end);
    const leftMs = deadlineMs === undefined ? undefined : deadlineMs - Date.now();
    const timer =
      leftMs === undefined
        ? undefined
        : setTimeout(end, Math.max(leftMs - endEarlyMs, leftMs / 2)).unref();
    return () => {
      clearTimeout(timer);
      draining.removeEventListener("abort", end);
    };
  };
}
