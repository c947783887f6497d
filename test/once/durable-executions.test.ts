import { IdempotencyConfig, makeIdempotent } from "@aws-lambda-powertools/idempotency";
import { DynamoDBPersistenceLayer } from "@aws-lambda-powertools/idempotency/dynamodb";
import type { BasePersistenceLayer } from "@aws-lambda-powertools/idempotency/persistence";
import type { Context } from "aws-lambda";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { ClaimLayer } from "../../src/hosts/claim-layer/index.ts";
import { waitFor } from "../support/wait-for.ts";
import { type IdempotencyTable, keyOf, startIdempotencyTable } from "./idempotency-table.ts";

/**
 * Lambda's durable functions: an execution that waits is over in its process, and goes on in another, which runs the
 * function from its beginning. A layer of its own stands for each process.
 */
let table: IdempotencyTable;
let ids = 0;

beforeAll(async () => {
  table = await startIdempotencyTable();
});
afterAll(() => table.close());
beforeEach(() => {
  vi.spyOn(console, "warn").mockImplementation(() => undefined);
});
afterEach(() => {
  vi.restoreAllMocks();
});

interface Event {
  readonly id: string;
}
/** The part of a durable context that is read, by Powertools and by the layer. */
interface DurableContext {
  readonly step: () => void;
  readonly lambdaContext: Context;
  readonly executionContext: { readonly durableExecutionArn: string };
  readonly durableExecutionMode: "ExecutionMode" | "ReplayMode";
}
const durableContext = (
  execution: string,
  mode: DurableContext["durableExecutionMode"],
  remainingMs = 60_000,
): DurableContext => ({
  step: () => undefined,
  lambdaContext: { getRemainingTimeInMillis: () => remainingMs } as Context, // the part of it that is read
  executionContext: {
    durableExecutionArn: `arn:aws:lambda:us-east-1:1:function:f:1/durable-execution/${execution}/x`,
  },
  durableExecutionMode: mode,
});

const newLayer = (waitMs = 0) =>
  new ClaimLayer({ tableName: table.tableName, awsSdkV3Client: table.client(), waitMs });
const stockLayer = () =>
  new DynamoDBPersistenceLayer({ tableName: table.tableName, awsSdkV3Client: table.client() });
const newEvent = () => ({ id: `event-${++ids}` });
const inProgress = "IdempotencyAlreadyInProgressError";
const nameOf = (error: Error) => error.name;

type Work = (event: Event, context: DurableContext) => Promise<unknown>;
interface ProcessOptions {
  readonly isTold?: boolean;
  readonly layer?: BasePersistenceLayer;
  readonly config?: ConstructorParameters<typeof IdempotencyConfig>[0];
}

/** A process with its function, told of the execution by `durable` or not. */
function inProcess(
  work: Work,
  { isTold = true, layer = newLayer(), config = {} }: ProcessOptions = {},
) {
  let runs = 0;
  const run = makeIdempotent(
    async (event: Event, context: DurableContext) => {
      runs += 1;
      return (await work(event, context)) as string; // any value is stored
    },
    {
      persistenceStore: layer,
      config: new IdempotencyConfig({ eventKeyJmesPath: "id", ...config }),
    },
  );
  const call = isTold && layer instanceof ClaimLayer ? layer.durable(run) : run;
  return {
    call: (event: Event, context: DurableContext) => call(event, context).catch(nameOf),
    runs: () => runs,
  };
}

/** An execution that has waited in its first process: that call has no end. */
async function suspended(
  event: Event,
  execution: string,
  options: ProcessOptions & { readonly remainingMs?: number } = {},
) {
  const { promise: started, resolve } = Promise.withResolvers<void>();
  const { call } = inProcess(() => {
    resolve();
    return new Promise<never>(() => undefined);
  }, options);
  void call(event, durableContext(execution, "ExecutionMode", options.remainingMs));
  await started;
}

