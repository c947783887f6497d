import {
  IdempotencyConfig,
  IdempotencyItemAlreadyExistsError,
  makeIdempotent,
} from "@aws-lambda-powertools/idempotency";
import { DynamoDBPersistenceLayer } from "@aws-lambda-powertools/idempotency/dynamodb";
import {
  BasePersistenceLayer,
  type IdempotencyRecord,
} from "@aws-lambda-powertools/idempotency/persistence";
import { DynamoDBClient, PutItemCommand } from "@aws-sdk/client-dynamodb";
import { z } from "zod";
import { systemClock } from "../src/base/process/clock.ts";
import { access, buildServer, defineFeature } from "../src/index.ts";
import { type ClaimRecord, claimKey, judge, keyText } from "../src/parts/once/claim.ts";
import type { ClaimStore } from "../src/parts/once/claim-store.ts";
import { fingerprintOf } from "../src/parts/once/fingerprint.ts";
import { createOnce } from "../src/parts/once/once.ts";
import { CrashError, startTestApp, type TestApp } from "../src/tools/testing/index.ts";
import { callsOf, type Result, sideBySide } from "./measure.ts";

let runs = 0;
const orders = defineFeature("orders", (r) => {
  r.table("idempotency", { partitionKey: "id", tenant: false });
  const table = r.table("orders", { partitionKey: "pk", tenant: false });
  r.write("order.note", {
    route: "POST /notes",
    access: access.authenticated,
    handler: async () => ({ run: ++runs }),
  });
  r.write("order.create", {
    route: "POST /orders",
    access: access.authenticated,
    handler: async (ctx) => {
      const Item = { pk: `${++runs}` };
      return ctx.commit([{ Put: { TableName: table.name, Item } }], { run: runs });
    },
  });
  r.event("order.placed", z.object({ id: z.string() }));
  r.on("order.placed", { name: "count", handler: async () => void ++runs });
});

declare module "../src/base/types/names.ts" {
  interface Events {
    "order.placed": { id: string };
  }
}
const ann = { id: "ann", tenantId: "acme" };

/** Writes that happen once, beside Powertools Idempotency on the same embedded DynamoDB. */
export async function onceResults(): Promise<Result[]> {
  const app = await startTestApp(buildServer({ features: [orders], log: { requests: false } }));
  const peer = openPeer(app);
  try {
    const write = {
      ours: await callsOfOurs(app, () => send(app, "/notes", "first")),
      peer: await peer.callsOf(() => peer.note({ id: "first" })),
    };
    const remembered = await callsOfOurs(app, () => send(app, "/notes", "first"));
    console.log(`replay-calls: ${remembered} where this process holds the answer`);
    await crash(app);
    const replay = {
      ours: await callsOfOurs(app, () => send(app, "/notes", "first")),
      peer: await peer.callsOf(() => peer.note({ id: "first" })),
    };
    const commit = {
      ours: await callsOfOurs(app, () => send(app, "/orders", "second")),
      peer: await peer.callsOf(() => peer.create({ id: "second" })),
    };
    const duplicates = {
      ours: await callsOfOurs(app, () => duplicatesOf(app)),
      peer: await peer.callsOf(() =>
        Promise.allSettled(Array.from({ length: 50 }, () => peer.note({ id: "duplicates" }))),
      ),
    };
    const placed = {
      kind: "shared",
      type: "order.placed",
      payload: { id: "o1" },
      causedBy: "r1",
      origRequestId: "r1",
    } as const;
    const event = {
      ours: await callsOfOurs(app, () => app.deliver({ ...placed, eventId: "fresh" })),
      peer: await peer.callsOf(() => peer.note({ id: "fresh" })),
    };
    const duplicate = await callsOfOurs(app, () => app.deliver({ ...placed, eventId: "fresh" }));
    const peerDuplicate = await peer.callsOf(() => peer.note({ id: "fresh" }));
    if (duplicate !== 1) throw new Error(`a duplicate of an event takes ${duplicate} calls`);
    console.log(`event-calls: ${duplicate} for a duplicate, the peer's ${peerDuplicate}`);
    return [
      callsOf("write-calls", write),
      callsOf("replay-calls", replay),
      callsOf("commit-calls", commit),
      callsOf("duplicate-calls", duplicates),
      callsOf("event-calls", event),
      await cpu(),
    ];
  } finally {
    peer.close();
    await app.close();
  }
}

async function send(app: TestApp, path: string, key: string): Promise<string> {
  const response = await app.fetch(path, {
    body: {},
    as: ann,
    headers: { "idempotency-key": key },
  });
  if (response.status !== 200) throw new Error(`${path} was answered with ${response.status}`);
  return response.text();
}

/** Fifty callers at once, who get the answer of one run. */
async function duplicatesOf(app: TestApp): Promise<void> {
  const before = runs;
  const answers = await Promise.all(
    Array.from({ length: 50 }, () => send(app, "/notes", "duplicates")),
  );
  if (new Set(answers).size !== 1 || runs !== before + 1)
    throw new Error(`${new Set(answers).size} answers of ${runs - before} runs`);
}

/** Another process, which has nothing in its memory. */
async function crash(app: TestApp): Promise<void> {
  app.faults.before("PutItem", 1).crash();
  await send(app, "/notes", "crash").catch((error: unknown) => {
    if (!(error instanceof CrashError)) throw error;
  });
}

