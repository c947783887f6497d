import {
  type AfterHookContext,
  type Apply,
  access,
  type ChannelHandle,
  type CommitItem,
  type ConfigKeyHandle,
  type ConsumerOptions,
  type DeliveryAccessor,
  defineFeature,
  type EffectOptions,
  type EnqueueOptions,
  type EventHandle,
  type EventOf,
  type FeatureBuilder,
  type Handle,
  type HookContext,
  type HookOptions,
  type JobHandle,
  type KeptEvent,
  type MetricHandle,
  type MetricsAccessor,
  type PageOptions,
  type PipelineContext,
  type Projection,
  type ProjectionContext,
  type ProjectionOptions,
  type QueryContext,
  type QueryHandle,
  type ReadContext,
  reply,
  type Server,
  type SharedEvent,
  type TableHandle,
  type TenantOf,
  type TenantTable,
  type WriteHandle,
} from "keelson";
import { lambdaHandler } from "keelson/lambda";
import type { TestApp } from "keelson/testing";
import { describe, expectTypeOf, test } from "vitest";
import { z } from "zod";

// Nothing in this file is declared with `declare module`, except in the last part, which compares both.
const boat = z.object({ id: z.string(), tons: z.string().transform(Number) });
const crew = z.object({ captain: z.string() });

/** A feature whose handles others use. */
const harbour = defineFeature("typed-harbour", (r) => {
  const launched = r.event("typed-boat.launched", boat, { keep: true });
  const sunk = r.event("typed-boat.sunk", z.object({ id: z.string() }));
  const paint = r.job("boat.paint", { input: boat, handler: async () => undefined });
  const find = r.query("boat.find", {
    route: "GET /boats/:id",
    access: access.authenticated,
    input: boat,
    output: crew.extend({ since: z.date().transform(String) }),
    handler: async () => ({ captain: "Ann", since: new Date() }),
  });
  const count = r.query("boat.count", { handler: async () => ({ boats: 7 }) });
  const launch = r.write("boat.launch", {
    input: boat,
    output: crew,
    handler: async (ctx, { id }) => {
      await ctx.publish(sunk, { id });
      return reply({ captain: "Ann" }, { status: 201 });
    },
  });
  const scrap = r.write("boat.scrap", { handler: (ctx) => ctx.commit([], { scrapped: true }) });
  const flag = r.channel("typed-flag", { input: boat, send: async () => undefined });
  const trips = r.metric("boat.trips", { labels: { kind: ["ferry", "tug"], lane: ["a"] } });
  const calls = r.metric("boat.calls");
  return { launched, sunk, paint, find, count, launch, scrap, flag, trips, calls };
});
const { launched, sunk, paint, find, count, launch, scrap, flag, trips, calls } = harbour;

const r = {} as FeatureBuilder<"typed-office">;
const ctx = {} as PipelineContext;

describe("a handle", () => {
  test("has the types of its schemas", () => {
    type Boat = { id: string; tons: number };
    type RawBoat = { id: string; tons: string };
    type Crew = { captain: string };
    expectTypeOf(launched).toEqualTypeOf<EventHandle<RawBoat, Boat>>();
    expectTypeOf(paint).toEqualTypeOf<JobHandle<RawBoat>>();
    expectTypeOf(find).toEqualTypeOf<QueryHandle<RawBoat, { captain: string; since: string }>>();
    expectTypeOf(count).toEqualTypeOf<QueryHandle<unknown, { readonly boats: 7 }>>();
    expectTypeOf(launch).toEqualTypeOf<WriteHandle<RawBoat, Boat, Crew>>();
    expectTypeOf(flag).toEqualTypeOf<ChannelHandle<RawBoat>>();
    expectTypeOf(trips).toEqualTypeOf<
      MetricHandle<{
        readonly kind?: "ferry" | "tug" | undefined;
        readonly lane?: "a" | undefined;
      }>
    >();
  });

  test("is read-only, and has a kind and a name", () => {
    expectTypeOf(launched.kind).toEqualTypeOf<"event">();
    expectTypeOf(launched.name).toBeString();
    expectTypeOf(launched).toExtend<Handle>();
    // @ts-expect-error read-only
    launched.name = "other";
    // @ts-expect-error read-only
    launched.kind = "job";
  });

  test("of another kind, or with other types, is another type", () => {
    expectTypeOf(launched).not.toExtend<JobHandle<{ id: string; tons: string }>>();
    expectTypeOf(find).not.toExtend<WriteHandle<unknown, unknown, unknown>>();
    expectTypeOf(launched).not.toExtend<EventHandle<{ id: number }, unknown>>();
    expectTypeOf(find).not.toExtend<QueryHandle<{ id: string; tons: string }, { boats: number }>>();
  });
});