describe.each([true, false])("where the layer knows the execution: %s", (isTold) => {
  test("a replay in another process continues at once, and its answer is stored", async () => {
    const event = newEvent();
    await suspended(event, "a", { isTold });
    const replay = inProcess(async () => "done", { isTold, layer: newLayer(60_000) });
    expect(await replay.call(event, durableContext("a", "ReplayMode"))).toBe("done");
    const again = inProcess(async () => "again", { isTold });
    expect(await again.call(event, durableContext("b", "ExecutionMode"))).toBe("done");
    expect(
      await inProcess(async () => "again", { layer: stockLayer() }).call(
        event,
        durableContext("c", "ExecutionMode"),
      ),
    ).toBe("done");
    expect([replay.runs(), again.runs()]).toEqual([1, 0]);
  });

  test("another execution with the same payload is a concurrent duplicate", async () => {
    const event = newEvent();
    await suspended(event, "a", { isTold });
    const other = inProcess(async () => "done", { isTold });
    expect(await other.call(event, durableContext("b", "ExecutionMode"))).toBe(inProgress);
    expect(other.runs()).toBe(0);
  });

  test("a replay that fails releases the claim", async () => {
    const event = newEvent();
    await suspended(event, "a", { isTold });
    const replay = inProcess(async () => Promise.reject(new TypeError("no")), { isTold });
    expect(await replay.call(event, durableContext("a", "ReplayMode"))).toBe("TypeError");
    expect(
      await inProcess(async () => "done", { isTold }).call(
        event,
        durableContext("b", "ExecutionMode"),
      ),
    ).toBe("done");
  });

  test("functions called in a replay have claims of their own", async () => {
    const event = newEvent();
    await suspended(event, "a", { isTold });
    const layer = newLayer(60_000);
    const charge = makeIdempotent(async (_order: Event) => "charged", {
      persistenceStore: layer,
      keyPrefix: "charge",
    });
    const work = async (order: Event) => [await charge({ ...order }), await charge({ ...order })];
    const replay = inProcess(work, { isTold, layer });
    expect(await replay.call(event, durableContext("a", "ReplayMode"))).toEqual([
      "charged",
      "charged",
    ]);
    const again = inProcess(async () => "again", { isTold });
    expect(await again.call(event, durableContext("b", "ExecutionMode"))).toEqual([
      "charged",
      "charged",
    ]);
  });

  test("a replay after the answer was stored runs on its own checkpoints, and leaves the stored answer", async () => {
    const event = newEvent();
    await inProcess(async () => "first", { isTold }).call(
      event,
      durableContext("a", "ExecutionMode"),
    );
    for (const useLocalCache of [false, true]) {
      const replay = inProcess(async () => "replayed", { isTold, config: { useLocalCache } });
      expect(await replay.call(event, durableContext("b", "ExecutionMode"))).toBe("first");
      expect(await replay.call(event, durableContext("a", "ReplayMode"))).toBe("replayed");
      expect(await replay.call(event, durableContext("b", "ExecutionMode"))).toBe("first");
    }
    expect(
      await inProcess(async () => "again", { isTold }).call(
        event,
        durableContext("b", "ExecutionMode"),
      ),
    ).toBe("first");
    const failing = inProcess(async () => Promise.reject(new TypeError("no")), { isTold });
    expect(await failing.call(event, durableContext("a", "ReplayMode"))).toBe("TypeError");
    expect(
      await inProcess(async () => "again", { isTold }).call(
        event,
        durableContext("b", "ExecutionMode"),
      ),
    ).toBe("first");
  });

  test("a replay continues what Powertools' own layer started", async () => {
    const event = newEvent();
    await suspended(event, "a", { layer: stockLayer() });
    const replay = inProcess(async () => "done", { isTold });
    expect(await replay.call(event, durableContext("a", "ReplayMode"))).toBe("done");
    expect(
      await inProcess(async () => "again", { isTold }).call(
        event,
        durableContext("b", "ExecutionMode"),
      ),
    ).toBe("done");
  });
});

test("a replay unknown to the layer does not replace an answer stored while it ran", async () => {
  const event = newEvent();
  await suspended(event, "a", { isTold: false });
  const replay = inProcess(
    async () => {
      await inProcess(async () => "first", { isTold: false }).call(
        event,
        durableContext("a", "ReplayMode"),
      );
      return "second";
    },
    { isTold: false },
  );
  expect(await replay.call(event, durableContext("a", "ReplayMode"))).toBe("second");
  expect(
    await inProcess(async () => "again").call(event, durableContext("b", "ExecutionMode")),
  ).toBe("first");
});

test("a replay unknown to the layer fails if another run has taken over while it ran", async () => {
  const event = newEvent();
  await suspended(event, "a", { isTold: false });
  const replay = inProcess(
    async () => {
      const record = await table.get(keyOf(event.id));
      await table.put({ ...record, owner: { S: "somebody else" } });
      return "second";
    },
    { isTold: false },
  );
  expect(await replay.call(event, durableContext("a", "ReplayMode"))).toBe(
    "IdempotencyPersistenceLayerError",
  );
});

