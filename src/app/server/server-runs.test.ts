import { GetCommand, PutCommand } from "@aws-sdk/lib-dynamodb";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { z } from "zod";
import { ConflictError } from "../../base/errors/errors.ts";
import type { ShutdownTimes } from "../../base/process/shutdown-limits.ts";
import { currentContext } from "../../base/request/ambient.ts";
import { bindAlone } from "../../hosts/container/adapters.ts";
import { createTenantConfig } from "../../parts/config/declare/declaration.ts";
import { startTestApp, type TestApp } from "../../tools/testing/index.ts";
import { defineFeature } from "../features/feature.ts";
import type { PipelineContext } from "../handlers/pipeline-context.ts";
import type { RunOptions } from "../registry/options.ts";
import type { Runtime } from "../runtime/runtime.ts";
import { buildServer, serverInternals } from "./server.ts";
import { createServerRuns } from "./server-runs.ts";

const seenSchema = z.object({ by: z.string() });

declare module "../../base/types/names.ts" {
  interface Events {
    "run.seen": z.output<typeof seenSchema>;
  }
  interface Jobs {
    "runs.run.report": z.input<typeof seenSchema>;
  }
}

let heard: unknown[] = [];
/** What the next write does. */
let asked: (ctx: PipelineContext) => unknown = () => undefined;
const runs = defineFeature("runs", (r) => {
  const config = r.config({ keys: { size: createTenantConfig("number", { default: 3 }) } });
  const table = r.table("rows", { partitionKey: "pk", tenant: true });
  r.event("run.seen", seenSchema);
  r.on("run.seen", {
    name: "hear",
    handler: async ({ user }, { payload, causedBy }) =>
      void heard.push(["event", user.tenantId, payload.by, causedBy]),
  });
  r.job("run.report", {
    input: seenSchema,
    handler: async (ctx, { by }) => {
      heard.push(["job", ctx.user.tenantId, by]);
      if (by === "chain") await ctx.publish("run.seen", { by: "job" });
    },
  });
  r.write("run.ask", { handler: async (ctx) => asked(ctx) });
  return { config, table };
});
const features = [runs] as const;
const server = buildServer({ features, shutdown: { drainMs: 400 } });
const reason = "a test";
const acme = { reason, tenantId: "acme" };

let app: TestApp;
beforeAll(async () => {
  app = await startTestApp(server);
});
afterAll(() => app.close());
beforeEach(() => {
  heard = [];
});
afterEach(() => vi.unstubAllEnvs());

const linesOf = (msg: string) => app.logs.filter((line) => line["msg"] === msg);
const sizeOf = (ctx: PipelineContext) => ctx.config(runs.config.size);
const failed = (run: Promise<unknown>): Promise<unknown> =>
  run.then(
    () => undefined,
    (error: unknown) => error,
  );

test("a run without a host, and without a way to bind one, names both remedies", async () => {
  const run = buildServer({ features: [] }).run({ reason }, () => undefined);
  await expect(run).rejects.toThrow(
    "no host of the server runs in this process; make one, or leave keelson out of the script's bundle",
  );
});

