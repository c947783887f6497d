import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import {
  IdempotencyConfig,
  IdempotencyItemAlreadyExistsError,
  makeIdempotent,
} from "@aws-lambda-powertools/idempotency";
import { DynamoDBPersistenceLayer } from "@aws-lambda-powertools/idempotency/dynamodb";
import { makeHandlerIdempotent } from "@aws-lambda-powertools/idempotency/middleware";
import {
  type BasePersistenceLayer,
  IdempotencyRecord,
} from "@aws-lambda-powertools/idempotency/persistence";
import { DynamoDBClient, ScanCommand } from "@aws-sdk/client-dynamodb";
import middy from "@middy/core";
import type { Context } from "aws-lambda";
import { afterAll, afterEach, beforeAll, expect, test, vi } from "vitest";
import { ClaimLayer } from "../../src/hosts/claim-layer/index.ts";
import { requestScope, writeOnce } from "../../src/hosts/middy/middy.ts";
import { access, buildServer, defineFeature, NotFoundError } from "../../src/index.ts";
import { startTestApp, type TestApp } from "../../src/tools/testing/index.ts";
import { waitFor } from "../support/wait-for.ts";

/**
 * What Powertools Idempotency gets wrong by itself. Each scenario runs on its own DynamoDB layer, where it fails, and on
 * a `ClaimLayer` in its place; what a layer cannot mend runs on `requestScope` with `writeOnce`.
 */
let app: TestApp;
const tables = defineFeature("powertools", (r) => {
  r.table("idempotency", { partitionKey: "id", tenant: false });
});
let tableName = "";
let ids = 0;

beforeAll(async () => {
  app = await startTestApp(buildServer({ features: [tables] })); // makes the tables
  tableName = app.env["KEELSON_TABLE_IDEMPOTENCY"] ?? "keelson-idempotency";
});
afterAll(() => app.close());
afterEach(() => {
  vi.unstubAllEnvs();
  vi.restoreAllMocks();
});

const newClient = () =>
  new DynamoDBClient({
    endpoint: app.env["AWS_ENDPOINT_URL"] ?? "",
    region: app.env["AWS_REGION"] ?? "",
    credentials: {
      accessKeyId: app.env["AWS_ACCESS_KEY_ID"] ?? "",
      secretAccessKey: app.env["AWS_SECRET_ACCESS_KEY"] ?? "",
    },
    maxAttempts: 2,
  });

/** A layer of either kind, on a client of its own that a test may disturb. */
interface Kind {
  readonly name: "Powertools" | "ClaimLayer";
  create(client: DynamoDBClient): BasePersistenceLayer;
}
const powertools: Kind = {
  name: "Powertools",
  create: (awsSdkV3Client) => new DynamoDBPersistenceLayer({ tableName, awsSdkV3Client }),
};
const claimLayer: Kind = {
  name: "ClaimLayer",
  create: (awsSdkV3Client) => new ClaimLayer({ tableName, awsSdkV3Client, waitMs: 0 }),
};

/** Runs a scenario on both layers, and compares what it observes. */
async function both<Seen>(
  scenario: (kind: Kind) => Promise<Seen>,
  expected: { readonly powertools: Seen; readonly claimLayer: Seen },
): Promise<void> {
  vi.spyOn(console, "warn").mockImplementation(() => undefined);
  expect(await scenario(powertools), "Powertools' own layer").toEqual(expected.powertools);
  expect(await scenario(claimLayer), "ClaimLayer").toEqual(expected.claimLayer);
}

const newEvent = () => ({ id: `event-${++ids}` });
const lasting = (ms: number) => ({ getRemainingTimeInMillis: () => ms }) as Context; // the part of it that is read
const outcomeOf = (work: Promise<unknown>): Promise<unknown> =>
  work.catch((error: Error) => error.name);
const named = (name: string, message = name) => Object.assign(new Error(message), { name });

/** Calls until no duplicate is in the way: a lease is over 2 s after its end, for the clocks. */
async function afterTheLease(call: () => Promise<unknown>): Promise<unknown> {
  for (let attempt = 0; attempt < 200; attempt += 1) {
    const outcome = await outcomeOf(call());
    if (outcome !== "IdempotencyAlreadyInProgressError") return outcome;
    await sleep(50);
  }
  throw new Error("the lease does not end");
}

