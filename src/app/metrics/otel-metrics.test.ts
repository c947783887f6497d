import { expect, test } from "vitest";
import { waitFor } from "../../../test/support/wait-for.ts";
import { buildServer, serverInternals } from "../server/server.ts";
import { measureLoopDelay, openContainerMetrics } from "./metrics.ts";
import { registeredMeter } from "./otel-metrics.ts";

test("without an SDK there is no meter and nothing is measured", async () => {
  expect(registeredMeter()).toBeUndefined();
  expect(await openContainerMetrics(serverInternals(buildServer({ features: [] })))).toEqual({
    metrics: undefined,
    observer: undefined,
    missing: undefined,
  });
});

test("measures the event loop delay repeatedly until it is stopped", async () => {
  const taken: Record<string, number> = {};
  const end = measureLoopDelay(
    { record: (name, value, ..._labels) => void Object.assign(taken, { [name]: value }) },
    1,
  );
  await waitFor(() =>
    expect(taken).toEqual({
      "nodejs.eventloop.delay.p50": expect.any(Number),
      "nodejs.eventloop.delay.p99": expect.any(Number),
      "nodejs.eventloop.delay.max": expect.any(Number),
    }),
  );
  end();
});