describe("a run without a request", () => {
  test("has a complete ctx with its tenant, user and reason", async () => {
    await server.run({ ...acme, userId: "ann" }, async (ctx) => {
      await ctx.db.send(
        new PutCommand({ TableName: runs.table.name, Item: await runs.table.key(ctx, "row") }),
      );
    });
    const user = await server.run(
      { ...acme, userId: "ann", roles: ["admin", "admin"] },
      async (ctx) => {
        const Key = await runs.table.key(ctx, "row");
        const { Item } = await ctx.db.send(
          new GetCommand({ TableName: runs.table.name, Key, ConsistentRead: true }),
        );
        ctx.log.info("run.looked");
        const ambient = currentContext();
        const isAmbient =
          ambient?.requestId === ctx.requestId &&
          ambient.signal === ctx.signal &&
          ambient.tenantId === "acme";
        return { user: ctx.user, Item, size: await sizeOf(ctx), isAmbient, request: ctx.request };
      },
    );
    expect(user).toEqual({
      user: { id: "ann", tenantId: "acme", roles: ["admin"], kind: "user" },
      Item: { pk: "acme/row" },
      size: 3,
      isAmbient: true,
      request: undefined,
    });
    const { requestId, ...started } = linesOf("run.started").at(-1) ?? {};
    expect(started).toMatchObject({
      level: "info",
      reason,
      tenantId: "acme",
      userId: "ann",
      handler: "keelson.server.run",
    });
    expect(linesOf("run.looked").at(-1)).toMatchObject({ requestId });
    expect(linesOf("run.completed").at(-1)).toMatchObject({
      requestId,
      durationMs: expect.any(Number),
      outcome: "processed",
      replayed: false,
    });
  });

  test("settles what it causes, which belongs to its tenant", async () => {
    const result = await server.run(acme, async (ctx) => {
      await ctx.publish("run.seen", { by: "run" });
      await ctx.enqueue("runs.run.report", { by: "run" });
      await ctx.delivery.send("log", { text: "hello" });
      return { id: ctx.requestId };
    });
    await app.settled();
    expect(heard.sort()).toEqual([
      ["event", "acme", "run", result.id],
      ["job", "acme", "run"],
    ]);
    expect(app.deliveries).toEqual([expect.objectContaining({ channel: "log" })]);
  });

  test("passes an error to its caller, drops its events and logs one line", async () => {
    const broken = new Error("broken");
    const failing = (error: Error) =>
      failed(
        server.run(acme, async (ctx) => {
          await ctx.publish("run.seen", { by: "dropped" });
          throw error;
        }),
      );
    expect(await failing(broken)).toBe(broken);
    expect(linesOf("run.failed").at(-1)).toMatchObject({
      level: "error",
      reason,
      message: "broken",
      tenantId: "acme",
    });
    const taken = new ConflictError("taken");
    expect(await failing(taken)).toBe(taken);
    expect(linesOf("run.failed").at(-1)).toMatchObject({ level: "warn", error: "taken" });
    await app.settled();
    expect(heard).toEqual([]);
  });

  test("as the system crosses tenants and enqueues for a tenant, which owns everything that follows", async () => {
    await server.run({ reason }, async (ctx) => {
      expect(ctx.user).toEqual({ id: undefined, tenantId: undefined, roles: [], kind: "user" });
      await ctx
        .acrossTenants("a count")
        .send(new PutCommand({ TableName: runs.table.name, Item: { pk: "evil/row" } }));
      for (const tenantId of ["acme", "evil"])
        await ctx.enqueue("runs.run.report", { by: "chain" }, { tenantId });
      await ctx.enqueue("runs.run.report", { by: "system" });
    });
    await app.settled();
    expect(heard.sort()).toEqual([
      ["event", "acme", "job", expect.any(String)],
      ["event", "evil", "job", expect.any(String)],
      ["job", undefined, "system"],
      ["job", "acme", "chain"],
      ["job", "evil", "chain"],
    ]);
    const wrong = await failed(
      server.run({ reason }, (ctx) =>
        ctx.enqueue("runs.run.report", { by: "x" }, { tenantId: "" }),
      ),
    );
    expect(wrong).toEqual(new TypeError('ctx.enqueue: tenantId is ""; use a string'));
  });

  test("of a tenant cannot enqueue for another, and neither can a request from any caller", async () => {
    const forEvil = (ctx: PipelineContext) =>
      ctx.enqueue("runs.run.report", { by: "x" }, { tenantId: "evil" });
    expect(await failed(server.run({ ...acme, roles: ["systemAdmin"] }, forEvil))).toMatchObject({
      status: 403,
    });
    asked = forEvil;
    expect(await failed(app.call("runs.run.ask"))).toMatchObject({ status: 403 });
    const ctx = await app.ctx({ id: "ann", tenantId: "acme" });
    expect(await failed(forEvil(ctx))).toMatchObject({ status: 403 });
  });

  test.each<[what: string, options: unknown, problem: string]>([
    ["nothing", undefined, "the first argument is not an object; pass { reason: ... }"],
    [
      "an unknown option",
      { reason, tenant: "acme" },
      'unknown option "tenant"; known are reason, tenantId, userId, roles, requestId',
    ],
    [
      "no reason",
      {},
      "the reason is undefined; give the purpose of the run as a string of at most 500 characters",
    ],
    [
      "an empty reason",
      { reason: " \n" },
      'the reason is " \\n"; give the purpose of the run as a string of at most 500 characters',
    ],
    ["a long reason", { reason: "x".repeat(501) }, 'the reason is "xxx'],
    [
      "a tenant that is none",
      { reason, tenantId: 7 },
      "tenantId is 7; use a string, or leave it out",
    ],
    ["a user that is none", { ...acme, userId: "" }, 'userId is ""; use a string, or leave it out'],
    [
      "a user without tenant",
      { reason, userId: "ann" },
      "a user belongs to a tenant; pass tenantId as well",
    ],
    [
      "roles that are a text",
      { ...acme, roles: "admin" },
      "roles is not a list of at most 100 names",
    ],
    ["roles that are none", { ...acme, roles: [7] }, "roles is not a list of at most 100 names"],
    [
      "a request ID that is none",
      { reason, requestId: "a b" },
      'requestId is "a b"; use 1 to 128 characters of A-Z',
    ],
    [
      "a request ID that is a number",
      { reason, requestId: 7 },
      "requestId is 7; use 1 to 128 characters of A-Z",
    ],
  ])("refuses %s", async (_, options, problem) => {
    const error = await failed(server.run(options as RunOptions, () => expect.unreachable()));
    expect(error).toBeInstanceOf(TypeError);
    expect(String(error)).toContain(`server.run: ${problem}`);
  });

  test("requires a function", async () => {
    const error = await failed(server.run({ reason }, undefined as never));
    expect(error).toEqual(
      new TypeError("server.run: the second argument is not a function; pass (ctx) => ..."),
    );
  });
});