describe("an effect with a handle", () => {
  test("accepts the schema's input", () => {
    ctx.publish(launched, { id: "b1", tons: "7" });
    ctx.publish(sunk, { id: "b1" }, { afterCommit: false });
    expectTypeOf(() =>
      ctx.enqueue(paint, { id: "b1", tons: "7" }, { delaySeconds: 60 }),
    ).returns.resolves.toEqualTypeOf<{ readonly jobId: string }>();
    expectTypeOf(() =>
      ctx.delivery.send(flag, { id: "b1", tons: "7" }, { key: "k" }),
    ).returns.resolves.toEqualTypeOf<{ readonly deliveryId: string }>();
  });

  test("does not compile with another payload", () => {
    // @ts-expect-error the schema takes a text
    ctx.publish(launched, { id: "b1", tons: 7 });
    // @ts-expect-error the payload is missing
    ctx.publish(launched);
    // @ts-expect-error tons are missing
    ctx.publish(launched, { id: "b1" });
    // @ts-expect-error no such field
    ctx.publish(sunk, { id: "b1", tons: "7" });
    // @ts-expect-error the schema takes a text
    ctx.enqueue(paint, { id: "b1", tons: 7 });
    // @ts-expect-error no such field
    ctx.enqueue(paint, { id: "b1", tons: "7", colour: "red" });
    // @ts-expect-error the schema takes a text
    ctx.delivery.send(flag, { id: "b1", tons: 7 });
    // @ts-expect-error no such field
    ctx.delivery.send(flag, { id: "b1", tons: "7", colour: "red" });
  });

  test("does not compile with a handle of another kind", () => {
    // @ts-expect-error a job
    ctx.publish(paint, { id: "b1", tons: "7" });
    // @ts-expect-error an event
    ctx.enqueue(sunk, { id: "b1" });
    // @ts-expect-error a channel
    ctx.enqueue(flag, { id: "b1", tons: "7" });
    // @ts-expect-error a job
    ctx.delivery.send(paint, { id: "b1", tons: "7" });
    // @ts-expect-error a write
    ctx.query(launch, { id: "b1", tons: "7" });
    // @ts-expect-error a job
    ctx.events(paint);
  });

  test("does not compile with an undeclared name", () => {
    // @ts-expect-error no entry of Events
    ctx.publish("typed-boat.launched", { id: "b1", tons: "7" });
    // @ts-expect-error no entry of Jobs
    ctx.enqueue("typed-harbour.boat.paint", { id: "b1", tons: "7" });
    // @ts-expect-error no entry of Queries
    ctx.query("typed-harbour.boat.find", { id: "b1", tons: "7" });
    // @ts-expect-error no entry of Channels
    ctx.delivery.send("typed-flag", { id: "b1", tons: "7" });
  });
});

describe("a read with a handle", () => {
  test("returns the schema's output", async () => {
    expectTypeOf(() => ctx.query(find, { id: "b1", tons: "7" })).returns.resolves.toEqualTypeOf<{
      captain: string;
      since: string;
    }>();
    expectTypeOf(() => ctx.query(count, {})).returns.resolves.toEqualTypeOf<{
      readonly boats: 7;
    }>();
    for await (const event of ctx.events(launched, { limit: 1 }))
      expectTypeOf(event).toEqualTypeOf<KeptEvent<{ id: string; tons: number }>>();
    // @ts-expect-error the schema takes a text
    ctx.query(find, { id: "b1", tons: 7 });
    // @ts-expect-error the input is missing
    ctx.query(find);
  });

  test("of metrics takes the declared labels", () => {
    ctx.metrics.add(trips, 1, { kind: "ferry" });
    ctx.metrics.add(trips, 1, { kind: undefined, lane: "a" });
    ctx.metrics.add(trips, 1);
    ctx.metrics.add(calls, 1);
    ctx.metrics.add("typed-harbour.boat.trips", 1, { any: "label" });
    // @ts-expect-error no such value
    ctx.metrics.add(trips, 1, { kind: "raft" });
    // @ts-expect-error no such label
    ctx.metrics.add(trips, 1, { colour: "red" });
    // @ts-expect-error it has no labels
    ctx.metrics.add(calls, 1, { kind: "ferry" });
    // @ts-expect-error an event
    ctx.metrics.add(launched, 1);
    // @ts-expect-error the value is missing
    ctx.metrics.add(trips);
  });
});

