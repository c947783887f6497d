// Events with two consumers: one waits for a limit while the other fails or has finished.
import { EventBridgeClient, PutEventsCommand } from "@aws-sdk/client-eventbridge";
import { SQSClient } from "@aws-sdk/client-sqs";
import { buildServer, defineFeature, FrameworkError, PermanentError } from "keelson";
import { startTestApp, type TestApp } from "keelson/testing";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { z } from "zod";
import * as sdk from "../../src/aws/clients/messaging-sdk.ts";
import { openDeadLetters } from "../../src/aws/messaging/dead-letters.ts";
import { sqsQueue } from "../../src/aws/messaging/sqs-queue.ts";
import { startWatchedApp } from "../../src/tools/testing/app/test-app.ts";

/** Next runs of the consumers, and their runs so far. */
interface World {
  /** Runs that still have to wait. */
  waits: number;
  /** Runs of the consumer that waited, which then fail. */
  flaws: number;
  flaw: Error;
  failure: Error | undefined;
  /** Runs of the other consumer that fail with it. */
  failures: number;
  readonly runs: string[];
}
const initial = {
  waits: 0,
  flaws: 0,
  flaw: new Error("not yet"),
  failure: undefined,
  failures: Number.POSITIVE_INFINITY,
} as const;
const world: World = { ...initial, runs: [] };

function waits(name: string): void {
  if (world.waits > 0) {
    world.waits -= 1;
    const headers = { "retry-after": "1" };
    throw new FrameworkError("too_many_requests", "later", { headers });
  }
  world.runs.push(name);
  world.flaws -= 1;
  if (world.flaws >= 0) throw world.flaw;
}

function fails(name: string): void {
  world.runs.push(name);
  world.failures -= 1;
  if (world.failure !== undefined && world.failures >= 0) throw world.failure;
}

const input = z.object({ id: z.string() });
const of = { source: "shop", detailType: "Order Placed", input };
const orders = defineFeature("orders", (r) => {
  const placed = r.event("order.placed", input);
  r.on(placed, { name: "waits", handler: () => waits("waits") });
  r.on(placed, { name: "fails", handler: () => fails("fails") });
  r.write("order.place", {
    handler: async (ctx, id) => {
      await ctx.publish(placed, { id: String(id) });
    },
  });
  r.receive("sold.waits", { ...of, handler: () => waits("waits") });
  r.receive("sold.fails", { ...of, id: ({ detail }) => detail.id, handler: () => fails("fails") });
});

let app: TestApp;
let sqs: SQSClient;
beforeAll(async () => {
  app = await startTestApp(buildServer({ features: [orders] }));
  sqs = new SQSClient(accountOf(app));
});
afterEach(() => {
  Object.assign(world, initial, { runs: [] });
});
afterAll(async () => {
  sqs.destroy();
  await app.close();
});

function accountOf({ env }: TestApp) {
  const { AWS_ENDPOINT_URL: endpoint = "", AWS_REGION: region = "" } = env;
  return { endpoint, region, credentials: { accessKeyId: "test", secretAccessKey: "test" } };
}

const kinds = [
  ["events", "keelson-events"],
  ["received events", "keelson-received"],
] as const;
type Kind = (typeof kinds)[number][0];

async function put(kind: Kind, to = app): Promise<void> {
  const id = crypto.randomUUID();
  if (kind === "events") {
    await to.call("orders.order.place", id as never, { as: { id: "ann", tenantId: "acme" } });
    return;
  }
  const entry = { Source: of.source, DetailType: of.detailType, Detail: JSON.stringify({ id }) };
  const bus = new EventBridgeClient(accountOf(to));
  await bus.send(new PutEventsCommand({ Entries: [entry] }));
  bus.destroy();
}

/** Processes until nothing is left. Returns the error for dead letters. */
const settled = (of = app) => of.settled().catch((error: unknown) => String(error));
const runsOf = (name: string) => world.runs.filter((one) => one === name).length;
const deadLettered = (from: number) =>
  app.logs.slice(from).filter(({ msg }) => msg === "queue.dead_lettered");

