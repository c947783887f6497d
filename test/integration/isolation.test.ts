import { GetCommand, PutCommand } from "@aws-sdk/lib-dynamodb";
import {
  access,
  buildServer,
  createTenantConfig,
  createUserConfig,
  currentContext,
  defineFeature,
  type Query,
} from "keelson";
import { type HttpApiEvent, lambdaHttp } from "keelson/lambda";
import { startTestApp, type TestApp } from "keelson/testing";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { z } from "zod";
import { seededRandom } from "../../src/tools/testing/races/search.ts";
import { runs } from "../support/runs.ts";

const random = seededRandom(Number(process.env["KEELSON_TEST_SEED"]));

const probeInput = z.object({ n: z.number() });
const probeOutput = z.object({ tenantId: z.string(), limit: z.number() });

declare module "keelson" {
  interface Queries {
    "isolation.probe.nested": Query<typeof probeInput, typeof probeOutput>;
  }
}

/** 200 where all runs are asked for. */
const requests = Math.max(40, runs(200)); // enough for each kind of request
const numbers = Array.from({ length: requests }, (_, n) => n);

/** Which test is running: an ID that was used is answered from before. */
let round = 0;

/** Whose request it is. */
const identityOf = (n: number, host: Host) => ({
  requestId: `${host}-${n}-${round}`,
  tenantId: `tenant-${n}`,
  userId: `user-${n}`,
});
type Host = "http" | "lambda";

/** What a handler saw that belongs to somebody else. */
const foreign: string[] = [];

/** Holds every request until all of them are being handled. */
let gate = gateFor(0);

const isolation = defineFeature("isolation", (r) => {
  const config = r.config({
    keys: {
      limit: createTenantConfig("number", { default: -1 }),
      theme: createUserConfig("number", { default: -1 }),
    },
  });
  const derived = r.config({
    keys: {
      doubled: createTenantConfig("number", {
        computed: async (ctx) => 2 * (await ctx.config(config.limit)),
      }),
    },
  });
  const table = r.table("isolation", { partitionKey: "pk", sortKey: "sk", tenant: false });

  r.query("probe.nested", {
    input: probeInput,
    output: probeOutput,
    handler: async (ctx, { n }) => {
      await turns(n % 3);
      ctx.log.info("nested", { n });
      return { tenantId: ctx.user.tenantId ?? "", limit: await ctx.config(config.limit) };
    },
  });
  r.write("probe.run", {
    route: "POST /isolation/:host/:n",
    access: access.authenticated,
    input: z.object({ host: z.enum(["http", "lambda"]), n: z.coerce.number() }),
    handler: async (ctx, { host, n }) => {
      const mine = identityOf(n, host);
      const check = (where: string, seen: unknown, expected: unknown) => {
        if (seen !== expected)
          foreign.push(
            `${mine.requestId} in ${where}: ${String(seen)} instead of ${String(expected)}`,
          );
      };
      const checkAll = (where: string) => {
        const ambient = currentContext();
        check(`${where}, ambient`, ambient?.requestId, mine.requestId);
        check(`${where}, ambient`, ambient?.tenantId, mine.tenantId);
        check(`${where}, ambient`, ambient?.userId, mine.userId);
        check(`${where}, ctx`, ctx.requestId, mine.requestId);
        check(`${where}, ctx`, ctx.user.tenantId, mine.tenantId);
        check(`${where}, ctx`, ctx.user.id, mine.userId);
      };
      const Key = { pk: mine.tenantId, sk: host };
      const steps: Record<string, () => Promise<void>> = {
        "tenant key": async () => check("tenant key", await ctx.config(config.limit), n),
        "user key": async () => check("user key", await ctx.config(config.theme), 1_000 + n),
        "computed key": async () => check("computed key", await ctx.config(derived.doubled), 2 * n),
        query: async () => {
          const { tenantId, limit } = await ctx.query("isolation.probe.nested", { n });
          check("query", tenantId, mine.tenantId);
          check("query", limit, n);
        },
        database: async () => {
          await ctx.db.send(
            new PutCommand({
              TableName: table.name,
              Item: { ...Key, requestId: currentContext()?.requestId },
            }),
          );
          const { Item } = await ctx.db.send(
            new GetCommand({ TableName: table.name, Key, ConsistentRead: true }),
          );
          check("database", Item?.["requestId"], mine.requestId);
        },
        log: async () => {
          await turns(1);
          ctx.log.info("outer", { n });
        },
        timer: () => new Promise((resolve) => setTimeout(() => resolve(checkAll("timer")), n % 5)),
        failure: async () => {
          const error = await ctx
            .config({ id: "none:config:none" } as never)
            .catch((caught: unknown) => caught); // safe: it is refused
          check("failure", error instanceof Error, true);
        },
      };
      checkAll("beginning");
      await gate.pass();
      for (const [name, step] of shuffled(Object.entries(steps))) {
        await turns(Math.floor(random() * 4));
        checkAll(`before ${name}`);
        await step();
        checkAll(`after ${name}`);
      }
      await Promise.all(
        shuffled(Object.values(steps)).map(async (step) => {
          await step();
          checkAll("together");
        }),
      );
      if (n % 10 === 0) throw new Error(`request ${n} fails`);
      return { ...mine, ambient: currentContext()?.tenantId };
    },
  });
});

