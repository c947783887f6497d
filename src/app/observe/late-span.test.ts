import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { ROOT_CONTEXT } from "@opentelemetry/api";
import { TracerProvider } from "@opentelemetry/sdk-trace";
import { expect, test } from "vitest";
import { waitFor } from "../../../test/support/wait-for.ts";
import { LateSpan } from "./late-span.ts";

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;
setFlagsFromString("--no-expose-gc");

/** A span of a run, and what tells whether the run is still in memory. */
function spanOfRun() {
  const run = { name: "GET /notes" };
  // The API's own span, which a late one stands for.
  const span = new LateSpan(
    () => new TracerProvider().getTracer("late").startSpan(run.name, {}, ROOT_CONTEXT) as never,
  );
  return { span, run: new WeakRef(run) };
}

test("a context that outlives its run, such as that of an open connection, retains only the run's span", async () => {
  const { span, run } = spanOfRun();
  const { spanId } = span.spanContext();

  await waitFor(() => {
    collect();
    expect(run.deref() === undefined).toBe(true); // the error of an `expect` of the run itself would hold it
  });
  expect(span.spanContext().spanId).toBe(spanId);
});
