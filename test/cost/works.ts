// The kinds of work on docs/cost.md, each done once in a test app whose AWS is a meter.
import { createHash } from "node:crypto";
import { vi } from "vitest";
import { z } from "zod";
import {
  access,
  buildServer,
  createUserConfig,
  defineFeature,
  type Feature,
} from "../../src/index.ts";
import {
  CrashError,
  startTestApp,
  type TestApp,
  type TestFetchOptions,
} from "../../src/tools/testing/index.ts";
import type { Bill, Meter } from "./meter.ts";

declare module "../../src/index.ts" {
  interface Events {
    "priced.stored": { text: string };
  }
}

/** Charges of one piece of work, and the bytes of its log lines at level `info`. */
export interface Work {
  readonly name: string;
  readonly bill: Bill;
  /** Charges of empty polls and sweeps in the meantime. */
  readonly idle: Bill;
  readonly logBytes: number;
  /** Pieces of work that share the charges. */
  readonly among: number;
}

const text = z.object({ text: z.string() });

const priced = defineFeature("priced", (r) => {
  const key = () => createUserConfig("number", { default: 1 });
  const keys = Object.fromEntries(
    Array.from({ length: 11 }, (_, n) => [`key${n}`, key()]),
  ) as Record<`key${number}`, ReturnType<typeof key>>; // safe: these are its names
  const config = r.config({ keys });
  const table = r.table("items", { partitionKey: "pk", tenant: true });
  const quota = r.quota("storage", { limit: 1_000_000, window: "month" });
  r.query("plain.show", {
    route: "GET /plain",
    access: access.authenticated,
    handler: async () => ({ ok: true }),
  });
  r.query("config.show", {
    route: "GET /values",
    access: access.authenticated,
    handler: async (ctx) => {
      for (const one of Object.values(config)) await ctx.config(one);
      return { ok: true };
    },
  });
  r.query("rate.show", {
    route: "GET /rate",
    access: access.authenticated,
    rateLimit: { per: "tenant", requests: 10_000, window: "day" },
    handler: async () => ({ ok: true }),
  });
  r.write("plain.write", {
    route: "POST /plain",
    access: access.authenticated,
    input: text,
    handler: async (_ctx, input) => input,
  });
  r.write("item.create", {
    route: "POST /items",
    access: access.authenticated,
    input: text,
    handler: async (ctx, input) => {
      const Item = { ...table.key(ctx, ctx.requestId), ...input };
      return ctx.commit([{ Put: { TableName: table.name, Item } }], { ok: true });
    },
  });
  r.write("quota.add", {
    route: "POST /quota",
    access: access.authenticated,
    handler: async (ctx) => {
      await quota.add(ctx, 1);
      return { ok: true };
    },
  });
  r.event("priced.stored", text);
  r.write("event.publish", {
    route: "POST /events",
    access: access.authenticated,
    input: text,
    handler: async (ctx, input) => {
      await ctx.publish("priced.stored", input);
      return { ok: true };
    },
  });
  r.on("priced.stored", { name: "index", handler: async () => undefined });
  const print = r.job("text.print", { input: text, handler: async () => undefined });
  r.write("job.enqueue", {
    route: "POST /jobs",
    access: access.authenticated,
    input: text,
    handler: async (ctx, input) => {
      await ctx.enqueue(print, input);
      return { ok: true };
    },
  });
});

const timed = defineFeature("timed", (r) => {
  r.schedule("hour.strike", { cron: "0 * * * *", handler: async () => undefined });
});

const ann = { id: "ann", tenantId: "acme", roles: ["owner"] };
const rateChecks = 1_000;