describe("a consumer by handle", () => {
  test("receives the schema's output", () => {
    r.on(launched, {
      name: "greet",
      handler: async (given, event) => {
        expectTypeOf(given).toEqualTypeOf<PipelineContext>();
        expectTypeOf(event).toEqualTypeOf<SharedEvent<{ id: string; tons: number }>>();
        expectTypeOf(event).toEqualTypeOf<EventOf<typeof launched>>();
        await given.enqueue(paint, { id: event.payload.id, tons: `${event.payload.tons}` });
      },
    });
    // @ts-expect-error a job
    r.on(paint, { name: "greet", handler: async () => undefined });
    // @ts-expect-error the name is missing
    r.on(launched, { handler: async () => undefined });
    r.on(launched, {
      name: "greet",
      // @ts-expect-error another payload
      handler: async (_given, event: EventOf<typeof sunk> & { payload: { depth: number } }) =>
        event,
    });
  });

  test("of a projection has the payload of its own event, in pairs", () => {
    const usage: Projection = r.projection("boat.usage", {
      version: 1,
      on: [
        [
          launched,
          async (given, event, { version }) => {
            expectTypeOf(given).toEqualTypeOf<ProjectionContext>();
            expectTypeOf(event.payload).toEqualTypeOf<{ id: string; tons: number }>();
            expectTypeOf(version).toEqualTypeOf<number>();
            expectTypeOf(await usage.key(given, "total")).toBeString();
            return [];
          },
        ],
        [
          sunk,
          (_given, event) => {
            expectTypeOf(event.payload).toEqualTypeOf<{ id: string }>();
            return [{ Delete: { TableName: "t", Key: { pk: event.payload.id } } }];
          },
        ],
      ],
    });
    expectTypeOf(
      r.projection("boat.some", { version: 1, on: [[sunk, () => []]] }),
    ).toEqualTypeOf<Projection>();
    // @ts-expect-error a job
    r.projection("boat.wrong", { version: 1, on: [[paint, () => []]] });
    // @ts-expect-error no list
    r.projection("boat.wrong", { version: 1, on: [[sunk, () => 7]] });
    // @ts-expect-error the handler is missing
    r.projection("boat.wrong", { version: 1, on: [[sunk]] });
    // @ts-expect-error a version is a number
    r.projection("boat.wrong", { version: "1", on: [[sunk, () => []]] });
  });

  test("only reads in a projection", () => {
    r.projection("boat.usage", {
      version: 1,
      on: [
        [
          launched,
          async (given) => {
            expectTypeOf(given).not.toHaveProperty("commit");
            expectTypeOf(given).not.toHaveProperty("publish");
            expectTypeOf(given).not.toHaveProperty("enqueue");
            expectTypeOf(given).not.toHaveProperty("delivery");
            return [];
          },
        ],
      ],
    });
  });
});

describe("a hook by handle", () => {
  test("has the types of the write", () => {
    r.hook(launch, {
      before: (given, input) => {
        expectTypeOf(given).toEqualTypeOf<HookContext>();
        expectTypeOf(input).toEqualTypeOf<{ id: string; tons: number }>();
        return { ...input, tons: "8" };
      },
      commit: (_given, input, result) => {
        expectTypeOf(input.tons).toBeNumber();
        expectTypeOf(result).toEqualTypeOf<{ captain: string }>();
        return [];
      },
      after: async (given, _input, result) => {
        expectTypeOf(given).toEqualTypeOf<AfterHookContext>();
        given.log.info(result.captain);
      },
    });
    r.hook(scrap, {
      after: (_given, _input, result) =>
        expectTypeOf(result).toEqualTypeOf<{ readonly scrapped: true }>(),
    });
    // @ts-expect-error a query
    r.hook(find, { after: () => {} });
    // @ts-expect-error neither as the schema takes it, nor as it gives it
    r.hook(launch, { before: (_given, input) => ({ ...input, tons: true }) });
    // @ts-expect-error no list
    r.hook(launch, { commit: () => ({ Put: { TableName: "t", Item: {} } }) });
    // @ts-expect-error items are returned
    r.hook(launch, { before: async (given) => void (await given.commit([], {})) });
    // @ts-expect-error nothing is published any more
    r.hook(launch, { after: async (given) => given.publish(sunk, { id: "b1" }) });
  });
});

