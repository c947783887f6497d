import { describe, expect, test } from "vitest";
import { z } from "zod";
import { type Line, type LoneRuntime, loneRuntime } from "../../../test/fixtures/lone-runtime.ts";
import { AccessDeniedError, PermanentError } from "../../base/errors/errors.ts";
import type { Cause, SharedEvent } from "../../parts/messages/envelope.ts";
import type { JobMessage } from "../../parts/messages/job-message.ts";
import { keyText } from "../../parts/once/claim.ts";
import { defineFeature } from "../features/feature.ts";
import type { PipelineContext } from "../handlers/pipeline-context.ts";
import type { Projecting } from "../projections/projections.ts";
import type { Runtime } from "../runtime/runtime.ts";
import { buildServer } from "../server/server.ts";
import { consumeEvent, messageClaim, runJob } from "./process-message.ts";

const input = z.object({ n: z.string().transform(Number), list: z.any().optional() });

declare module "../../base/types/names.ts" {
  interface Events {
    "consumed.ended": z.output<typeof input>;
    "consumed.kept": z.output<typeof input>;
    "consumed.other": z.output<typeof input>;
    "consumed.unheard": z.output<typeof input>;
  }
  interface Jobs {
    "consumed.one.work": z.input<typeof input>;
  }
}

const sent = { causedBy: "c-1", origRequestId: "o-1" };
const acme = { ...sent, tenantId: "acme", payload: { n: "7" } };
const event: SharedEvent = { ...acme, kind: "shared", type: "consumed.ended", eventId: "e-1" };
const job: JobMessage = { ...acme, jobId: "j-1", name: "consumed.one.work" };
const delivered = { channel: "consumed-wall", key: "derived", message: { n: "9" } };
const delivery: JobMessage = { ...job, name: "keelson.delivery.send", payload: delivered };

const withPayload = (message: JobMessage, more: object): JobMessage => ({
  ...message,
  payload: { ...(message.payload as object), ...more }, // safe: it is an object above
});

interface Given {
  readonly payload: { n: number; readonly list: string[] };
}

/** What a handler got. */
type Call = readonly [handler: string, given: unknown, ctx: PipelineContext];

/** A server whose two consumers, job and channel note their calls, and then do what the test says. */
function start(does: (handler: string, given: never) => void = () => undefined) {
  const handled: Call[] = [];
  const handle = (...call: Call) => {
    handled.push(call);
    does(call[0], call[1] as never); // safe: a test knows what it sends
  };
  const consumed = defineFeature("consumed", (r) => {
    for (const type of ["ended", "other", "unheard"] as const) r.event(`consumed.${type}`, input);
    r.event("consumed.kept", input, { keepDays: 30 });
    for (const name of ["one", "two"])
      r.on("consumed.ended", { name, handler: (ctx, given) => handle(name, given, ctx) });
    r.on("consumed.other", { name: "other", handler: (ctx, given) => handle("other", given, ctx) });
    r.job("one.work", { input, handler: (ctx, given) => handle("job", given, ctx) });
    r.channel("consumed-wall", {
      input,
      send: (ctx, message, { id }) => handle("channel", { message, id }, ctx),
    });
    r.projection("consumed.count", { version: 2, on: { "consumed.kept": () => [] } });
  });
  const server = buildServer({ features: [consumed], environment: "test" });
  return { ...loneRuntime(server), handled };
}

const keyOf = (name: string) => messageClaim("event", `consumed.consumed.${name}`, "e-1", "acme");
const ended = ({ ends }: LoneRuntime) =>
  ends
    .map(({ handler = "", end }) => ({ ...end, handler: handler.replace(/.*\./, "") }))
    .sort((one, other) => one.handler.localeCompare(other.handler));

