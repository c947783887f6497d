// `keelson queue` next to another reader, and with a wrong clock.
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import {
  ChangeMessageVisibilityCommand,
  PurgeQueueCommand,
  ReceiveMessageCommand,
  SendMessageCommand,
  SQSClient,
} from "@aws-sdk/client-sqs";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test, vi } from "vitest";
import { ranCommand } from "../../../../test/support/ran-command.ts";
import type { Server } from "../../../app/server/server.ts";
import { startTestApp, type TestApp } from "../../testing/index.ts";

const source = JSON.stringify(new URL("../../../index.ts", import.meta.url).href);
const module = `import { buildServer, defineFeature } from ${source};
const input = { "~standard": { version: 1, vendor: "test", validate: (value) => ({ value }) } };
const uploads = defineFeature("uploads", (r) => {
  r.receive("upload.stored", { source: "aws.s3", detailType: "Object Created", input, handler: () => undefined });
});
export const server = buildServer({ features: [uploads], environment: "production", log: { level: "error" } });`;

const received = "keelson-received";
const hourMs = 3_600_000;
let folder: string;
let path: string;
let app: TestApp;
let client: SQSClient;
let QueueUrl: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "keelson-hidden-"));
  path = join(folder, "server.mjs");
  await writeFile(path, module);
  const loaded: { readonly server: Server } = await import(
    /* @vite-ignore */ pathToFileURL(path).href
  );
  app = await startTestApp(loaded.server);
  const credentials = { accessKeyId: "test", secretAccessKey: "test" };
  const endpoint = app.env["AWS_ENDPOINT_URL"] ?? "";
  client = new SQSClient({ endpoint, region: "us-east-1", credentials });
  QueueUrl = `${endpoint}/000000000000/${received}-dead`;
});
afterAll(async () => {
  client.destroy();
  await app.close();
  await rm(folder, { recursive: true });
});
beforeEach(async () => {
  for (const MessageBody of ["one", "two"])
    await client.send(new SendMessageCommand({ QueueUrl, MessageBody }));
});
afterEach(async () => {
  vi.restoreAllMocks();
  await client.send(new PurgeQueueCommand({ QueueUrl }));
});

const run = ([action = "", ...args]: readonly string[], aheadMs = 0) =>
  ranCommand(["queue", action, path, ...args], {
    env: app.env,
    clock: { now: () => app.clock.now() + aheadMs },
    wait: async () => undefined,
  });

/** Reads letters as another command does. Returns a function that makes them visible again. */
async function hide(count: number): Promise<() => Promise<void>> {
  const receive = { QueueUrl, MaxNumberOfMessages: count, VisibilityTimeout: 60 };
  const { Messages = [] } = await client.send(new ReceiveMessageCommand(receive));
  expect(Messages).toHaveLength(count);
  return async () => {
    for (const { ReceiptHandle } of Messages)
      await client.send(
        new ChangeMessageVisibilityCommand({ QueueUrl, ReceiptHandle, VisibilityTimeout: 0 }),
      );
  };
}

test("letters that another reader hides are not an empty queue", async () => {
  const show = await hide(2);
  const hint =
    "SQS shows ten letters of a group of a FIFO queue, and hides a letter for up to a minute once it is read";
  expect(await run(["list"])).toEqual({
    code: 1,
    out: [],
    err: `keelson: 0 of about 2 are listed; ${hint}`,
  });
  expect(await run(["show", received, "e1"])).toEqual({
    code: 1,
    out: [],
    err: `keelson: no dead letter of ${received} has the ID "e1"; 0 of about 2 were seen; ${hint}`,
  });
  expect(await run(["move-back", received, "--all"])).toEqual({
    code: 1,
    out: [`${received}: 0 moved back`],
    err: `keelson: 0 of about 2 were seen; ${hint}`,
  });
  await show();
  expect(await run(["list"])).toMatchObject({ code: 0, out: { length: 3 }, err: "" });
});

test("the letters that are seen are listed and deleted, with the number of all", async () => {
  const show = await hide(1);
  const delayed = { QueueUrl, MessageBody: "later", DelaySeconds: 900 };
  await client.send(new SendMessageCommand(delayed));
  const listed = await run(["list", "--json"]);
  expect([listed.code, listed.out.length]).toEqual([0, 1]);
  expect(listed.err).toMatch(/^keelson: 1 of about 3 are listed; /);
  const deleted = await run(["delete", received, "--all", "--yes"]);
  expect([deleted.code, deleted.out]).toEqual([0, [`${received}: 1 deleted`]]);
  expect(deleted.err).toMatch(/^keelson: 1 of about 3 were seen; /);
  await show();
});

test("with a clock that is behind, letters are left, and the command reports them", async () => {
  for (const [action, done] of [
    ["move-back", "moved back"],
    ["delete", "deleted"],
  ] as const) {
    const yes = action === "delete" ? ["--yes"] : [];
    const { code, out, err } = await run([action, received, "--all", ...yes], -hourMs);
    expect([code, out]).toEqual([1, [`${received}: 0 ${done}, 2 left`]]);
    expect(err).toMatch(
      /^keelson: 2 left: they came after \d{4}-\S+Z, or SQS had not counted them yet, .*set this machine's clock$/,
    );
  }
  expect(await run(["move-back", received, "--all"])).toEqual({
    code: 0,
    out: [`${received}: 2 moved back`],
    err: "",
  });
});

test("a clock that is ahead does not move letters back without end", async () => {
  // Safe cast: it narrows an overloaded method to the form that keelson calls.
  const send = SQSClient.prototype.send as (command: unknown) => Promise<unknown>;
  let sent = 0;
  // A process that takes each message immediately, and gives it up.
  const failing = async function (this: SQSClient, command: unknown) {
    if (!(command instanceof SendMessageCommand)) return send.call(this, command);
    sent += 1;
    const again = new SendMessageCommand({ ...command.input, QueueUrl });
    return send.call(this, sent < 20 ? again : command);
  };
  vi.spyOn(SQSClient.prototype, "send").mockImplementation(failing as SQSClient["send"]);
  const { code, out } = await run(["move-back", received, "--all"], hourMs);
  expect([code, out]).toEqual([1, [`${received}: 2 moved back, 2 left`]]);
});