/** A function whose first run waits for `first`, and whose lease is over at once. */
function slowFirst(kind: Kind) {
  const first = Promise.withResolvers<string>();
  const event = newEvent();
  let runs = 0;
  const run = makeIdempotent(
    async (_event: typeof event, _context: Context) => (++runs === 1 ? first.promise : "second"),
    {
      persistenceStore: kind.create(newClient()),
      config: new IdempotencyConfig({}),
    },
  );
  return { first, call: (ms = 1) => run(event, lasting(ms)), runs: () => runs };
}

test("W1: a run that fails after its lease does not delete the answer of the run that took over", async () => {
  await both(
    async (kind) => {
      const { first, call, runs } = slowFirst(kind);
      const late = outcomeOf(call());
      await waitFor(() => expect(runs()).toBe(1));
      const takenOver = await afterTheLease(call);
      first.reject(named("Late"));
      return [await late, takenOver, await call(), runs()];
    },
    { powertools: ["Late", "second", "second", 3], claimLayer: ["Late", "second", "second", 2] },
  );
});

test("W2: a run that finishes after its lease does not replace the answer of the run that took over", async () => {
  await both(
    async (kind) => {
      const { first, call, runs } = slowFirst(kind);
      const late = outcomeOf(call());
      await waitFor(() => expect(runs()).toBe(1));
      const takenOver = await afterTheLease(call);
      first.resolve("first");
      return [await late, takenOver, await call()];
    },
    {
      powertools: ["first", "second", "first"],
      claimLayer: ["IdempotencyPersistenceLayerError", "second", "second"],
    },
  );
});

test("W3: under Middy a refused duplicate does not delete the claim of the call in flight", async () => {
  await both(
    async (kind) => {
      const gate = Promise.withResolvers<string>();
      const event = newEvent();
      let runs = 0;
      const handler = middy()
        .use(makeHandlerIdempotent({ persistenceStore: kind.create(newClient()) }))
        .handler(() => {
          runs += 1;
          return gate.promise;
        });
      const call = () => outcomeOf(handler(event, lasting(60_000)) as Promise<unknown>);
      const first = call();
      await waitFor(() => expect(runs).toBe(1));
      const refused = await call();
      let third: unknown = "runs";
      const last = call().then((outcome) => {
        third = outcome;
      });
      await waitFor(() => expect(runs === 2 || third !== "runs").toBe(true));
      const seen = [refused, third, runs];
      gate.resolve("done");
      await Promise.all([first, last]);
      return seen;
    },
    {
      powertools: ["IdempotencyAlreadyInProgressError", "runs", 2],
      claimLayer: ["IdempotencyAlreadyInProgressError", "IdempotencyAlreadyInProgressError", 1],
    },
  );
});

test.each([
  ["over 400 KB", () => randomBytes(400_000).toString("base64")],
  [
    "with a member that DynamoDB has no value for",
    () => ({ a: { b: undefined }, at: new Date(0) }),
  ],
])("W4: a result %s is stored, and the function is not run again", async (_what, result) => {
  await both(
    async (kind) => {
      const event = newEvent();
      let runs = 0;
      const run = makeIdempotent(
        async (_event: typeof event, _context: Context) => {
          runs += 1;
          return result() as string;
        },
        { persistenceStore: kind.create(newClient()), config: new IdempotencyConfig({}) },
      );
      const first = await outcomeOf(run(event, lasting(1)));
      await afterTheLease(() => run(event, lasting(1)));
      return [first === "IdempotencyPersistenceLayerError", runs];
    },
    { powertools: [true, 2], claimLayer: [false, 1] },
  );
});

test("W5: a handler that has timed out keeps its claim while it is still running", async () => {
  const runIn = async (
    wrap: (handler: () => Promise<unknown>) => (context: Context) => Promise<unknown>,
  ) => {
    const gate = Promise.withResolvers<string>();
    let runs = 0;
    const call = wrap(() => {
      runs += 1;
      return gate.promise;
    });
    await outcomeOf(call(lasting(1_500))); // enough to claim and begin
    const again = outcomeOf(call(lasting(5_000)));
    let isOver = false;
    void again.then(() => {
      isOver = true;
    });
    await waitFor(() => expect(runs === 2 || isOver).toBe(true));
    gate.resolve("done");
    await again;
    return runs;
  };
  const event = newEvent();
  const middlewares = makeHandlerIdempotent({ persistenceStore: powertools.create(newClient()) });
  const stock = (handler: () => Promise<unknown>) => {
    const wrapped = middy().use(middlewares).handler(handler);
    return (context: Context) => wrapped(event, context) as Promise<unknown>;
  };
  vi.spyOn(console, "warn").mockImplementation(() => undefined);
  expect(await runIn(stock)).toBe(2);
  expect(await runIn((handler) => scoped(handler))).toBe(1);
});