/** Moves all dead letters back: events of others unchanged, like SQS's own redrive. */
async function moveBack(kind: Kind, queueName: string): Promise<number> {
  const queue = sqsQueue(sdk, sqs, queueName);
  const dead = await openDeadLetters(sqs, queue);
  let moved = 0;
  for await (const letters of dead?.read() ?? [])
    for (const letter of letters) {
      if (kind === "events") await dead?.moveBack(letter);
      else {
        await queue.sendLater(letter.body, letter.group, 0);
        await dead?.remove(letter);
      }
      moved += 1;
    }
  return moved;
}

test.each(kinds)(
  "of %s, a consumer waits for as long as it has to while another one uses up its attempts",
  async (kind, queueName) => {
    const from = app.logs.length;
    Object.assign(world, { waits: 8, failure: new Error("no paper") });
    await put(kind);
    expect(await settled()).toContain("in the dead-letter queue");
    expect(world.waits).toBe(0);
    expect(runsOf("waits")).toBe(1);
    expect(runsOf("fails")).toBe(5);
    expect(deadLettered(from)).toMatchObject([{ reason: "no paper" }]);

    world.failure = undefined;
    world.runs.length = 0;
    expect(await moveBack(kind, queueName)).toBe(1);
    expect(await settled()).toBeUndefined();
    expect(world.runs).toEqual(["fails"]);
  },
);

test.each(kinds)(
  "of %s, a permanent failure does not run again while another one waits",
  async (kind, queueName) => {
    const from = app.logs.length;
    Object.assign(world, { waits: 5, failure: new PermanentError("no such order") });
    await put(kind);
    expect(await settled()).toContain("in the dead-letter queue");
    expect(world.runs.toSorted()).toEqual(["fails", "waits"]);
    expect(deadLettered(from)).toMatchObject([{ reason: "no such order" }]);

    world.failure = undefined;
    world.runs.length = 0;
    expect(await moveBack(kind, queueName)).toBe(1);
    expect(await settled()).toBeUndefined();
    expect(world.runs).toEqual(["fails"]);
  },
);

test.each(kinds)(
  "of %s, a consumer that has waited has all its attempts",
  async (kind, queueName) => {
    const from = app.logs.length;
    Object.assign(world, { waits: 7, flaws: 4, failure: new Error("no paper") });
    await put(kind);
    expect(await settled()).toContain("in the dead-letter queue");
    expect(runsOf("waits")).toBe(5);
    expect(runsOf("fails")).toBe(5);
    expect(deadLettered(from)).toMatchObject([{ reason: "no paper" }]);
    world.failure = undefined;
    await moveBack(kind, queueName);
    expect(await settled()).toBeUndefined();
  },
);

test.each(kinds)(
  "of %s, the dead letter has the error of the first consumer that failed",
  async (kind, queueName) => {
    for (const [flaw, runs] of [
      [new Error("not yet"), 5],
      [new PermanentError("never"), 1],
    ] as const) {
      const from = app.logs.length;
      world.runs.length = 0;
      Object.assign(world, { waits: 7, flaws: runs, flaw, failure: new Error("no paper") });
      await put(kind);
      expect(await settled()).toContain("in the dead-letter queue");
      expect(runsOf("waits")).toBe(runs);
      expect(deadLettered(from)).toMatchObject([{ reason: "no paper" }]);

      Object.assign(world, { failure: undefined, flaws: 0 });
      expect(await moveBack(kind, queueName)).toBe(1);
      expect(await settled()).toBeUndefined();
    }
  },
);

test.each(kinds)(
  "of %s, a consumer that has only waited has all its attempts once another one has succeeded",
  async (kind) => {
    Object.assign(world, { waits: 5, flaws: 4, failure: new Error("no paper"), failures: 4 });
    await put(kind);
    expect(await settled()).toBeUndefined();
    expect(runsOf("fails")).toBe(5);
    expect(runsOf("waits")).toBe(5);
  },
);

test("a receiver with its own ID runs once while another one waits for days", async () => {
  const server = buildServer({ features: [orders] });
  const { app: slow } = await startWatchedApp(server, { maxSteps: 1 });
  world.waits = Number.POSITIVE_INFINITY;
  await put("received events", slow);
  // A claim lasts for 25 hours.
  for (let day = 0; day < 3; day += 1) {
    expect(await settled(slow)).toContain("1 are left");
    slow.clock.advance(24 * 3_600_000);
  }
  world.waits = 0;
  expect(await settled(slow)).toBeUndefined();
  expect(world.runs).toEqual(["fails", "waits"]);
  await slow.close();
});
