import { IdempotencyConfig, makeIdempotent } from "@aws-lambda-powertools/idempotency";
import { DynamoDBPersistenceLayer } from "@aws-lambda-powertools/idempotency/dynamodb";
import { makeHandlerIdempotent } from "@aws-lambda-powertools/idempotency/middleware";
import { DynamoDBClient, GetItemCommand } from "@aws-sdk/client-dynamodb";
import middy from "@middy/core";
import type { Context } from "aws-lambda";
import { buildServer, defineFeature } from "keelson";
import {
  type RaceClients,
  RaceError,
  type RaceFrame,
  type RaceScenario,
  raceEverywhere,
  startTestApp,
  type TestApp,
} from "keelson/testing";
import { afterAll, beforeAll, expect, test, vi } from "vitest";

/** Defects that the race kit finds in Powertools' own layer by itself. */
let app: TestApp;
let client: DynamoDBClient;
const tables = defineFeature("powertools", (r) => {
  r.table("idempotency", { partitionKey: "id", tenant: false });
});
const tableName = "keelson-idempotency";

beforeAll(async () => {
  app = await startTestApp(buildServer({ features: [tables] })); // makes the table
  client = new DynamoDBClient({
    endpoint: app.env["AWS_ENDPOINT_URL"] ?? "",
    region: "us-east-1",
    credentials: { accessKeyId: "a", secretAccessKey: "b" },
    maxAttempts: 2,
  });
  vi.spyOn(console, "warn").mockImplementation(() => undefined);
});
afterAll(async () => {
  vi.restoreAllMocks();
  client.destroy();
  await app.close();
});

const layer = () => new DynamoDBPersistenceLayer({ tableName, awsSdkV3Client: client });
// Safe cast: only this member is read.
const lasting = { getRemainingTimeInMillis: () => 20_000 } as Context;

interface Called {
  readonly id: string;
}
type Call = (event: Called) => Promise<unknown>;

/** A store call of the handler, at which an order may switch. */
const work = () =>
  client.send(new GetItemCommand({ TableName: tableName, Key: { id: { S: "-" } } }));

/** Counts the runs of each order. */
class Runs {
  started = 0;
  running = 0;
  mostAtOnce = 0;
  readonly answers: unknown[] = [];

  /** @param wait - what the handler waits for before it ends. */
  async run(
    end: (number: number) => unknown,
    wait: () => Promise<unknown> = work,
  ): Promise<unknown> {
    this.started += 1;
    const number = this.started;
    this.running += 1;
    this.mostAtOnce = Math.max(this.mostAtOnce, this.running);
    try {
      await wait();
      return end(number);
    } finally {
      this.running -= 1;
    }
  }
}

interface Race extends Omit<RaceScenario<RaceFrame, unknown>, "requests" | "check" | "arrange"> {
  readonly duplicates?: number;
  readonly calls: (runs: Runs) => Call | readonly Call[];
  readonly check: (
    seen: { readonly runs: Runs; readonly repeat: Call; readonly event: Called },
    results: readonly PromiseSettledResult<unknown>[],
  ) => Promise<void> | void;
}

async function found({ duplicates = 2, calls, check, ...rest }: Race): Promise<RaceError> {
  let runs = new Runs();
  let made: readonly Call[] = [];
  const event = ({ tenantId }: RaceFrame) => ({ id: `${tenantId}-${nonce}` });
  const nonce = crypto.randomUUID();
  const target: RaceClients = { clients: [client] };
  const requests = Array.from({ length: duplicates }, (_, index) =>
    Object.defineProperty(
      (frame: RaceFrame) => made[index % made.length]?.(event(frame)) ?? Promise.resolve(),
      "name",
      { value: "call" },
    ),
  );
  const error = await raceEverywhere(target, {
    ...rest,
    requests,
    arrange: () => {
      runs = new Runs();
      made = [calls(runs)].flat();
    },
    check: (frame, results) =>
      check({ runs, event: event(frame), repeat: made[0] as Call }, results),
  }).catch((reason: unknown) => reason);
  if (!(error instanceof RaceError)) throw new Error("found nothing", { cause: error });
  return error;
}