test("W6: a claim whose response was lost is recognised as the caller's own", async () => {
  await both(
    async (kind) => {
      const disturbed = newClient();
      let losses = 1;
      disturbed.middlewareStack.add(
        (next, { commandName }) =>
          async (parameters) => {
            const output = await next(parameters);
            if (commandName === "PutItemCommand" && losses-- > 0) {
              throw Object.assign(named("TimeoutError", "socket hang up"), { code: "ECONNRESET" });
            }
            return output;
          },
        { step: "finalizeRequest", priority: "low" },
      );
      let runs = 0;
      const run = makeIdempotent(
        async (_event: object) => {
          runs += 1;
          return "done";
        },
        { persistenceStore: kind.create(disturbed) },
      );
      return [await outcomeOf(run(newEvent())), runs];
    },
    { powertools: ["IdempotencyAlreadyInProgressError", 0], claimLayer: ["done", 1] },
  );
});

test("W7: a duplicate notices that the lease of the first call has expired, and takes over", async () => {
  vi.spyOn(console, "warn").mockImplementation(() => undefined);
  const over = {
    idempotencyKey: "k",
    expiryTimestamp: 2 ** 40,
    inProgressExpiryTimestamp: Date.now() - 3_600_000,
  };
  class Finding extends DynamoDBPersistenceLayer {
    protected override async _putRecord(): Promise<void> {
      throw new IdempotencyItemAlreadyExistsError(
        "found",
        new IdempotencyRecord({ ...over, status: "INPROGRESS" }),
      );
    }
  }
  const persistenceStore = new Finding({ tableName, awsSdkV3Client: newClient() });
  // What is over for an hour is meant to be tried again, as inconsistent; it is taken for running.
  expect(
    await outcomeOf(
      makeIdempotent(async (_event: object) => "done", { persistenceStore })(newEvent()),
    ),
  ).toBe("IdempotencyAlreadyInProgressError");

  const waiting: Kind = {
    name: "ClaimLayer",
    create: (awsSdkV3Client) => new ClaimLayer({ tableName, awsSdkV3Client }),
  };
  const { first, call, runs } = slowFirst(waiting);
  const dead = outcomeOf(call(1));
  await waitFor(() => expect(runs()).toBe(1));
  expect(await call(60_000)).toBe("second");
  first.reject(named("Late"));
  expect(await dead).toBe("Late");
});

test("W8: a claim has a lease even without a Lambda context, as in a container", async () => {
  await both(
    async (kind) => {
      const gate = Promise.withResolvers<string>();
      const before = await records();
      const run = makeIdempotent((_event: object) => gate.promise, {
        persistenceStore: kind.create(newClient()),
      });
      const running = run(newEvent());
      let held: Record<string, unknown>[] = [];
      await waitFor(async () => {
        held = (await records()).filter(({ id }) => !before.some((other) => other["id"] === id));
        expect(held).toHaveLength(1);
      });
      gate.resolve("done");
      await running;
      return "in_progress_expiration" in (held[0] as object);
    },
    { powertools: false, claimLayer: true },
  );
});

test("W9: two functions that share a layer, each with its own prefix, keep their claims apart", async () => {
  await both(
    async (kind) => {
      const persistenceStore = kind.create(newClient());
      const event = newEvent();
      const gates = { a: Promise.withResolvers<string>(), b: Promise.withResolvers<string>() };
      const create = (prefix: "a" | "b") =>
        makeIdempotent((_event: object) => gates[prefix].promise, {
          persistenceStore,
          keyPrefix: `${kind.name}-${prefix}`,
        });
      const [a, b] = [create("a"), create("b")];
      const running = [a(event), b(event)];
      gates.a.resolve("of a");
      await running[0];
      gates.b.resolve("of b");
      await running[1];
      return [await outcomeOf(a(event)), await outcomeOf(b(event))];
    },
    { powertools: ["IdempotencyAlreadyInProgressError", "of b"], claimLayer: ["of a", "of b"] },
  );
});