async function callsOfOurs(app: TestApp, work: () => Promise<unknown>): Promise<number> {
  const total = () => Object.values(app.calls).reduce((sum, count) => sum + count, 0);
  const before = total();
  await work();
  return total() - before;
}

/** The same with Powertools: its effect is a write of its own. */
function openPeer({ env }: TestApp) {
  const client = new DynamoDBClient({
    endpoint: env["AWS_ENDPOINT_URL"] ?? "",
    region: env["AWS_REGION"] ?? "",
    credentials: {
      accessKeyId: env["AWS_ACCESS_KEY_ID"] ?? "",
      secretAccessKey: env["AWS_SECRET_ACCESS_KEY"] ?? "",
    },
  });
  let calls = 0;
  client.middlewareStack.add(
    (next) => (parameters) => {
      calls += 1;
      return next(parameters);
    },
    { step: "initialize" },
  );
  const config = new IdempotencyConfig({ eventKeyJmesPath: "id" });
  config.registerLambdaContext({ getRemainingTimeInMillis: () => 30_000 } as never); // the part of it that is read
  const persistenceStore = new DynamoDBPersistenceLayer({
    tableName: "keelson-idempotency",
    awsSdkV3Client: client,
  });
  const note = async (_event: { id: string }) => ({ run: ++runs });
  const create = async (_event: { id: string }) => {
    await client.send(
      new PutItemCommand({ TableName: "keelson-orders", Item: { pk: { S: `${++runs}` } } }),
    );
    return { run: runs };
  };
  return {
    note: makeIdempotent(note, { persistenceStore, config, keyPrefix: "note" }),
    create: makeIdempotent(create, { persistenceStore, config, keyPrefix: "create" }),
    callsOf: async (work: () => Promise<unknown>) => {
      calls = 0;
      await work();
      return calls;
    },
    close: () => client.destroy(),
  };
}

/** What claiming and completing costs of the processor, with the records in memory. */
function cpu(): Promise<Result> {
  const event = { id: "order-1", tenantId: "acme", item: "a", lines: [{ sku: "s1", count: 2 }] };
  const config = new IdempotencyConfig({
    eventKeyJmesPath: "[tenantId, id]",
    payloadValidationJmesPath: "[item, lines]",
  });
  config.registerLambdaContext({ getRemainingTimeInMillis: () => 30_000 } as never); // as above
  return sideBySide({
    id: "write-cpu",
    times: 10_000,
    ours: async (times) => {
      const once = createOnce({
        store: memoryStore(),
        clock: systemClock,
        waitMs: 0,
        draining: new AbortController().signal,
      });
      for (let i = 0; i < times; i++) {
        const input = { ...event, id: `order-${i}` };
        await once.run({
          claim: {
            kind: "write",
            key: claimKey(
              ["write", "idempotency-key", "user", input.tenantId, "ann", "orders.order.create"],
              input.id,
            ),
            fingerprint: fingerprintOf("orders.order.create", input),
            comparesFingerprint: true,
            replayedHeaders: [],
            cipher: undefined,
            deadlineMs: undefined,
            assertFits: () => undefined,
          },
          logPrefix: "once",
          log: silent,
          signal: undefined,
          work: async () => ({
            status: 200,
            headers: {},
            cookies: [],
            body: JSON.stringify({ id: input.id }),
          }),
          answerOf: (answer) => answer,
        });
      }
    },
    peer: async (times) => {
      const persistenceStore = new MemoryLayer();
      const run = makeIdempotent(async ({ id }: typeof event) => ({ id }), {
        persistenceStore,
        config,
      });
      for (let i = 0; i < times; i++) await run({ ...event, id: `order-${i}` });
    },
  });
}

const nothing = () => undefined;
const silent = {
  debug: nothing,
  info: nothing,
  warn: nothing,
  error: nothing,
  child: () => silent,
};

/** Records in memory, for the peer. */
class MemoryLayer extends BasePersistenceLayer {
  readonly #records = new Map<string, IdempotencyRecord>();

  protected override async _putRecord(record: IdempotencyRecord): Promise<void> {
    const known = this.#records.get(record.idempotencyKey);
    if (known !== undefined) throw new IdempotencyItemAlreadyExistsError("there is one", known);
    this.#records.set(record.idempotencyKey, record);
  }

  protected override async _updateRecord(record: IdempotencyRecord): Promise<void> {
    this.#records.set(record.idempotencyKey, record);
  }

  protected override async _deleteRecord({ idempotencyKey }: IdempotencyRecord): Promise<void> {
    this.#records.delete(idempotencyKey);
  }

  protected override async _getRecord(idempotencyKey: string): Promise<IdempotencyRecord> {
    return this.#records.get(idempotencyKey) as IdempotencyRecord; // safe: it is asked for what it said was there
  }
}

/** Records in memory, for ours. */
function memoryStore(): ClaimStore {
  const records = new Map<string, ClaimRecord>();
  const unused = () => Promise.reject(new Error("not measured here"));
  return {
    take: async (key, claim, nowMs) => {
      const known = records.get(keyText(key));
      if (known !== undefined && judge(known, claim.owner, nowMs) !== "free") return known;
      records.set(keyText(key), claim);
      return undefined;
    },
    complete: async (key, claim) => {
      if (records.get(keyText(key))?.owner !== claim.owner) return false;
      records.set(keyText(key), claim);
      return true;
    },
    release: async (key) => void records.delete(keyText(key)),
    vacate: unused,
    extend: unused,
    read: unused,
    renew: unused,
    commit: unused,
    putParts: unused,
    readParts: unused,
  };
}