describe("a run with a request ID", () => {
  const count = (requestId: string, options: Partial<RunOptions> = {}) =>
    server.run({ ...acme, requestId, ...options }, async (ctx) => {
      await ctx.publish("run.seen", { by: requestId });
      return { at: new Date(0), left: undefined, id: ctx.requestId };
    });

  test("is done once within its tenant and user, and returns the same result again", async () => {
    const first = await count("r-1");
    expect(first).toEqual({ at: "1970-01-01T00:00:00.000Z", id: "r-1" });
    expect(await Promise.all([count("r-1"), count("r-1")])).toEqual([first, first]);
    expect(linesOf("run.completed").at(-1)).toMatchObject({ replayed: true, requestId: "r-1" });
    await count("r-1", { userId: "ann" });
    await count("r-1", { tenantId: "evil" });
    await server.run({ reason, requestId: "r-1" }, (ctx) =>
      ctx.publish("run.seen", { by: "system" }),
    );
    await app.settled();
    expect(heard.map((what) => (what as unknown[]).slice(1, 3)).sort()).toEqual([
      [undefined, "system"],
      ["acme", "r-1"],
      ["acme", "r-1"],
      ["evil", "r-1"],
    ]);
  });

  test("returns its committed result, or undefined if that is undefined", async () => {
    const commits = (requestId: string | undefined, result: unknown) =>
      server.run({ ...acme, ...(requestId === undefined ? {} : { requestId }) }, async (ctx) => {
        const row = {
          Put: { TableName: runs.table.name, Item: await runs.table.key(ctx, "committed") },
        };
        await ctx.commit([row], result);
        throw new Error("too late");
      });
    const at = new Date(0);
    expect([await commits("r-2", { at }), await commits("r-2", { at })]).toEqual([
      { at: at.toJSON() },
      { at: at.toJSON() },
    ]);
    expect([await commits("r-3", undefined), await commits("r-3", undefined)]).toEqual([
      undefined,
      undefined,
    ]);
    expect(await commits(undefined, { at })).toEqual({ at });
  });

  test("fails when its result has no JSON representation", async () => {
    const returns = (result: unknown) =>
      failed(server.run({ ...acme, requestId: "r-4" }, () => result));
    expect(String(await returns(() => 1))).toContain(
      "the result is a function, which JSON does not have",
    );
    expect(String(await returns(7n))).toContain("BigInt");
    expect(await server.run({ ...acme, requestId: "r-4" }, () => "done")).toBe("done");
  });
});

