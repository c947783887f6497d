// `keelson trace` and `keelson steps` on a server that has no messages.
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";
import { ranCommand } from "../../../../test/support/ran-command.ts";
import type { Server } from "../../../app/server/server.ts";
import { startTestApp, type TestApp } from "../../testing/index.ts";
import type { TraceDocument } from "../trace/document.ts";
import { nodesOf } from "../trace/verdict.ts";

const source = JSON.stringify(new URL("../../../index.ts", import.meta.url).href);
const module = `import { access, buildServer, defineFeature } from ${source};
const shop = defineFeature("shop", (r) => {
  r.write("order.place", {
    route: "POST /orders",
    access: access.authenticated,
    handler: (ctx) => ctx.step("charge", {}, () => { throw new Error("socket hang up"); }),
  });
  r.write("order.note", { route: "POST /notes", access: access.authenticated, handler: () => undefined });
});
export const server = buildServer({ features: [shop], environment: "production" });`;

let folder: string;
let path: string;
let app: TestApp;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "keelson-trace-steps-"));
  path = join(folder, "server.mjs");
  await writeFile(path, module);
  const loaded: { readonly server: Server } = await import(
    /* @vite-ignore */ pathToFileURL(path).href
  );
  app = await startTestApp(loaded.server);
});
afterAll(async () => {
  await app.close();
  await rm(folder, { recursive: true });
});

const run = (...args: readonly string[]) =>
  ranCommand(args, { env: app.env, clock: app.clock, wait: async () => undefined });

async function traced(requestId: string) {
  const logs = join(folder, `${requestId}.jsonl`);
  await writeFile(logs, app.logs.map((line) => `${JSON.stringify(line)}\n`).join(""));
  const { code, out } = await run("trace", path, requestId, "--logs", logs, "--json");
  // Safe cast: the command prints its document.
  const document = JSON.parse(out.join("\n")) as TraceDocument;
  return {
    code,
    ...document,
    step: [...nodesOf(document.roots)].find((one) => one.kind === "step"),
  };
}

const post = (route: string, requestId: string) =>
  app.fetch(route, {
    ...{ method: "POST", body: {}, as: { id: "ann", tenantId: "acme" } },
    headers: { "x-request-id": requestId, "idempotency-key": requestId },
  });

test("a step is stuck until it is resolved, on a server without messages too", async () => {
  // The second call finds the step of the first.
  for (const requestId of ["r1", "r2", "r1", "r2"]) await post("/orders", requestId);
  for (const [requestId, outcome, state] of [
    ["r1", ["--result", "{}"], "done"],
    ["r2", ["--retry"], "failed"],
  ] as const) {
    const before = await traced(requestId);
    expect([before.code, before.stuck?.state, before.tables]).toEqual([1, "unknown", true]);
    expect((await run("steps", "resolve", path, before.step?.id ?? "", ...outcome)).code).toBe(0);
    const after = await traced(requestId);
    expect([after.code, after.stuck, after.notes]).toEqual([0, undefined, []]);
    expect(after.step).toMatchObject({ state, confirmed: true });
  }
});

test("does not read tables for a request that has an end in the logs", async () => {
  await post("/notes", "r3");
  expect(await traced("r3")).toMatchObject({ code: 0, tables: false, notes: [] });
});