test("an execution that waits longer than its function's timeout keeps its claim", async () => {
  const event = newEvent();
  await suspended(event, "a", { remainingMs: 1 });
  const record = await table.get(keyOf(event.id));
  expect(Number(record?.["in_progress_expiration"]?.N) - Date.now()).toBeGreaterThan(3_500_000);
  expect(record?.["execution"]?.S).toMatch(/^[\w-]{43}$/);
  await suspended(event, "a", { remainingMs: 1, config: { expiresAfterSeconds: 7_200 } });
  expect(
    Number((await table.get(keyOf(event.id)))?.["in_progress_expiration"]?.N) - Date.now(),
  ).toBeGreaterThan(7_000_000);
});

test("an execution's next invocation takes over from a first one that died, even without a replay", async () => {
  const event = newEvent();
  await suspended(event, "a");
  expect(
    await inProcess(async () => "done").call(event, durableContext("a", "ExecutionMode")),
  ).toBe("done");
});

test("calls within one invocation are concurrent duplicates, whatever their execution", async () => {
  const layer = newLayer(60_000);
  const gate = Promise.withResolvers<string>();
  let charges = 0;
  const charge = makeIdempotent(
    async (_order: Event) => {
      charges += 1;
      return gate.promise;
    },
    { persistenceStore: layer, keyPrefix: "charge" },
  );
  const { call } = inProcess(
    async (event) => {
      const duplicates = Promise.all([charge({ ...event }), charge({ ...event })]);
      await waitFor(() => expect(charges).toBe(1));
      gate.resolve("charged");
      return duplicates;
    },
    { layer },
  );
  expect(await call(newEvent(), durableContext("a", "ReplayMode"))).toEqual(["charged", "charged"]);
  expect(charges).toBe(1);
});

test("a replay that finds another execution running waits for it, and fails", async () => {
  const event = newEvent();
  await suspended(event, "b");
  const replay = inProcess(async () => "done", { layer: newLayer(50) });
  expect(await replay.call(event, durableContext("a", "ReplayMode"))).toBe(inProgress);
  expect(replay.runs()).toBe(0);
});

test("a replay whose work another execution has done in the meantime gets its answer", async () => {
  const event = newEvent();
  await inProcess(async () => "of b").call(event, durableContext("b", "ExecutionMode"));
  const plain = inProcess(async () => "of a");
  expect(await plain.call(event, durableContext("a", "ReplayMode"))).toBe("of b");
  const hooked = inProcess(async () => "of a", {
    config: { responseHook: (response) => `${response}, hooked` },
  });
  expect(await hooked.call(event, durableContext("a", "ReplayMode"))).toBe("of b, hooked");
  expect([plain.runs(), hooked.runs()]).toEqual([0, 0]);
});

test("an adoption whose response is lost still belongs to its execution", async () => {
  const event = newEvent();
  await suspended(event, "a");
  const client = table.client();
  let losses = 1;
  client.middlewareStack.add(
    (next) => async (parameters) => {
      const output = await next(parameters);
      if (JSON.stringify(parameters.input).includes(":from") && losses-- > 0)
        throw new Error("socket hang up");
      return output;
    },
    { step: "initialize" },
  );
  const layer = new ClaimLayer({ tableName: table.tableName, awsSdkV3Client: client, waitMs: 0 });
  const replay = inProcess(async () => "done", { layer });
  expect(await replay.call(event, durableContext("a", "ReplayMode"))).toBe("done");
  expect(losses).toBeLessThan(1);
});

test("an error of a durable function is thrown, and a context without an execution is refused", async () => {
  const failing = inProcess(async () => Promise.reject("not an error"));
  expect(await failing.call(newEvent(), durableContext("a", "ExecutionMode"))).toBe(
    "IdempotencyUnknownError",
  );
  const run = newLayer().durable(async () => Promise.reject(new RangeError("no")));
  await expect(run({}, durableContext("a", "ExecutionMode"))).rejects.toThrow(RangeError);
  const text = newLayer().durable(async () => Promise.reject("no error"));
  await expect(text({}, durableContext("a", "ExecutionMode"))).rejects.toBe("no error");
  for (const context of [undefined, {}, { executionContext: { durableExecutionArn: "" } }]) {
    await expect(run({}, context as never)).rejects.toThrow(
      "no executionContext.durableExecutionArn",
    ); // as in JavaScript
  }
});
