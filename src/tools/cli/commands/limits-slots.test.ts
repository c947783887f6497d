import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { PutItemCommand, ScanCommand } from "@aws-sdk/client-dynamodb";
import { expect, test } from "vitest";
import type { Server } from "../../../app/server/server.ts";
import { openDatabase } from "../../../aws/clients/dynamodb.ts";
import { startTestApp } from "../../testing/index.ts";
import { runCommand } from "../command.ts";

const source = JSON.stringify(new URL("../../../index.ts", import.meta.url).href);
const module = `import { buildServer, defineFeature } from ${source};
const input = { "~standard": { version: 1, vendor: "test", validate: (value) => ({ value }) } };
const handler = () => globalThis[Symbol.for("limits-slots")].promise;
const scans = defineFeature("scans", (r) => {
  r.job("file.scan", { input, concurrency: { perTenant: 2, total: 9 }, handler });
});
export const server = buildServer({ features: [scans], environment: "production", log: { level: "error" } });`;

test("shows the slots that runs hold, until they end", async () => {
  const folder = await mkdtemp(join(tmpdir(), "keelson-slots-"));
  const path = join(folder, "server.mjs");
  await writeFile(path, module);
  const loaded: { readonly server: Server } = await import(
    /* @vite-ignore */ pathToFileURL(path).href
  );
  const app = await startTestApp(loaded.server);
  const held = Promise.withResolvers<void>();
  Reflect.set(globalThis, Symbol.for("limits-slots"), held);
  const limits = async (...args: readonly string[]) => {
    const printed: string[] = [];
    await runCommand(["limits", ...args], {
      env: app.env,
      clock: app.clock,
      print: (line) => void printed.push(line),
      complain: () => {},
      wait: async () => undefined,
      developmentSecret: () => Promise.reject(new Error("none")),
    });
    return printed.map((line): unknown => JSON.parse(line));
  };
  try {
    expect(await limits("list", path, "--json")).toEqual([]);
    const running = app.deliver({
      ...{ jobId: "j1", name: "scans.file.scan", payload: {} },
      ...{ causedBy: "r1", origRequestId: "r1", tenantId: "acme" },
    });
    const ofTenant = {
      limit: "scans.file.scan perTenant",
      kind: "concurrency",
      tenantId: "acme",
      taken: 1,
      since: expect.any(String),
    };
    await expect.poll(() => limits("show", path, "acme", "--json")).toEqual([ofTenant]);
    await expect.poll(() => limits("list", path, "--json")).toHaveLength(2);
    expect(await limits("show", path, "globex", "--json")).toEqual([]);
    // A slot that something else has changed has no time.
    const database = await openDatabase({
      endpoint: app.env["AWS_ENDPOINT_URL"],
      region: "us-east-1",
      credentials: { accessKeyId: "a", secretAccessKey: "s" },
    });
    const TableName = "keelson-once";
    const { Items = [] } = await database.send(new ScanCommand({ TableName }));
    for (const Item of Items.filter(({ holders }) => holders?.M)) {
      for (const { M } of Object.values(Item["holders"]?.M ?? {})) if (M) M["since"] = { S: "now" };
      await database.send(new PutItemCommand({ TableName, Item }));
    }
    database.destroy();
    expect(await limits("show", path, "acme", "--json")).toEqual([
      { ...ofTenant, since: undefined },
    ]);
    held.resolve();
    await running;
    expect(await limits("list", path, "--json")).toEqual([]);
  } finally {
    held.resolve();
    Reflect.deleteProperty(globalThis, Symbol.for("limits-slots"));
    await app.close();
    await rm(folder, { recursive: true });
  }
});
