import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import {
  DeleteQueueCommand,
  SendMessageCommand,
  SetQueueAttributesCommand,
  SQSClient,
} from "@aws-sdk/client-sqs";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { ranCommand } from "../../../../test/support/ran-command.ts";
import type { Server } from "../../../app/server/server.ts";
import { startTestApp, type TestApp } from "../../testing/index.ts";

const source = JSON.stringify(new URL("../../../index.ts", import.meta.url).href);
const module = `import { buildServer, defineFeature, PermanentError } from ${source};
const input = { "~standard": { version: 1, vendor: "test", validate: (value) => ({ value }) } };
export const state = { isBroken: true, done: [] };
const work = (kind) => async (ctx, given) => {
  if (state.isBroken) throw new PermanentError("the disk is\\nfull");
  state.done.push(kind + " " + ctx.user.tenantId);
};
const files = defineFeature("files", (r) => {
  const added = r.event("file.added", input);
  r.on(added, { name: "note", handler: work("event") });
  const scan = r.job("file.scan", { input, handler: work("job") });
  r.write("file.add", { handler: async (ctx) => { await ctx.publish(added, { n: 1 }); await ctx.enqueue(scan, { n: 1 }); } });
});
export const server = buildServer({ features: [files], environment: "production", log: { level: "error" } });`;

const receiver = `import { buildServer, defineFeature } from ${source};
const input = { "~standard": { version: 1, vendor: "test", validate: (value) => ({ value }) } };
const uploads = defineFeature("uploads", (r) => {
  r.receive("upload.stored", { source: "aws.s3", detailType: "Object Created", input, handler: () => undefined });
});
export const server = buildServer({ features: [uploads], environment: "production" });`;

const silent = `import { buildServer } from ${source};
export const server = buildServer({ features: [], environment: "production" });`;

let folder: string;
let path: string;
let app: TestApp;
let state: { isBroken: boolean; done: string[] };
const [events, jobs] = ["keelson-events", "keelson-jobs"];

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "keelson-queue-"));
  path = join(folder, "server.mjs");
  await writeFile(path, module);
  const loaded: { readonly server: Server; readonly state: typeof state } = await import(
    /* @vite-ignore */ pathToFileURL(path).href
  );
  state = loaded.state;
  app = await startTestApp(loaded.server);
});
afterAll(async () => {
  await app.close();
  await rm(folder, { recursive: true });
});
beforeEach(() => {
  state.isBroken = true;
  state.done = [];
});

const run = (args: readonly string[], ask?: (question: string) => Promise<string>) =>
  ranCommand(["queue", ...args], {
    env: app.env,
    clock: app.clock,
    wait: async () => undefined,
    ...(ask && { ask }),
  });

interface Listed {
  readonly queue: string;
  readonly id: string;
  readonly of: string;
}

async function listed(...args: readonly string[]): Promise<Listed[]> {
  const { code, out } = await run(["list", path, ...args, "--json"]);
  expect(code).toBe(0);
  return out.map((line) => JSON.parse(line) as Listed);
}

const endpoint = () => app.env["AWS_ENDPOINT_URL"] ?? "";
const sqs = () =>
  new SQSClient({
    endpoint: endpoint(),
    region: "us-east-1",
    credentials: { accessKeyId: "test", secretAccessKey: "test" },
  });

/** Leaves a dead event and a dead job of each tenant. */
async function fail(...tenants: readonly string[]) {
  for (const tenantId of tenants)
    await app.call("files.file.add", {}, { as: { id: "ann", tenantId } });
  await expect(app.settled()).rejects.toThrow("dead-letter");
}