/** Does each kind of work once, with payloads of `bytes`. */
export async function measuredWorks(meter: Meter, bytes: number): Promise<readonly Work[]> {
  const payload = { text: textOf(bytes) };
  const works: Work[] = [];
  const app = await startPriced(meter, priced);
  try {
    const post = (path: string, key = path) =>
      send(app, path, { body: payload, as: ann, headers: { "idempotency-key": key } });
    const measured = measuring(meter, app, works);
    await send(app, "/plain", { as: ann });
    await measured("plain request", () => send(app, "/plain", { as: ann }));
    await measured("cold configuration of eleven keys", () => send(app, "/values", { as: ann }));
    app.clock.advance(60_000);
    await measured("configuration refresh", () => send(app, "/values", { as: ann }));
    await measured("claimed write", () => post("/plain"));
    await measured("replay in the same process", () => post("/plain"));
    await crash(app);
    await measured("replay in another process", () => post("/plain"));
    await measured("commit of one item", () => post("/items"));
    await measured("quota", () => post("/quota"));
    await measured("publish", () => post("/events"));
    await measured("its consumer", () => app.settled());
    await measured("enqueue", () => post("/jobs"));
    await measured("its job", () => app.settled());
    await measured(
      "rate-limit check",
      async () => {
        for (let n = 0; n < rateChecks; n += 1) await send(app, "/rate", { as: ann });
      },
      rateChecks,
    );
    await measureApiKeys(app, measured);
    await app.settled();
    await measured("idle", () => app.settled());
  } finally {
    await app.close();
  }
  const clock = await startPriced(meter, timed);
  try {
    await clock.settled();
    clock.clock.advance(3_600_000);
    await measuring(meter, clock, works)("scheduled run", () => clock.settled());
  } finally {
    await clock.close();
  }
  return works;
}

/** Text that no compression makes smaller, the same each time. */
export function textOf(bytes: number): string {
  let text = "";
  while (text.length < bytes) text += createHash("sha512").update(text).digest("base64url");
  return text.slice(0, bytes);
}

type Measured = (name: string, work: () => Promise<unknown>, among?: number) => Promise<void>;

async function measureApiKeys(app: TestApp, measured: Measured): Promise<void> {
  const body = { name: "program", roles: ["owner"] };
  const created = await send(app, "/api-keys", { body, as: ann });
  const { key } = JSON.parse(created) as { readonly key: string };
  const headers = { "x-api-key": key };
  await send(app, "/plain", { headers }); // which notes its use for 30 minutes
  app.clock.advance(60_000);
  await measured("API key check, every 5 s", () => send(app, "/plain", { headers }));
}

async function startPriced({ endpoint }: Meter, feature: Feature): Promise<TestApp> {
  vi.stubEnv("KEELSON_TEST_ENDPOINT", endpoint);
  try {
    const auth = { apiKeys: { manage: access.roles("owner") } };
    return await startTestApp(buildServer({ features: [feature], auth }));
  } finally {
    vi.unstubAllEnvs();
  }
}

function measuring(meter: Meter, app: TestApp, works: Work[]): Measured {
  return async (name, work, among = 1) => {
    meter.taken();
    const lines = app.logs.length;
    await work();
    const { bill, idle } = meter.taken();
    const logBytes = app.logs.slice(lines).reduce((sum, line) => sum + bytesOf(line), 0);
    works.push({ name, bill, idle, logBytes, among });
  };
}

/** Durations have different numbers of digits. */
function bytesOf(line: Readonly<Record<string, unknown>>): number {
  if (line["level"] === "debug") return 0;
  const steady = { ...line, ...("durationMs" in line && { durationMs: 10 }) };
  return JSON.stringify({ ...steady, ...("ageMs" in line && { ageMs: 100 }) }).length + 1;
}

async function send(app: TestApp, path: string, options: TestFetchOptions): Promise<string> {
  const response = await app.fetch(path, options);
  const answer = await response.text();
  if (!response.ok) throw new Error(`${path} was answered with ${response.status}: ${answer}`);
  return answer;
}

/** Another process, with an empty memory. */
async function crash(app: TestApp): Promise<void> {
  app.faults.before("PutItem", 1).crash();
  const headers = { "idempotency-key": "crash" };
  const body = { text: "" };
  await send(app, "/plain", { body, as: ann, headers }).catch((error: unknown) => {
    if (!(error instanceof CrashError)) throw error;
  });
  await send(app, "/plain", { as: ann });
}