describe("an event", () => {
  test("goes to each of its consumers with the payload that its schema makes, and to no other", async () => {
    const { runtime, adapters, handled } = start();
    expect(await consumeEvent(runtime, adapters, event)).toEqual({ kind: "processed" });
    const given = { ...event, payload: { n: 7 } };
    expect([handled.length, Object.fromEntries(handled)]).toEqual([2, { one: given, two: given }]);
    const unheard: SharedEvent = { ...event, type: "consumed.unheard" };
    expect(await consumeEvent(runtime, adapters, unheard)).toEqual({ kind: "skipped" });
  });

  test("is not changed for one consumer by another that changes its payload", async () => {
    const { runtime, adapters, handled } = start((_name, { payload }: Given) => {
      payload.n += 1;
      payload.list.push("changed");
    });
    const sent = { ...event, payload: { n: "7", list: ["sent"] } };
    await consumeEvent(runtime, adapters, sent);
    const given = { ...event, payload: { n: 8, list: ["sent", "changed"] } };
    expect(Object.fromEntries(handled)).toEqual({ one: given, two: given });
  });

  test("is done by each consumer once, however often it arrives", async () => {
    let failures = 1;
    const { runtime, adapters, handled } = start((name) => {
      if (name === "two" && failures-- > 0) throw new Error("not yet");
    });
    const consume = () => consumeEvent(runtime, adapters, event);
    expect(await consume()).toMatchObject({ kind: "failed" });
    expect(await consume()).toEqual({ kind: "processed" });
    expect(await consume()).toEqual({ kind: "skipped" });
    expect(handled.map(([name]) => name)).toEqual(["one", "two", "two"]);
  });

  test.each<[one: string, two: string, worst: string]>([
    ["skipped", "processed", "processed"],
    ["skipped", "lost", "lost"],
    ["processed", "lost", "lost"],
    ["skipped", "handed-back", "handed-back"],
    ["processed", "handed-back", "handed-back"],
    ["lost", "handed-back", "handed-back"],
    ["skipped", "failed", "failed"],
    ["processed", "failed", "failed"],
    ["handed-back", "failed", "failed"],
    ["lost", "failed", "failed"],
  ])("with one consumer %s and one %s is %s, in either order", async (first, second, worst) => {
    const errors = { lost: new PermanentError("never"), failed: new Error("not yet") };
    for (const pair of [
      [first, second],
      [second, first],
    ]) {
      const ends = new Map(["one", "two"].map((name, index) => [name, pair[index]]));
      let isFirst = true;
      const { runtime, adapters, occupy } = start((name) => {
        const end = ends.get(name);
        if (isFirst && end !== "skipped") throw new Error("this one is not done before");
        if (end === "lost" || end === "failed") throw errors[end];
      });
      await consumeEvent(runtime, adapters, event);
      isFirst = false;
      for (const [name, end] of ends) if (end === "handed-back") occupy(keyOf(name));
      const outcome = await consumeEvent(runtime, adapters, event);
      const isError = worst === "lost" || worst === "failed";
      expect(outcome).toMatchObject(
        isError ? { kind: "failed", error: errors[worst] } : { kind: worst },
      );
    }
  });

  test("of a projection is written with its kept days, in place of a consumer", async () => {
    const { runtime, adapters } = start();
    const written: Omit<Projecting, "version">[] = [];
    const projections: Runtime["projections"] = {
      value: undefined,
      opening: undefined,
      open: async () => ({
        version: async () => 2,
        written: async () => 2,
        project: async (_scope, _ctx, work) => written.push(work) > 0,
      }),
    };
    const kept = { ...event, type: "consumed.kept" };
    const outcome = await consumeEvent({ ...runtime, projections }, adapters, kept);
    expect(outcome).toEqual({ kind: "processed" });
    expect(written).toEqual([
      {
        projection: expect.objectContaining({ name: "consumed.count" }),
        event: { ...kept, payload: { n: 7 } },
        keptDays: 30,
        version: 2,
      },
    ]);
  });

  test("is reported with its type, attempt and age, and logged with its IDs", async () => {
    const lone = start((name) => {
      if (name === "two") throw new Error("not yet");
    });
    await consumeEvent(lone.runtime, lone.adapters, event, { attempt: 3, sinceMs: 5 });
    const facts = { kind: "event", event: "consumed.ended", attempt: 3, sinceMs: 5 };
    expect(ended(lone)).toEqual([
      expect.objectContaining({ ...facts, handler: "one", outcome: "processed" }),
      expect.objectContaining({ ...facts, handler: "two", outcome: "failed" }),
    ]);
    expect(lone.linesOf("event.failed")).toEqual([
      expect.objectContaining({ ...sent, eventId: "e-1", handler: "consumed.consumed.two" }),
    ]);
  });
});

describe("a job", () => {
  test("gets the payload that its schema makes, and runs once", async () => {
    const { runtime, adapters, handled } = start();
    expect(await runJob(runtime, adapters, job)).toEqual({ kind: "processed" });
    expect(await runJob(runtime, adapters, job)).toEqual({ kind: "skipped" });
    expect(handled.map(([name, what]) => [name, what])).toEqual([["job", { n: 7 }]]);
  });

  test.each<[string, JobMessage, Line & { kind: string }]>([
    ["a job has no channel", withPayload(job, { channel: "wall" }), { kind: "job" }],
    ["a delivery names its channel", delivery, { kind: "delivery", channel: "consumed-wall" }],
    ["no channel is no text", withPayload(delivery, { channel: 7 }), { kind: "delivery" }],
  ])("is reported with its attempt and age; %s", async (_, message, facts) => {
    const lone = start();
    await runJob(lone.runtime, lone.adapters, message, { attempt: 2, sinceMs: 4 });
    const end = { channel: undefined, attempt: 2, sinceMs: 4, ...facts };
    expect(ended(lone)).toEqual([expect.objectContaining(end)]);
    expect(lone.linesOf(`${end.kind}.completed`)).toEqual([
      expect.objectContaining({ ...sent, jobId: "j-1", handler: message.name }),
    ]);
  });

  test.each<[string, JobMessage, boolean]>([
    ["a delivery whose sender chose its key", withPayload(delivery, { key: "=mine" }), true],
    ["a delivery with a derived key", withPayload(delivery, { key: "mine=" }), false],
    ["a job whose payload has such a key", withPayload(job, { key: "=mine" }), false],
  ])("tells a later one with the same key apart only for %s", async (_, message, isReusable) => {
    const { runtime, adapters, record } = start();
    await runJob(runtime, adapters, message);
    const taken = record(messageClaim("job", message.name, "j-1", "acme"));
    expect(taken?.status).toBe("COMPLETED");
    expect(taken?.generation !== undefined).toBe(isReusable);
  });
});