describe("closing a server", () => {
  test("waits for current runs and refuses new ones; afterwards it runs again", async () => {
    const [begun, go] = [Promise.withResolvers<void>(), Promise.withResolvers<string>()];
    const running = server.run(acme, () => {
      begun.resolve();
      return go.promise;
    });
    await begun.promise;
    const closing = server.close();
    expect(server.close()).toBeInstanceOf(Promise);
    const refused = await failed(server.run(acme, () => "never"));
    expect(refused).toEqual(
      new Error("the server is closing; call server.run and server.tenants before you close it"),
    );
    go.resolve("ran");
    expect(await running).toBe("ran");
    await closing;
    expect(await server.run(acme, () => "again")).toBe("again");
  });

  test("aborts runs that take too long, and names those that do not stop", async () => {
    const [begun, stopped] = [Promise.withResolvers<void>(), Promise.withResolvers<unknown>()];
    const never = Promise.withResolvers<string>();
    const running = server.run({ reason: "endless" }, async (ctx) => {
      ctx.signal?.addEventListener("abort", () => stopped.resolve(ctx.signal?.reason));
      begun.resolve();
      return never.promise;
    });
    await begun.promise;
    await server.close();
    expect(await stopped.promise).toMatchObject({ code: "timeout" });
    expect(linesOf("run.cut_off").at(-1)).toMatchObject({
      level: "error",
      runs: ["endless"],
      count: 1,
    });
    never.resolve("late");
    expect(await running).toBe("late");
  });

  test("a drain time of undefined is the default", async () => {
    const { bound } = serverInternals(server);
    // Safe cast: plain JavaScript passes `undefined`.
    const shutdown = { drainMs: undefined } as unknown as Partial<ShutdownTimes>;
    const bindAlone = () => Promise.reject(new Error("the test app has bound the server"));
    const script = createServerRuns({ shutdown, bound: () => bound?.(), bindAlone });
    const [begun, go] = [Promise.withResolvers<AbortSignal | undefined>(), Promise.withResolvers()];
    const running = script.run(acme, (ctx) => {
      begun.resolve(ctx.signal);
      return go.promise;
    });
    const signal = await begun.promise;
    const timer = vi.spyOn(globalThis, "setTimeout");
    const closing = script.close();
    expect(timer.mock.calls.map(([, ms]) => ms)).toEqual([29_000, 30_000]);
    timer.mockRestore();
    expect(signal?.aborted).toBe(false);
    go.resolve("ran");
    expect(await running).toBe("ran");
    await closing;
  });

  test("does nothing when the server has never run anything", async () => {
    await buildServer({ features }).close();
  });

  test("a write during the drain of its host is served with its runs and tenants", async () => {
    const other = buildServer({ features, tenants: true });
    const host = await startTestApp(other);
    let created = 0;
    asked = async () => {
      created += 1;
      const { id } = await other.tenants.create({ id: `tenant-${created}` });
      return other.run({ reason }, () => ({ id }));
    };
    const { lifecycle } = (await serverInternals(other).bound?.()) ?? {};
    lifecycle?.drain();
    expect(await host.call("runs.run.ask")).toEqual({ id: "tenant-1" });
    lifecycle?.enter("workers-stopped");
    expect(await host.call("runs.run.ask")).toEqual({ id: "tenant-2" });
    lifecycle?.enter("resources-closed");
    expect(String(await failed(host.call("runs.run.ask")))).toContain("the server is closing");
    await host.close();
  });

  test("leaves the host's resources to the host, and starts nothing once the host drains", async () => {
    const other = buildServer({ features });
    const closed: string[] = [];
    other.onClose("pool", () => void closed.push("pool"));
    const host = await startTestApp(other);
    expect(await other.run(acme, () => "ran")).toBe("ran");
    await other.close();
    expect(closed).toEqual([]);
    expect((await host.fetch("/health/ready")).status).toBe(200);
    (await serverInternals(other).bound?.())?.lifecycle.drain();
    expect(String(await failed(other.run(acme, () => "never")))).toContain("the server is closing");
    await host.close();
    expect(closed).toEqual(["pool"]);
    expect(serverInternals(other).bound).toBeUndefined();
  });
});

describe("without a host", () => {
  const alone = () => {
    for (const [name, value] of Object.entries(app.env)) vi.stubEnv(name, value);
    vi.stubEnv("LOG_LEVEL", "error");
    return buildServer({ features }, bindAlone);
  };

  test("the server connects once, as a container would, and closes what it has opened", async () => {
    const script = alone();
    const closed: string[] = [];
    script.onClose("pool", () => void closed.push("pool"));
    const [one, two] = await Promise.all([
      script.run(acme, sizeOf),
      script.run(acme, (ctx) => ctx.publish("run.seen", { by: "script" })),
    ]);
    expect([one, two]).toEqual([3, undefined]);
    expect(closed).toEqual([]);
    await script.close();
    expect(closed).toEqual(["pool"]);
    await app.settled();
    expect(heard).toEqual([["event", "acme", "script", expect.any(String)]]);
  });

  test("a host that is bound later has the runs that follow, and closing ends both", async () => {
    const script = alone();
    const closed: string[] = [];
    script.onClose("pool", () => void closed.push("pool"));
    const first = await script.run(acme, (ctx) => ctx.log.info("first"));
    expect(first).toBeUndefined();
    const host = await startTestApp(script);
    await script.run(acme, (ctx) => ctx.log.info("second"));
    expect(host.logs.map(({ msg }) => msg)).toContain("second");
    await script.close();
    await host.close();
    expect(closed).toContain("pool");
  });

  test("a failure to bind fails the run, and the next run tries again", async () => {
    const { bound } = serverInternals(server);
    const bindAlone = vi.fn(async () => bound?.() as Promise<Runtime>); // safe: the test app has bound it
    bindAlone.mockRejectedValueOnce(new Error("no directory"));
    const script = createServerRuns({ shutdown: undefined, bound: () => undefined, bindAlone });
    expect(await failed(script.run(acme, () => "never"))).toEqual(new Error("no directory"));
    expect(await script.run(acme, () => "ran")).toBe("ran");
    expect(await script.run(acme, () => "ran")).toBe("ran");
    expect(bindAlone).toHaveBeenCalledTimes(2);
  });
});