describe("what is called from outside by handle", () => {
  const app = {} as TestApp;
  const server = {} as Server;

  test("has the types of its handler in a test", () => {
    expectTypeOf(() =>
      app.call(find, { id: "b1", tons: "7" }, { as: { id: "ann", tenantId: "acme" } }),
    ).returns.resolves.toEqualTypeOf<{ captain: string; since: string }>();
    expectTypeOf(() => app.call(launch, { id: "b1", tons: "7" })).returns.resolves.toEqualTypeOf<{
      captain: string;
    }>();
    expectTypeOf(() =>
      app.call("typed-harbour.boat.find", { any: 1 }),
    ).returns.resolves.toEqualTypeOf<unknown>();
    // @ts-expect-error the schema takes a text
    app.call(find, { id: "b1", tons: 7 });
    // @ts-expect-error a job
    app.call(paint, { id: "b1", tons: "7" });
  });

  test("is a query or a write in a separate function", () => {
    lambdaHandler(server, find);
    lambdaHandler(server, launch);
    lambdaHandler(server, "typed-harbour.boat.find");
    // @ts-expect-error an event
    lambdaHandler(server, launched);
  });
});

describe("handles within their own declarations", () => {
  test("compile where the call is awaited in a statement", () => {
    const again: JobHandle<{ id: string }> = r.job("boat.again", {
      input: z.object({ id: z.string() }),
      handler: (given, { id }) => given.enqueue(again, { id }),
    });
    const next = r.job("boat.next", {
      input: z.object({ id: z.string() }),
      handler: async (given, { id }) => {
        await given.enqueue(next, { id }, { delaySeconds: 60 });
      },
    });
    const tree = r.query("boat.tree", {
      input: z.object({ depth: z.number() }),
      output: z.object({ depth: z.number() }),
      handler: async (given, { depth }) => {
        if (depth > 0) await given.query(tree, { depth: depth - 1 });
        return { depth };
      },
    });
    expectTypeOf(next).toEqualTypeOf<JobHandle<{ id: string }>>();
    expectTypeOf(tree).toEqualTypeOf<QueryHandle<{ depth: number }, { depth: number }>>();
  });
});

describe("the ctx of a query", () => {
  test("lacks what changes something", () => {
    type Missing = Exclude<keyof PipelineContext, keyof QueryContext>;
    expectTypeOf<Missing>().toEqualTypeOf<
      "commit" | "publish" | "enqueue" | "cancelJob" | "step"
    >();
    r.query("boat.look", {
      handler: async (given) => {
        expectTypeOf(given).toEqualTypeOf<QueryContext>();
        // @ts-expect-error a query reads
        await given.commit([], 1);
        // @ts-expect-error a query reads
        await given.publish(sunk, { id: "b1" });
        // @ts-expect-error a query reads
        await given.enqueue(paint, { id: "b1", tons: "7" });
        // @ts-expect-error a query reads
        await given.cancelJob("j1");
        // @ts-expect-error a query reads
        await given.step("charge", {}, () => 1);
        return given.query(find, { id: "b1", tons: "7" });
      },
    });
  });

  test("is accepted by a helper of queries and writes", () => {
    const captainOf = async (given: QueryContext, id: string) =>
      (await given.query(find, { id, tons: "7" })).captain;
    r.query("boat.captain", { handler: (given) => captainOf(given, "b1") });
    r.write("boat.promote", { handler: (given) => captainOf(given, "b1") });
    const needsCommit = async (given: PipelineContext) => given.commit([], 1);
    // @ts-expect-error a query reads
    r.query("boat.wrong", { handler: (given) => needsCommit(given) });
  });
});

