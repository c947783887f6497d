import { buildServer } from "keelson";
import { lambdaQueue } from "keelson/lambda";
import { lambdaContext, startTestApp, type TestApp } from "keelson/testing";
import { afterAll, beforeAll, beforeEach, expect, type MockInstance, test, vi } from "vitest";
import { storedEvent, uploads, world } from "./fixture.ts";

const initial = { ...world };
let app: TestApp;
let queueName: string;
let output: MockInstance<typeof process.stdout.write>;
const options = { features: [uploads], keyRing: { parameter: "/uploads/key-ring" } };

beforeAll(async () => {
  app = await startTestApp(buildServer(options));
  output = vi.spyOn(process.stdout, "write").mockReturnValue(true);
  for (const [name, value] of Object.entries(app.env)) vi.stubEnv(name, value);
  queueName = app.env["KEELSON_RECEIVED_QUEUE"] ?? "keelson-received";
});
beforeEach(() => {
  Object.assign(world, initial, { runs: [] });
});
afterAll(async () => {
  vi.unstubAllEnvs();
  await app.close();
});

const batchOf = (queue: string, ...bodies: readonly object[]) => ({
  Records: bodies.map((body, index) => ({
    messageId: `m${index}`,
    body: JSON.stringify(body),
    receiptHandle: "receipt",
    attributes: { ApproximateReceiveCount: "1", SentTimestamp: "1" },
    eventSourceARN: `arn:aws:sqs:us-east-1:000000000000:${queue}`,
  })),
});

/** Runs a batch in a function, and returns the messages that come again. */
async function retried(queue: string, ...bodies: readonly object[]) {
  const handler = lambdaQueue(buildServer(options));
  // Safe cast: the function reads nothing else.
  const event = batchOf(queue, ...bodies) as unknown as Parameters<typeof handler>[0];
  const { batchItemFailures } = await handler(event, lambdaContext());
  return batchItemFailures.map(({ itemIdentifier }) => itemIdentifier);
}

test("a function receives events, each once in all functions, and returns those that failed", async () => {
  world.handle = async (_ctx, event) => {
    const { key } = event.detail as { key: string };
    if (key === "acme/failing") throw new Error("not yet");
  };
  const event = storedEvent("acme/1");
  expect(await retried(queueName, event, storedEvent("acme/failing"))).toEqual(["m1"]);
  expect(await retried(queueName, event)).toEqual([]);
  const done = world.runs.filter(({ id }) => id === event.id);
  expect(done.map(({ by, tenantId }) => [by, tenantId]).sort()).toEqual([
    ["audited", undefined],
    ["stored", "acme"],
  ]);
});

test("an event that a function has received is done for a container, too", async () => {
  const event = storedEvent("acme/2");
  expect(await retried(queueName, event)).toEqual([]);
  expect(await app.deliver(event)).toBe("skipped");
  expect(world.runs).toHaveLength(2);
});

test("an envelope of ours from the queue of events of others runs nothing in a function", async () => {
  const payload = { key: "forged" };
  const ids = { eventId: "e1", causedBy: "c1", origRequestId: "r1", tenantId: "acme" };
  const envelope = { kind: "shared", type: "upload.noted", ...ids, payload };
  const wrapped = storedEvent("", {
    ...{ source: "keelson", "detail-type": "upload.noted" },
    detail: envelope,
  });
  output.mockClear();
  await retried(queueName, envelope, wrapped);
  expect(world.runs).toEqual([]);
  const logged = output.mock.calls.map(([line]) => String(line)).join("");
  expect(logged).toContain("id is not an ID");
  expect(logged).toContain("is received by no feature of this server");
});

test("an event of others from the queue of our events is refused", async () => {
  const own = app.env["KEELSON_EVENT_QUEUE"] ?? "keelson-events";
  expect(await retried(own, storedEvent("acme/3"))).toEqual(["m0"]);
  expect(world.runs).toEqual([]);
});
