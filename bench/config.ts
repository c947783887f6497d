import { DynamoDBProvider } from "@aws-lambda-powertools/parameters/dynamodb";
import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { DynamoDBDocumentClient, PutCommand } from "@aws-sdk/lib-dynamodb";
import { buildServer, createUserConfig, defineFeature } from "../src/index.ts";
import { createCachedRows, groupKeys } from "../src/parts/config/cache/cached-rows.ts";
import { userPartition } from "../src/parts/config/read/rows.ts";
import { startTestApp, type TestApp } from "../src/tools/testing/index.ts";
import { callsOf, type Result, sideBySide } from "./measure.ts";

const preference = () =>
  createUserConfig("number", { default: 10, bounds: { min: 1, max: 1_000 } });

const bench = defineFeature("bench", (r) => {
  r.table("parameters", { partitionKey: "id", tenant: false });
  const config = r.config({
    keys: {
      one: preference(),
      two: preference(),
      three: preference(),
      four: preference(),
      five: preference(),
      six: preference(),
      seven: preference(),
      eight: preference(),
      nine: preference(),
      ten: preference(),
    },
  });
  return { config };
});

/** Reading configuration, beside Powertools' DynamoDBProvider on the same embedded stack. */
export async function configResults(): Promise<Result[]> {
  const app = await startTestApp(buildServer({ features: [bench], log: { requests: false } }));
  const peer = openPeer(app);
  try {
    memory();
    return [
      await warm(app, peer),
      await cold(app, peer),
      await concurrent(app, peer),
      await absent(app, peer),
    ];
  } finally {
    peer.client.destroy();
    await app.close();
  }
}

/** Prints what a hundred thousand tenants with one user each leave behind; there is no peer that bounds it. */
function memory(): void {
  const maxTenants = 2_000;
  const reader = { read: async () => [] };
  const keyGroups = groupKeys(
    Object.values(bench.config).map((key) => ({ ...key, feature: "bench", name: key.id })),
  );
  const cached = createCachedRows({
    ttlMs: 5_000,
    maxStaleMs: 30_000,
    maxTenants,
    reader,
    keyGroups,
  });
  const heap = () => {
    globalThis.gc?.();
    return process.memoryUsage().heapUsed;
  };
  const pass = (tenants: number) => {
    for (let index = 0; index < tenants; index++) {
      const partition = userPartition(`tenant-${index}`, "ann");
      for (const { id } of Object.values(bench.config))
        cached.noteWrite(partition, id, { value: index, version: 1 });
    }
    return heap();
  };
  const before = heap();
  const [atBound, after] = [pass(maxTenants), pass(100_000)];
  const kilobytes = (bytes: number) => Math.round((bytes - before) / 1_024);
  console.log(
    `memory: ${maxTenants} tenants ${kilobytes(atBound)} KB, after 100,000 ${kilobytes(after)} KB`,
    cached.size(),
  );
}

/** One key that has a row at the tenant's level, read again and again by one request; the peer keeps it for an hour. */
async function warm(app: TestApp, { open, put }: Peer): Promise<Result> {
  await app.rows.put({ scope: "tenant", tenantId: "acme", key: bench.config.one.id, value: 77 });
  await put("warm", 77);
  const ctx = await app.ctx({ id: "ann", tenantId: "acme" });
  const provider = open();
  const maxAge = 3_600;
  await provider.get("warm", { maxAge });
  return sideBySide({
    id: "config-warm",
    ours: async (times) => {
      for (let i = 0; i < times; i++) await ctx.config(bench.config.one);
    },
    peer: async (times) => {
      for (let i = 0; i < times; i++) await provider.get("warm", { maxAge });
    },
  });
}

/** Ten keys of user scope, one after the other, whose rows stand at the system's level. */
async function cold(app: TestApp, { calls, open, put }: Peer): Promise<Result> {
  const keys = Object.values(bench.config);
  for (const { id } of keys) {
    await app.rows.put({ scope: "system", key: id, value: 5 });
    await put(`system/${id}`, 5);
  }
  const ctx = await app.ctx({ id: "cold", tenantId: "cold" });
  const provider = open();
  return callsOf("config-cold-calls", {
    ours: await counted(app.calls, async () => {
      for (const key of keys) await ctx.config(key);
    }),
    peer: await counted(calls, async () => {
      for (const { id } of keys) {
        (await provider.get(`user/${id}`)) ??
          (await provider.get(`tenant/${id}`)) ??
          (await provider.get(`system/${id}`));
      }
    }),
  });
}

/** Fifty requests that read one key at once. */
async function concurrent(app: TestApp, { calls, open }: Peer): Promise<Result> {
  const contexts = await Promise.all(
    Array.from({ length: 50 }, () => app.ctx({ id: "many", tenantId: "many" })),
  );
  const provider = open();
  return callsOf("config-concurrent-calls", {
    ours: await counted(app.calls, () =>
      Promise.all(contexts.map((ctx) => ctx.config(bench.config.one))),
    ),
    peer: await counted(calls, () => Promise.all(contexts.map(() => provider.get("warm")))),
  });
}

/** A hundred reads, one after the other, of a key that has no row. */
async function absent(app: TestApp, { calls, open }: Peer): Promise<Result> {
  const ctx = await app.ctx({ id: "nobody", tenantId: "nobody" });
  const provider = open();
  return callsOf("config-absent-calls", {
    ours: await counted(app.calls, async () => {
      for (let i = 0; i < 100; i++) await ctx.config(bench.config.two);
    }),
    peer: await counted(calls, async () => {
      for (let i = 0; i < 100; i++) await provider.get("absent");
    }),
  });
}

type Peer = ReturnType<typeof openPeer>;

/** Powertools' provider, which counts the calls of its client. */
function openPeer(app: TestApp) {
  const {
    AWS_ENDPOINT_URL = "",
    AWS_REGION = "",
    AWS_ACCESS_KEY_ID = "",
    AWS_SECRET_ACCESS_KEY = "",
  } = app.env;
  const client = new DynamoDBClient({
    endpoint: AWS_ENDPOINT_URL,
    region: AWS_REGION,
    credentials: { accessKeyId: AWS_ACCESS_KEY_ID, secretAccessKey: AWS_SECRET_ACCESS_KEY },
  });
  const calls: Record<string, number> = {};
  client.middlewareStack.add(
    (next, { commandName = "" }) =>
      (parameters) => {
        calls[commandName] = (calls[commandName] ?? 0) + 1;
        return next(parameters);
      },
    { step: "initialize", name: "count" },
  );
  const tableName = "keelson-parameters";
  return {
    client,
    calls,
    open: () => new DynamoDBProvider({ tableName, awsSdkV3Client: client }),
    put: (id: string, value: number) =>
      DynamoDBDocumentClient.from(client).send(
        new PutCommand({ TableName: tableName, Item: { id, value } }),
      ),
  };
}

/** How many calls `work` makes. */
async function counted(
  calls: Readonly<Record<string, number>>,
  work: () => Promise<unknown>,
): Promise<number> {
  const total = () => Object.values(calls).reduce((sum, count) => sum + count, 0);
  const before = total();
  await work();
  return total() - before;
}