describe("a copy of a ctx", () => {
  type Lost =
    | "acrossTenants"
    | "trace"
    | "events"
    | "metrics"
    | "delivery"
    | "rateLimit"
    | "enqueue"
    | "cancelJob"
    | "publish"
    | "step";

  test("lacks the members that a spread loses", () => {
    const copy = { ...ctx };
    expectTypeOf<Extract<keyof typeof copy, Lost>>().toBeNever();
    expectTypeOf<Exclude<keyof PipelineContext, keyof typeof copy>>().toEqualTypeOf<Lost>();
    copy.log.info("copied", { requestId: copy.requestId, tenantId: copy.user.tenantId });
    expectTypeOf(copy.commit).toEqualTypeOf<PipelineContext["commit"]>();
    // @ts-expect-error lost
    copy.publish;
    // @ts-expect-error lost
    copy.metrics;
    // @ts-expect-error it is no ctx
    copy satisfies PipelineContext;
    const query = { ...({} as QueryContext) };
    expectTypeOf<Exclude<keyof QueryContext, keyof typeof query>>().toEqualTypeOf<
      "acrossTenants" | "trace" | "events" | "metrics" | "rateLimit" | "delivery"
    >();
  });

  test("by name has them", () => {
    const { publish, enqueue, metrics, delivery } = ctx;
    publish(sunk, { id: "b1" });
    enqueue(paint, { id: "b1", tons: "7" });
    metrics.add(trips, 1);
    delivery.send(flag, { id: "b1", tons: "7" });
  });
});

// Helpers of an application, written only with exported types.
async function audited<Sent>(
  given: PipelineContext,
  event: EventHandle<Sent, unknown>,
  payload: NoInfer<Sent>,
  options?: EffectOptions,
): Promise<void> {
  given.log.info("audit.published", { event: event.name });
  await given.publish(event, payload, options);
}

async function queued<Payload>(
  given: HookContext,
  job: JobHandle<Payload>,
  payload: NoInfer<Payload>,
  options: EnqueueOptions = {},
): Promise<string> {
  return (await given.enqueue(job, payload, options)).jobId;
}

async function cached<Input, Output>(
  given: QueryContext,
  query: QueryHandle<Input, Output>,
  input: NoInfer<Input>,
): Promise<Output> {
  return given.query(query, input);
}

async function told<Message>(
  delivery: DeliveryAccessor,
  channel: ChannelHandle<Message>,
  message: NoInfer<Message>,
): Promise<string> {
  return (await delivery.send(channel, message)).deliveryId;
}

function counted<Labels>(
  metrics: MetricsAccessor,
  metric: MetricHandle<Labels>,
  labels: NoInfer<Labels>,
): void {
  metrics.add(metric, 1, labels);
}

async function called<Input, Accepted, Output>(
  app: TestApp,
  write: WriteHandle<Input, Accepted, Output>,
  input: NoInfer<Input>,
): Promise<Output> {
  return app.call(write, input);
}

async function history<Received>(
  given: ReadContext,
  event: EventHandle<never, Received>,
): Promise<readonly Received[]> {
  const all: Received[] = [];
  for await (const { payload } of given.events(event)) all.push(payload);
  return all;
}

function logged<Payload>(handler: ConsumerOptions<Payload>["handler"]): ConsumerOptions<Payload> {
  return {
    name: "logged",
    handler: async (given, event) => {
      given.log.info("event.seen", { type: event.type });
      return handler(given, event);
    },
  };
}

const refusing = <Input, Accepted, Output>(
  _write: WriteHandle<Input, Accepted, Output>,
): HookOptions<WriteHandle<Input, Accepted, Output>> => ({
  before: async (given) => void given.log.info("refused"),
});

const rowsOf = (table: TenantTable<never, "pk", "sk">, given: TenantOf, id: string) =>
  table.key(given, "rows", id);

async function firstPage<Index extends string>(
  given: ReadContext,
  table: TableHandle<Index>,
  options: Omit<PageOptions<Index>, "limit">,
) {
  const { items } = await table.page(given, { ...options, limit: 10 });
  return items;
}

const configured = <Value>(given: ReadContext, key: ConfigKeyHandle<Value>): Promise<Value> =>
  given.config(key);