const server = buildServer({ features: [isolation] });
let app: TestApp;

beforeAll(async () => {
  app = await startTestApp(server);
  await Promise.all(
    numbers.flatMap((n) => [
      app.rows.put({
        scope: "tenant",
        tenantId: `tenant-${n}`,
        key: "isolation:config:limit",
        value: n,
      }),
      app.rows.put({
        scope: "user",
        tenantId: `tenant-${n}`,
        userId: `user-${n}`,
        key: "isolation:config:theme",
        value: 1_000 + n,
      }),
    ]),
  );
});
afterAll(() => app.close());

test("overlapping requests over HTTP never see or log each other's IDs", async () => {
  round += 1;
  gate = gateFor(requests);
  expectOwnAnswers(await Promise.all(numbers.map(overHttp)), "http");

  expect(foreign).toEqual([]);
  expectOwnLines(app.logs, "http");
});

test("overlapping invocations in one process never see or log each other's IDs", async () => {
  const { invoke, logs, restore } = lambda();
  try {
    round += 1;
    gate = gateFor(requests);
    expectOwnAnswers(await Promise.all(numbers.map(invoke)), "lambda");
  } finally {
    restore();
  }
  expect(foreign).toEqual([]);
  expectOwnLines(logs(), "lambda");
});

test("concurrent requests on both hosts, for the same tenants, never see or log each other's IDs", async () => {
  const { invoke, logs, restore } = lambda();
  const before = app.logs.length;
  try {
    round += 1;
    gate = gateFor(requests);
    // Half of them on each: of twice as many, reads of a busy machine time out.
    const half = numbers.slice(0, requests / 2);
    const [http, invoked] = await Promise.all([
      Promise.all(half.map(overHttp)),
      Promise.all(half.map(invoke)),
    ]);
    expectOwnAnswers(http, "http");
    expectOwnAnswers(invoked, "lambda");
  } finally {
    restore();
  }
  expect(foreign).toEqual([]);
  expectOwnLines(app.logs.slice(before), "http", requests / 2);
  expectOwnLines(logs(), "lambda", requests / 2);
});

interface Answered {
  readonly status: number | undefined;
  readonly requestId: unknown;
  readonly body: unknown;
}

async function overHttp(n: number): Promise<Answered> {
  const { requestId, tenantId, userId } = identityOf(n, "http");
  const headers = { "x-request-id": requestId };
  const response = await app.fetch(`/isolation/http/${n}`, {
    method: "POST",
    headers,
    as: { id: userId, tenantId },
  });
  return {
    status: response.status,
    requestId: response.headers.get("x-request-id"),
    body: await response.json(),
  };
}

