import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { SendMessageCommand, SQSClient } from "@aws-sdk/client-sqs";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { ranCommand } from "../../../../test/support/ran-command.ts";
import type { Server } from "../../../app/server/server.ts";
import { startTestApp, type TestApp } from "../../testing/index.ts";

const source = JSON.stringify(new URL("../../../index.ts", import.meta.url).href);
const module = `import { buildServer, defineFeature } from ${source};
const input = { "~standard": { version: 1, vendor: "test", validate: (value) => ({ value }) } };
export const state = { failures: 0, done: [] };
const uploads = defineFeature("uploads", (r) => {
  r.receive("upload.stored", { source: "aws.s3", detailType: "Object Created", input, handler: (_ctx, { id }) => {
    state.failures -= 1;
    if (state.failures >= 0) throw new Error("not yet");
    state.done.push(id);
  } });
});
export const server = buildServer({ features: [uploads], environment: "production", log: { level: "error" } });`;

let folder: string;
let path: string;
let app: TestApp;
let client: SQSClient;
let state: { failures: number; done: string[] };
const received = "keelson-received";

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "keelson-received-"));
  path = join(folder, "server.mjs");
  await writeFile(path, module);
  const loaded: { readonly server: Server; readonly state: typeof state } = await import(
    /* @vite-ignore */ pathToFileURL(path).href
  );
  state = loaded.state;
  app = await startTestApp(loaded.server);
  const credentials = { accessKeyId: "test", secretAccessKey: "test" };
  const endpoint = app.env["AWS_ENDPOINT_URL"] ?? "";
  client = new SQSClient({ endpoint, region: "us-east-1", credentials });
});
afterAll(async () => {
  client.destroy();
  await app.close();
  await rm(folder, { recursive: true });
});
beforeEach(async () => {
  Object.assign(state, { failures: 0, done: [] });
  await run("delete", received, "--all", "--yes");
});

const run = (action: string, ...args: readonly string[]) =>
  ranCommand(["queue", action, path, ...args], {
    ...{ env: app.env, clock: app.clock, wait: async () => undefined },
  });

async function dead(body: object) {
  const QueueUrl = `${app.env["AWS_ENDPOINT_URL"]}/000000000000/${received}-dead`;
  await client.send(new SendMessageCommand({ QueueUrl, MessageBody: JSON.stringify(body) }));
}

const event = {
  ...{ version: "0", id: "17793124-05d4-b198-2fde-000000000001", account: "111122223333" },
  ...{ source: "aws.s3", "detail-type": "Object Created", time: "2026-11-12T00:00:00Z" },
  ...{ region: "eu-west-1", resources: [], detail: { bucket: "b", key: "k" } },
};

test("an event of others is listed by its ID and type, shown and moved back", async () => {
  await dead(event);
  const { out } = await run("list", "--json");
  expect(out.map((line) => JSON.parse(line) as unknown)).toEqual([
    {
      ...{ queue: received, id: expect.any(String), of: event.id },
      ...{ type: "aws.s3 Object Created", ageSeconds: expect.any(Number) },
    },
  ]);
  expect(JSON.parse((await run("show", received, event.id)).out.join("\n"))).toEqual(event);
  expect(await run("move-back", received, event.id)).toMatchObject({ code: 0 });
  await app.settled();
  expect(state.done).toEqual([event.id]);
});

test("an envelope of ours in the queue of events of others is listed without tenant and type", async () => {
  const ids = { eventId: "e1", causedBy: "c1", origRequestId: "r1", tenantId: "acme" };
  await dead({ kind: "shared", type: "upload.noted", ...ids, payload: {} });
  const { out } = await run("list", received, "--json");
  expect(out.map((line) => JSON.parse(line) as unknown)).toEqual([
    { queue: received, id: expect.any(String), ageSeconds: expect.any(Number) },
  ]);
  expect(await run("show", received, "e1")).toMatchObject({ code: 1 });
});

test("an event that has waited starts with all its attempts when it is moved back", async () => {
  await dead({ waited: { times: 3, attempts: 4 }, ...event, id: "again-1" });
  state.failures = 2;
  expect(await run("move-back", received, "--all")).toMatchObject({ code: 0 });
  await app.settled();
  expect(state.done).toEqual(["again-1"]);
});