const wrapped = (handler: (event: Called) => Promise<unknown>, keyPrefix?: string): Call => {
  const run = makeIdempotent(
    async (event: Called, _context: Context) => (await handler(event)) as string,
    {
      persistenceStore: layer(),
      config: new IdempotencyConfig({}),
      ...(keyPrefix !== undefined && { keyPrefix }),
    },
  );
  return (event) => run(event, lasting);
};
const succeeded = (results: readonly PromiseSettledResult<unknown>[]) =>
  results.flatMap((result) => (result.status === "fulfilled" ? [result.value] : []));

test("W1: a late failure erases the answer of the run that took over", async () => {
  await found({
    expiries: 1,
    calls: (runs) =>
      wrapped(() =>
        runs.run((number) => {
          if (number === 1) throw new Error("late");
          return number;
        }),
      ),
    check: async ({ runs, repeat, event }, results) => {
      if (succeeded(results).length === 0) return;
      const before = runs.started;
      await repeat(event).catch(() => undefined);
      expect(runs.started).toBe(before);
    },
  });
});

test("W2: a late success replaces the answer of the run that took over", async () => {
  await found({
    expiries: 1,
    calls: (runs) => wrapped(() => runs.run((number) => number)),
    check: (_seen, results) => expect(new Set(succeeded(results)).size).toBeLessThan(2),
  });
});

test("W3: under Middy, a refused duplicate deletes the record of the run in flight", async () => {
  await found({
    duplicates: 3,
    calls: (runs) => {
      const handler = middy()
        .use(makeHandlerIdempotent({ persistenceStore: layer() }))
        .handler(() => runs.run((number) => number));
      return (event) => handler(event, lasting) as Promise<unknown>;
    },
    check: ({ runs }) => expect(runs.mostAtOnce).toBe(1),
  });
});

test("W5: Middy's early timeout deletes the record of a run that goes on", async () => {
  const slow = () => new Promise((resolve) => setTimeout(resolve, 60_000)); // of the race's clock
  await found({
    duplicates: 1,
    calls: (runs) => {
      const handler = middy()
        .use(makeHandlerIdempotent({ persistenceStore: layer() }))
        .handler(() => runs.run((number) => number, slow));
      const call: Call = (event) => handler(event, lasting) as Promise<unknown>;
      return (event) => call(event).catch(() => call(event)); // as a client retries
    },
    check: ({ runs }) => expect(runs.mostAtOnce).toBe(1),
  });
});

test("W6: a caller whose answer was lost locks itself out", async () => {
  await found({
    duplicates: 1,
    lostAnswers: 1,
    calls: (runs) => wrapped(() => runs.run((number) => number)),
    check: ({ runs }) => expect(runs.started).toBe(1),
  });
});

test("W9: two functions that share a layer complete each other's records", async () => {
  await found({
    calls: (runs) => {
      const persistenceStore = layer();
      return ["a", "b"].map((keyPrefix) => {
        const run = makeIdempotent(
          async (_event: Called, _context: Context) => (await runs.run(() => keyPrefix)) as string,
          {
            persistenceStore,
            keyPrefix,
            config: new IdempotencyConfig({}),
          },
        );
        return (event: Called) => run(event, lasting);
      });
    },
    check: async ({ repeat, event }) => expect(await repeat(event)).toBe("a"),
  });
});

test("W10: under Middy, a handler that returns nothing runs for each duplicate", async () => {
  await found({
    calls: (runs) => {
      const handler = middy()
        .use(makeHandlerIdempotent({ persistenceStore: layer() }))
        .handler(() => runs.run(() => undefined));
      return (event) => handler(event, lasting) as Promise<unknown>;
    },
    check: ({ runs }) => expect(runs.started).toBe(1),
  });
});

test("W11: an event that the handler changes completes another record", async () => {
  await found({
    calls: (runs) =>
      wrapped((event) => {
        Object.assign(event, { id: `${event.id}-changed` });
        return runs.run((number) => number);
      }),
    check: async ({ repeat, event }) => expect(await repeat(event)).toBe(1),
  });
});

test("W12: a failing release replaces the handler's error", async () => {
  await found({
    duplicates: 1,
    throttles: 2,
    calls: (runs) =>
      wrapped(() =>
        runs.run(() => {
          throw Object.assign(new Error("order o1 not found"), { name: "NotFoundError" });
        }),
      ),
    check: ({ runs }, [result]) => {
      if (runs.started > 0 && result?.status === "rejected")
        expect(result.reason.name).toBe("NotFoundError");
    },
  });
});