test("W10: under Middy a handler that returns nothing is not run again", async () => {
  await both(
    async (kind) => {
      let runs = 0;
      const event = newEvent();
      const handler = middy()
        .use(makeHandlerIdempotent({ persistenceStore: kind.create(newClient()) }))
        .handler(async () => {
          runs += 1;
        });
      await handler(event, lasting(60_000));
      await handler(event, lasting(60_000));
      return runs;
    },
    { powertools: 2, claimLayer: 1 },
  );
});

test("W11: an event that the handler changes completes the record that was claimed", async () => {
  await both(
    async (kind) => {
      const { id } = newEvent();
      const run = makeIdempotent(
        async (event: { id: string }) => {
          event.id = `${event.id}-changed`;
          return "done";
        },
        { persistenceStore: kind.create(newClient()) },
      );
      return [await run({ id }), await outcomeOf(run({ id }))];
    },
    { powertools: ["done", "IdempotencyAlreadyInProgressError"], claimLayer: ["done", "done"] },
  );
});

test("W12: a failing release does not replace the error of the handler", async () => {
  await both(
    async (kind) => {
      const disturbed = newClient();
      disturbed.middlewareStack.add(
        (next, { commandName }) =>
          async (parameters) => {
            if (commandName === "DeleteItemCommand")
              throw named("ProvisionedThroughputExceededException");
            return next(parameters);
          },
        { step: "initialize" },
      );
      const run = makeIdempotent(
        async (_event: object) => {
          throw new NotFoundError("order", "o1");
        },
        { persistenceStore: kind.create(disturbed) },
      );
      return outcomeOf(run(newEvent()));
    },
    { powertools: "IdempotencyPersistenceLayerError", claimLayer: "NotFoundError" },
  );
});

test("W13: an error of the handler never makes it run again, whatever the error's name", async () => {
  let runs = 0;
  const fails = async () => {
    runs += 1;
    throw named("IdempotencyInconsistentStateError");
  };
  const run = makeIdempotent(async (_event: object) => fails(), {
    persistenceStore: powertools.create(newClient()),
  });
  vi.spyOn(console, "warn").mockImplementation(() => undefined);
  expect(await outcomeOf(run(newEvent()))).toBe("IdempotencyInconsistentStateError");
  expect(runs).toBe(3);

  runs = 0;
  expect(await scoped(fails)(lasting(60_000))).toMatchObject({ statusCode: 500 });
  expect(runs).toBe(1);
});

test("W14: POWERTOOLS_IDEMPOTENCY_DISABLED does not silently turn it off", async () => {
  vi.stubEnv("POWERTOOLS_IDEMPOTENCY_DISABLED", "true");
  let runs = 0;
  const persistenceStore = powertools.create(newClient());
  const run = makeIdempotent(async (_event: object) => ++runs, { persistenceStore });
  const event = newEvent();
  expect([await run(event), await run(event)]).toEqual([1, 2]);

  vi.stubEnv("NODE_ENV", "production");
  expect(() => new ClaimLayer({ tableName })).toThrow("POWERTOOLS_IDEMPOTENCY_DISABLED");
});

/** A handler behind `requestScope` and `writeOnce`, which a caller calls again and again with the same key. */
function scoped(handler: () => Promise<unknown>): (context: Context) => Promise<unknown> {
  for (const [name, value] of Object.entries(app.env)) vi.stubEnv(name, value);
  vi.spyOn(process.stdout, "write").mockImplementation(() => true);
  const server = buildServer({ features: [], once: { waitMs: 0 } });
  const run = middy({
    executionMode: requestScope(server, {
      handler: "legacy.order.create",
      access: access.everyone,
    }),
  })
    .use(writeOnce())
    .handler(handler);
  const event = {
    version: "2.0",
    rawPath: "/orders",
    headers: { "idempotency-key": `key-${++ids}` },
    requestContext: { http: { method: "POST" } },
    body: "{}",
  };
  return (context) => run(event, context) as Promise<unknown>;
}

/** All that the table holds. */
async function records(): Promise<Record<string, unknown>[]> {
  const { Items = [] } = await newClient().send(
    new ScanCommand({ TableName: tableName, ConsistentRead: true }),
  );
  return Items.map((item) =>
    Object.fromEntries(
      Object.entries(item).map(([name, value]) => [name, Object.values(value)[0]]),
    ),
  );
}