/** The same server as a Lambda function of this process, and what it prints. */
function lambda() {
  for (const [name, value] of Object.entries(app.env)) vi.stubEnv(name, value);
  vi.stubEnv("LOG_LEVEL", "debug");
  const lines: string[] = [];
  const stdout = vi.spyOn(process.stdout, "write").mockImplementation((text) => {
    lines.push(...String(text).split("\n").filter(Boolean));
    return true;
  });
  const handler = lambdaHttp(buildServer({ features: [isolation] }));
  return {
    invoke: async (n: number): Promise<Answered> => {
      const running = handler(event(n), { awsRequestId: `aws-${n}` } as Parameters<
        typeof handler
      >[1]); // the part that is read
      if (currentContext() !== undefined)
        foreign.push(`the caller of lambda-${n}: ${currentContext()?.requestId}`);
      const { statusCode, headers, body } = await running;
      return {
        status: statusCode,
        requestId: headers?.["x-request-id"],
        body: JSON.parse(body ?? ""),
      };
    },
    logs: () => lines.map((line) => JSON.parse(line) as Record<string, unknown>),
    restore: () => {
      stdout.mockRestore();
      vi.unstubAllEnvs();
    },
  };
}

function event(n: number): HttpApiEvent {
  const { requestId, tenantId, userId } = identityOf(n, "lambda");
  const path = `/isolation/lambda/${n}`;
  return {
    version: "2.0",
    routeKey: "$default",
    rawPath: path,
    rawQueryString: "",
    headers: { "X-Request-ID": requestId },
    isBase64Encoded: false,
    requestContext: {
      stage: "$default",
      http: {
        method: "POST",
        path,
        protocol: "HTTP/1.1",
        sourceIp: "203.0.113.9",
        userAgent: "test",
      },
      authorizer: { jwt: { claims: { sub: userId, tenantId }, scopes: [] } },
    },
  } as unknown as HttpApiEvent; // the parts of an event that are read
}

function expectOwnAnswers(answers: readonly Answered[], host: Host): void {
  expect(answers).toEqual(
    answers.map((_, n) => {
      const mine = identityOf(n, host);
      return n % 10 === 0
        ? {
            status: 500,
            requestId: mine.requestId,
            body: expect.objectContaining({ error: "internal_error", requestId: mine.requestId }),
          }
        : { status: 200, requestId: mine.requestId, body: { ...mine, ambient: mine.tenantId } };
    }),
  );
}

/** Every line has a request, the tenant and user of that request, and data of no other. */
function expectOwnLines(
  logs: readonly Readonly<Record<string, unknown>>[],
  host: Host,
  count = requests,
): void {
  const counted = new Map<string, number>();
  for (const { msg, requestId, tenantId, userId, handler, n, message } of logs) {
    const own = Number(String(requestId).split("-").at(1));
    expect({ requestId, tenantId, userId }).toEqual(identityOf(own, host));
    if (n !== undefined) expect(n).toBe(own);
    if (msg === "request.failed") expect(message).toBe(`request ${own} fails`);
    expect(handler).toBe(msg === "nested" ? "isolation.probe.nested" : "isolation.probe.run");
    counted.set(String(msg), (counted.get(String(msg)) ?? 0) + 1);
  }
  // On a machine that has much else to do a read takes longer than a row is fresh: its line is a request's own, as the others.
  counted.delete("config.stale");
  const each = {
    "once.taken": count,
    outer: 2 * count,
    nested: 2 * count,
    "request.completed": count,
  };
  expect(Object.fromEntries(counted)).toEqual({ ...each, "request.failed": count / 10 });
}

function gateFor(count: number) {
  const open = Promise.withResolvers<void>();
  let waiting = 0;
  return {
    pass: () => {
      waiting += 1;
      if (waiting === count) open.resolve();
      return open.promise;
    },
  };
}

async function turns(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn++) await new Promise((resolve) => setImmediate(resolve));
}

function shuffled<Item>(items: readonly Item[]): Item[] {
  return items
    .map((item) => ({ item, at: random() }))
    .sort((a, b) => a.at - b.at)
    .map(({ item }) => item);
}