describe("keelson queue", () => {
  test("lists dead letters with tenant, type, age and last error, shows one, and leaves them", async () => {
    await fail("acme");
    const found = await listed();
    const common = { tenantId: "acme", ageSeconds: expect.any(Number), error: "the disk is\nfull" };
    expect(found).toEqual([
      {
        ...common,
        queue: events,
        id: expect.any(String),
        of: expect.any(String),
        type: "file.added",
      },
      {
        ...common,
        queue: jobs,
        id: expect.any(String),
        of: expect.any(String),
        type: "files.file.scan",
      },
    ]);
    const { out } = await run(["list", path, jobs]);
    expect([out.length, out[0]]).toEqual([
      2,
      expect.stringMatching(/^queue +id +of +tenantId +type +ageSeconds +error$/),
    ]);
    const [, job] = found;
    const shown = await run(["show", path, jobs, job?.of ?? ""]);
    expect(JSON.parse(shown.out[0] ?? "")).toMatchObject({
      name: "files.file.scan",
      jobId: job?.of,
    });
    expect(await listed()).toHaveLength(2);
  });

  test("moves one back, which runs again as a new message, or all", async () => {
    await fail("globex");
    state.isBroken = false;
    const jobsOfBoth = await listed(jobs);
    expect(jobsOfBoth).toHaveLength(2);
    const { id = "" } = jobsOfBoth[1] ?? {};
    expect(await run(["move-back", path, jobs, id])).toEqual({
      code: 0,
      out: [`${id}: moved back`],
      err: "",
    });
    await app.settled();
    expect(state.done).toEqual(["job globex"]);
    expect(await run(["move-back", path, events, "--all"])).toMatchObject({
      code: 0,
      out: [`${events}: 2 moved back`],
    });
    await app.settled();
    expect(state.done.toSorted()).toEqual(["event acme", "event globex", "job globex"]);
    expect((await listed()).map(({ queue }) => queue)).toEqual([jobs]);
  });

  test("moving all back ends, although they fail again at once", async () => {
    await fail("initech");
    const context = { env: app.env, clock: { now: () => 0 } };
    const before = await ranCommand(["queue", "move-back", path, events, "--all"], context);
    expect([before.code, before.out]).toEqual([1, [`${events}: 0 moved back, 1 left`]]);
    const moved = run(["move-back", path, events, "--all"]);
    expect((await moved).out).toEqual([`${events}: 1 moved back`]);
    await expect(app.settled()).rejects.toThrow("dead-letter");
    expect(await listed(events)).toHaveLength(1);
  });

  test("deletes one, or after a confirmation all, also what is no message of ours", async () => {
    const client = sqs();
    const QueueUrl = `${endpoint()}/000000000000/${events}-dead`;
    await client.send(new SendMessageCommand({ QueueUrl, MessageBody: "not JSON" }));
    client.destroy();
    const odd = (await listed(events)).find(({ of }) => of === undefined);
    expect(odd).toEqual({ queue: events, id: expect.any(String), ageSeconds: expect.any(Number) });
    expect((await run(["delete", path, events, odd?.id ?? ""])).out).toEqual([
      `${odd?.id}: deleted`,
    ]);
    const left = await listed(events);
    expect(left.length).toBeGreaterThan(0);
    expect(await run(["delete", path, events, "--all"], async () => "yes")).toMatchObject({
      code: 1,
      err: "keelson: nothing was deleted",
    });
    expect(await listed(events)).toHaveLength(left.length);
    expect((await run(["delete", path, events, "--all"], async () => events)).code).toBe(0);
    expect((await run(["delete", path, jobs, "--all", "--yes"])).code).toBe(0);
    expect(await run(["list", path])).toEqual({
      code: 0,
      out: [],
      err: `keelson: no dead letter in ${events}, ${jobs}.fifo, ${jobs}`,
    });
  });

  test("tells progress, and stops between two letters, which stay", async () => {
    await fail("acme", "globex");
    const shown: string[] = [];
    const context = {
      env: app.env,
      clock: app.clock,
      progress: (text: string) => void shown.push(text),
    };
    await ranCommand(["queue", "list", path, events], context);
    expect(shown).toEqual(["1 dead letters read", "2 dead letters read", ""]);
    const stopping = () => AbortSignal.abort(new Error("stopped by SIGINT"));
    expect(
      await ranCommand(["queue", "delete", path, events, "--all", "--yes"], {
        ...context,
        stopping,
      }),
    ).toEqual({
      code: 1,
      out: [`${events}: 0 deleted before the command stopped`],
      err: "keelson: stopped by SIGINT",
    });
    expect(await listed(events)).toHaveLength(2);
    const user = new AbortController();
    const progress = (text: string) => text.startsWith("1 ") && user.abort(new Error("stopped"));
    expect(
      await ranCommand(["queue", "delete", path, events, "--all", "--yes"], {
        ...context,
        progress,
        stopping: () => user.signal,
      }),
    ).toEqual({
      code: 1,
      out: [`${events}: 1 deleted before the command stopped`],
      err: "keelson: stopped",
    });
    expect(await listed(events)).toHaveLength(1);
  });

  test("says how many of a FIFO queue's group it could not list", async () => {
    const QueueUrl = `${endpoint()}/000000000000/keelson-jobs-dead.fifo`;
    const client = sqs();
    for (let n = 0; n < 11; n += 1)
      await client.send(
        new SendMessageCommand({
          ...{ QueueUrl, MessageBody: "{}", MessageGroupId: "g" },
          MessageDeduplicationId: `d${n}`,
        }),
      );
    client.destroy();
    const { out, err } = await run(["list", path, "keelson-jobs.fifo"]);
    expect(out).toHaveLength(11);
    expect(err).toMatch(/^keelson: 10 of about 11 are listed; SQS shows ten letters of a group/);
    expect((await run(["show", path, "keelson-jobs.fifo", "j1"])).err).toMatch(
      /has the ID "j1"; 10 of about 11 were seen; SQS shows ten letters of a group of a FIFO queue, /,
    );
    const [{ id = "" } = {}] = await listed("keelson-jobs.fifo");
    expect((await run(["move-back", path, "keelson-jobs.fifo", id])).code).toBe(0);
    expect((await run(["delete", path, "keelson-jobs.fifo", "--all", "--yes"])).out).toEqual([
      "keelson-jobs.fifo: 10 deleted",
    ]);
  });

  test("a server that receives events of others has their queue too", async () => {
    const other = join(folder, "receiver.mjs");
    await writeFile(other, receiver);
    const { code, err } = await run(["list", other]);
    expect([code, err]).toEqual([
      1,
      expect.stringContaining("the queue keelson-received does not exist"),
    ]);
  });

  test("refuses to list a server without queues", async () => {
    const other = join(folder, "silent.mjs");
    await writeFile(other, silent);
    expect(await run(["list", other])).toMatchObject({
      code: 2,
      err: expect.stringContaining("the server has no queue\n"),
    });
  });

  test("says that a letter does not exist", async () => {
    expect(await run(["show", path, events, "e1"])).toMatchObject({
      code: 1,
      err: `keelson: no dead letter of ${events} has the ID "e1"`,
    });
  });

  test.each<[string[], string]>([
    [["list", "x", "q", "id"], 'unexpected argument "id"'],
    [["list", "x", "--all"], "--all is an option of move-back and delete"],
    [["show", "x"], "no queue is given; use keelson queue show <module> <queue>"],
    [["show", "x", "q"], "no message is given; use its ID"],
    [["show", "x", "q", "id", "--json"], "--json is an option of list"],
    [["move-back", "x", "q"], "no message is given; use its ID or --all"],
    [["move-back", "x", "q", "id", "--all"], "an ID and --all are given; use one of the two"],
    [["move-back", "x", "q", "--all", "--yes"], "--yes is an option of delete"],
    [
      ["delete", "x", "q", "--all"],
      "delete --all cannot ask for confirmation without a terminal; use --yes",
    ],
  ])("refuses %j", async (args, message) => {
    const err = `keelson: ${message}\nRun \`keelson queue --help\`.`;
    expect(await run(args)).toEqual({ code: 2, out: [], err });
  });

  test("refuses a queue that is not the server's", async () => {
    const { code, err } = await run(["list", path, "invoices"]);
    expect([code, err]).toEqual([
      2,
      expect.stringContaining(
        `the server has no queue "invoices"; it has ${events}, ${jobs}.fifo, ${jobs}`,
      ),
    ]);
  });

  test("a server may have no queue of fair jobs, but no other may be missing", async () => {
    const client = sqs();
    const remove = (name: string) =>
      client.send(new DeleteQueueCommand({ QueueUrl: `${endpoint()}/000000000000/${name}` }));
    await client.send(
      new SetQueueAttributesCommand({
        QueueUrl: `${endpoint()}/000000000000/${jobs}`,
        Attributes: { RedrivePolicy: "" },
      }),
    );
    expect(await run(["list", path, jobs])).toEqual({
      code: 1,
      out: [],
      err: `keelson: ${jobs}: there is no dead-letter queue; run keelson doctor`,
    });
    await remove(jobs);
    expect((await run(["list", path])).code).toBe(0);
    const context = { env: { ...app.env, KEELSON_FAIR_JOBS: "send" }, clock: app.clock };
    expect((await ranCommand(["queue", "list", path], context)).code).toBe(1);
    await remove(events);
    client.destroy();
    expect(await run(["list", path, events])).toMatchObject({
      code: 1,
      err: expect.stringContaining(`the queue ${events} does not exist`),
    });
  });
});