describe("a message", () => {
  const consume = ({ runtime, adapters }: LoneRuntime, message: SharedEvent | JobMessage) =>
    "jobId" in message
      ? runJob(runtime, adapters, message)
      : consumeEvent(runtime, adapters, message);

  test.each([event, job])("that does not fit its schema fails for good: %o", async (message) => {
    const lone = start();
    const error = await consume(lone, { ...message, payload: { n: 7 } }).catch(
      (thrown: unknown) => thrown,
    );
    expect(error).toBeInstanceOf(PermanentError);
    const name = "jobId" in message ? message.name : message.type;
    expect(String(error)).toContain(`the payload of ${name} does not fit its schema (n: `);
    expect(lone.handled).toEqual([]);
  });

  test.each([
    ["the event a.b", { ...event, type: "a.b" }],
    ["the job a.b.c", { ...job, name: "a.b.c" }],
  ])("that no feature declares fails, but not for good: %s", async (what, message) => {
    const error = await consume(start(), message).catch((thrown: unknown) => thrown);
    expect(error).not.toBeInstanceOf(PermanentError);
    expect(error).toEqual(new Error(`${what} is declared by no feature of this server`));
  });

  test("whose key is no text is a failed delivery, not a failed server", async () => {
    const { runtime, adapters } = start();
    const outcome = await runJob(runtime, adapters, withPayload(delivery, { key: 7 }));
    expect(outcome).toMatchObject({
      kind: "failed",
      error: { message: "its key is not a string" },
    });
  });
});

/** Consumes an event and runs a job of this cause, and returns their contexts. */
async function contextsOf(cause: Partial<Cause>) {
  const { runtime, adapters, handled } = start();
  await consumeEvent(runtime, adapters, { ...event, tenantId: undefined, ...cause });
  await runJob(runtime, adapters, { ...job, tenantId: undefined, ...cause });
  const contexts = handled.map(([, , ctx]) => ctx);
  expect(contexts).toHaveLength(3);
  return contexts;
}

describe("the run of a message", () => {
  test.each<[string, Partial<Cause>, object]>([
    ["nobody", {}, {}],
    ["a tenant", { tenantId: "acme" }, { tenantId: "acme" }],
    ["a user", { tenantId: "acme", userId: "ann" }, { tenantId: "acme", id: "ann" }],
  ])("is that of %s, without roles, in the chain of its request", async (_, cause, user) => {
    for (const ctx of await contextsOf(cause)) {
      expect(ctx.user).toEqual({
        id: undefined,
        tenantId: undefined,
        ...user,
        roles: [],
        kind: "user",
      });
      expect(ctx.requestId).toBe("o-1");
    }
  });

  test.each<[string, Partial<Cause>, boolean]>([
    ["the system's if its sender's was", { originator: "system" }, true],
    ["not the system's if it has a tenant", { originator: "system", tenantId: "acme" }, false],
    ["not the system's if its sender's was not", {}, false],
  ])("is %s", async (_, cause, isSystem) => {
    for (const ctx of await contextsOf(cause)) {
      const crosses = () => ctx.acrossTenants("a test");
      if (isSystem) expect(crosses).not.toThrow();
      else expect(crosses).toThrow(AccessDeniedError);
    }
  });
});

describe("the claim of a message", () => {
  test("is that of its handler, and of its tenant", async () => {
    const { runtime, adapters, world } = start();
    await consumeEvent(runtime, adapters, event);
    await runJob(runtime, adapters, job);
    await runJob(runtime, adapters, { ...job, tenantId: undefined });
    const ofJob = (tenantId?: string) => messageClaim("job", job.name, "j-1", tenantId);
    const keys = [keyOf("one"), keyOf("two"), ofJob("acme"), ofJob()];
    expect([...world.records.keys()].sort()).toEqual(keys.map(keyText).sort());
    expect(keys.map(({ tenantId }) => tenantId)).toEqual(["acme", "acme", "acme", undefined]);
  });

  test("is shared by no other kind, handler, ID or tenant, not even one with a strange name", () => {
    const keys = [
      messageClaim("event", "a", "1", "t"),
      messageClaim("job", "a", "1", "t"),
      messageClaim("event", "b", "1", "t"),
      messageClaim("event", "a", "2", "t"),
      messageClaim("event", "a", "1", "u"),
      messageClaim("event", "a", "1", undefined),
      messageClaim("event", "a", "1", "-"),
      messageClaim("event", "a", "1", ""),
    ];
    expect(new Set(keys.map(keyText)).size).toBe(keys.length);
  });
});
