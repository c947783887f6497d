import { AsyncResource } from "node:async_hooks";
import { GetCommand, PutCommand, ScanCommand } from "@aws-sdk/lib-dynamodb";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { timeIsOver } from "../../../test/support/time-is-over.ts";
import { defineFeature } from "../../app/features/feature.ts";
import type { PipelineContext } from "../../app/handlers/pipeline-context.ts";
import { buildServer } from "../../app/server/server.ts";
import { access } from "../../base/identity/access.ts";
import {
  lambdaContext,
  lambdaEvent,
  startTestApp,
  type TestApp,
} from "../../tools/testing/index.ts";
import { lambdaHttp } from "./http-handler.ts";

const reason = "a test";
let asked: (ctx: PipelineContext) => unknown = () => undefined;
let nested: Promise<unknown> | undefined;
const notes = defineFeature("notes", (r) => {
  const table = r.table("notes", { partitionKey: "pk", tenant: false });
  r.write("note.add", {
    route: "POST /notes",
    access: access.everyone,
    handler: () => {
      nested = server.run({ reason }, (ctx) => asked(ctx));
      return nested;
    },
  });
  return { table };
});
const build = () => buildServer({ features: [notes] });

let server = build();
let app: TestApp;
beforeEach(async () => {
  server = build();
  vi.spyOn(process.stdout, "write").mockReturnValue(true);
  app = await startTestApp(build());
  for (const [name, value] of Object.entries(app.env)) vi.stubEnv(name, value);
});
afterEach(async () => {
  vi.restoreAllMocks();
  vi.unstubAllEnvs();
  await app.close();
});

test("a run within a request has the request's deadline, and writes nothing after it", async () => {
  const put = () => ({ TableName: notes.table.name, Item: { pk: "late" } });
  const http = lambdaHttp(server);
  const event = lambdaEvent("httpApi", { method: "POST", path: "/notes" });
  const ask = async () =>
    ((await http(event as never, lambdaContext())) as { readonly statusCode: number }).statusCode; // safe: each event and result of this format has these parts

  asked = () => undefined;
  expect(await ask()).toBeLessThan(300);

  for (const write of [
    (ctx: PipelineContext) => ctx.db.send(new PutCommand(put())),
    (ctx: PipelineContext) => ctx.commit([{ Put: put() }], undefined),
  ]) {
    const gate = Promise.withResolvers<void>();
    let signal: AbortSignal | undefined;
    asked = async (ctx) => {
      signal = ctx.signal;
      timeIsOver();
      await gate.promise;
      return write(ctx);
    };
    expect(await ask()).toBe(504);
    vi.mocked(performance.now).mockRestore();
    gate.resolve();
    await expect(nested).rejects.toThrow("The request took too long");
    expect(signal?.aborted).toBe(true);
    const found = await server.run({ reason }, (ctx) =>
      ctx.db.send(new GetCommand({ TableName: notes.table.name, Key: { pk: "late" } })),
    );
    expect(found.Item).toBeUndefined();
  }
});

test("a run that starts after the request's deadline, for a finished handler, has a whole lease", async () => {
  let leave: () => Promise<number> = () => Promise.reject(new Error("the handler has not run"));
  asked = () => {
    leave = AsyncResource.bind(() =>
      server.run({ reason, requestId: "left" }, async (ctx) => {
        const { Items = [] } = await ctx.db.send(new ScanCommand({ TableName: "keelson-once" }));
        const claim = Items.find(({ status }) => status === "INPROGRESS");
        return Number(claim?.["in_progress_expiration"]) - Date.now();
      }),
    );
  };
  const event = lambdaEvent("httpApi", { method: "POST", path: "/notes" });
  await lambdaHttp(server)(event as never, lambdaContext());
  const now = Date.now;
  vi.spyOn(Date, "now").mockImplementation(() => now() + 60_000);
  expect(await leave()).toBeGreaterThan(0);
});

test("what a request has left behind, such as a timer, runs beyond the limits of the request", async () => {
  const [begun, left] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  let leave: () => Promise<unknown> = () => Promise.resolve();
  const timers = defineFeature("timers", (r) => {
    r.query("timer.start", {
      route: "GET /timers",
      access: access.everyone,
      handler: async () => {
        leave = AsyncResource.bind(() =>
          timed.run({ reason }, ({ signal }) => {
            signal?.throwIfAborted();
            return "run";
          }),
        );
        begun.resolve();
        await left.promise;
      },
    });
  });
  const timed = buildServer({ features: [timers] });
  const stopping = await startTestApp(timed);
  try {
    const client = new AbortController();
    const asked = stopping.fetch("/timers", { signal: client.signal });
    await begun.promise;
    client.abort();
    await expect(asked).rejects.toThrow();
    await expect.poll(() => leave().catch(String)).toContain("The client has gone");
    left.resolve();
    await expect.poll(leave).toBe("run");
  } finally {
    await stopping.close();
  }
});