const totalOf = (given: ReadContext, usage: Projection): Promise<string> =>
  usage.key(given, "total");

const once: Apply<typeof launched> = (_given, { payload }): readonly CommitItem[] => [
  { Put: { TableName: "t", Item: { pk: payload.id, tons: payload.tons } } },
];
const projected: ProjectionOptions<readonly [typeof launched]> = {
  version: 1,
  on: [[launched, once]],
};

describe("a helper with exported types", () => {
  test("accepts handles, and checks the other arguments by them", async () => {
    await audited(ctx, launched, { id: "b1", tons: "7" }, { afterCommit: false });
    // @ts-expect-error the schema takes a text
    await audited(ctx, launched, { id: "b1", tons: 7 });
    // @ts-expect-error a job
    await audited(ctx, paint, { id: "b1", tons: "7" });
    expectTypeOf(await queued(ctx, paint, { id: "b1", tons: "7" })).toBeString();
    // @ts-expect-error no such field
    await queued(ctx, paint, { id: "b1", tons: "7", colour: "red" });
    expectTypeOf(await cached(ctx, count, {})).toEqualTypeOf<{ readonly boats: 7 }>();
    // @ts-expect-error the schema takes a text
    await cached(ctx, find, { id: "b1", tons: 7 });
    expectTypeOf(await told(ctx.delivery, flag, { id: "b1", tons: "7" })).toBeString();
    counted(ctx.metrics, trips, { kind: "ferry" });
    // @ts-expect-error no such value
    counted(ctx.metrics, trips, { kind: "raft" });
    expectTypeOf(await called({} as TestApp, launch, { id: "b1", tons: "7" })).toEqualTypeOf<{
      captain: string;
    }>();
    expectTypeOf(await history(ctx, launched)).toEqualTypeOf<
      readonly { id: string; tons: number }[]
    >();
  });

  test("makes declarations", () => {
    r.on(
      launched,
      logged<EventOf<typeof launched>["payload"]>(async (_given, { payload }) =>
        payload.tons.toFixed(),
      ),
    );
    r.hook(launch, refusing(launch));
    r.projection("boat.helped", projected);
    const files = r.table("typed-files", {
      partitionKey: "pk",
      sortKey: "sk",
      tenant: true,
      indexes: { byOwner: { partitionKey: "owner" } },
    });
    expectTypeOf(rowsOf(files, ctx, "a")).toEqualTypeOf<{
      readonly pk: string;
      readonly sk: string;
    }>();
    expectTypeOf(() => firstPage(ctx, files, { partition: "a" })).returns.resolves.toEqualTypeOf<
      readonly Readonly<Record<string, unknown>>[]
    >();
    expectTypeOf(() =>
      configured(ctx, {} as ConfigKeyHandle<number>),
    ).returns.resolves.toBeNumber();
    expectTypeOf(() => totalOf(ctx, {} as Projection)).returns.resolves.toBeString();
  });
});

declare module "keelson" {
  interface Events {
    "typed-raft.launched": { id: string };
  }
  interface Jobs {
    "typed-office.raft.paint": { id: string };
  }
}

describe("a name with an entry", () => {
  test("has the entry's types, in addition to handles", () => {
    ctx.publish("typed-raft.launched", { id: "r1" });
    ctx.enqueue("typed-office.raft.paint", { id: "r1" });
    // @ts-expect-error no such field
    ctx.publish("typed-raft.launched", { id: "r1", tons: "7" });
    // @ts-expect-error an event
    ctx.enqueue("typed-raft.launched", { id: "r1" });
    r.projection("raft.usage", {
      version: 1,
      on: [
        [
          "typed-raft.launched",
          (_given, event) => {
            expectTypeOf(event.payload).toEqualTypeOf<{ id: string }>();
            return [];
          },
        ],
        [
          launched,
          (_given, event) => {
            expectTypeOf(event.payload).toEqualTypeOf<{ id: string; tons: number }>();
            return [];
          },
        ],
      ],
    });
    // @ts-expect-error another payload than the entry's
    r.event("typed-raft.launched", z.object({ id: z.number() }));
    const raft = r.event("typed-raft.launched", z.object({ id: z.string() }));
    expectTypeOf(raft).toEqualTypeOf<EventHandle<{ id: string }, { id: string }>>();
  });
});
