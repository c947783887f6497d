import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  CreateTableCommand,
  DynamoDBClient,
  GetItemCommand,
  PutItemCommand,
  TransactWriteItemsCommand,
} from "@aws-sdk/client-dynamodb";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { freePort } from "../../../test/support/free-port.ts";
import { waitFor } from "../../../test/support/wait-for.ts";
import { isAlive } from "../service/data-directory.ts";
import { type EmbeddedStack, type EmbeddedStackOptions, startEmbeddedStack } from "./index.ts";

let directory: string;
const opened: { close(): unknown }[] = [];
beforeEach(() => {
  directory = join(mkdtempSync(join(tmpdir(), "keelson-stack-")), "data");
});
afterEach(async () => {
  for (const one of opened.splice(0).reverse()) await one.close();
  rmSync(join(directory, ".."), { recursive: true, maxRetries: 20 });
});

const env = { NODE_ENV: "test" };

async function start(options: EmbeddedStackOptions = {}): Promise<EmbeddedStack> {
  const stack = await startEmbeddedStack({ env, ...options });
  opened.push(stack);
  return stack;
}

function clientOf({ endpoint }: { endpoint: string }): DynamoDBClient {
  const credentials = { accessKeyId: "embedded", secretAccessKey: "embedded" };
  const client = new DynamoDBClient({ endpoint, region: "us-east-1", credentials, maxAttempts: 1 });
  opened.push({ close: () => client.destroy() });
  return client;
}

const createTable = (client: DynamoDBClient) =>
  client.send(
    new CreateTableCommand({
      TableName: "tab",
      BillingMode: "PAY_PER_REQUEST",
      AttributeDefinitions: [{ AttributeName: "pk", AttributeType: "S" }],
      KeySchema: [{ AttributeName: "pk", KeyType: "HASH" }],
    }),
  );
const put = (client: DynamoDBClient, pk: string) =>
  client.send(new PutItemCommand({ TableName: "tab", Item: { pk: { S: pk } } }));
const get = async (client: DynamoDBClient, pk: string) =>
  (await client.send(new GetItemCommand({ TableName: "tab", Key: { pk: { S: pk } } }))).Item;
const storePid = (): number => JSON.parse(readFileSync(join(directory, "holder.json"), "utf8")).pid;

test("listens on localhost only, and its variables point a client at it", async () => {
  const stack = await start();
  expect(stack.endpoint).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
  expect(stack.env).toEqual({
    AWS_ENDPOINT_URL: stack.endpoint,
    AWS_REGION: "us-east-1",
    AWS_ACCESS_KEY_ID: "embedded",
    AWS_SECRET_ACCESS_KEY: "embedded",
  });
  const created = await createTable(clientOf(stack));
  expect(created.TableDescription?.TableArn).toContain(":us-east-1:");
});

test("keeps the region that the environment names", async () => {
  const stack = await start({ env: { ...env, AWS_REGION: "eu-west-1" } });
  expect(stack.env["AWS_REGION"]).toBe("eu-west-1");
  expect((await createTable(clientOf(stack))).TableDescription?.TableArn).toContain(":eu-west-1:");
});

test("two in-memory stacks share nothing", async () => {
  const [one, two] = await Promise.all([start(), start()]);
  await createTable(clientOf(one));
  await createTable(clientOf(two));
  await put(clientOf(one), "a");
  expect(await get(clientOf(two), "a")).toBeUndefined();
});

test("can be closed twice, and then no longer answers", async () => {
  const stack = await start();
  await Promise.all([stack.close(), stack.close()]);
  await stack.close();
  await expect(fetch(stack.endpoint)).rejects.toThrow("fetch failed");
});

test("data in a directory outlives the stack", async () => {
  const first = await start({ directory });
  await createTable(clientOf(first));
  await put(clientOf(first), "a");
  await first.close();
  expect(await get(clientOf(await start({ directory })), "a")).toEqual({ pk: { S: "a" } });
});

test("a second start on a directory attaches to the first stack, which runs until both are closed", async () => {
  const log = logged();
  const first = await start({ directory, log });
  const pid = storePid();
  const client = clientOf(first);
  await createTable(client);
  const second = await start({ directory, log });
  expect([second.endpoint, storePid()]).toEqual([first.endpoint, pid]);
  expect(log.info.mock.calls).toEqual([["embedded.attached", { endpoint: first.endpoint }]]);
  await first.close();
  await put(client, "a");
  expect(isAlive(pid)).toBe(true);
  await second.close();
  await waitFor(() => expect(isAlive(pid)).toBe(false));
  expect(log.error).not.toHaveBeenCalled();
  expect(await get(clientOf(await start({ directory })), "a")).toBeDefined();
});

test("concurrent starts on one directory share one stack", async () => {
  const stacks = await Promise.all(Array.from({ length: 4 }, () => start({ directory })));
  expect(new Set(stacks.map(({ endpoint }) => endpoint)).size).toBe(1);
});

test("processes that come and go on one directory lose neither the stack nor a row", async () => {
  const rows: string[] = [];
  await createTable(clientOf(await start({ directory })));
  const comeAndGo = async (name: string) => {
    for (let round = 0; round < 8; round += 1) {
      const stack = await startEmbeddedStack({ directory, env });
      const client = clientOf(stack);
      await put(client, `${name}${round}`);
      rows.push(`${name}${round}`);
      await stack.close();
    }
  };
  await opened.at(-2)?.close();
  await Promise.all(["a", "b", "c"].map(comeAndGo));
  const client = clientOf(await start({ directory }));
  for (const row of rows) expect(await get(client, row)).toBeDefined();
});

test("names a port that is in use", async () => {
  const taken = createServer().listen(0, "127.0.0.1");
  await once(taken, "listening");
  opened.push({ close: () => taken.close() });
  const address = taken.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  await expect(start({ port })).rejects.toThrow(`127.0.0.1:${port}`);
});

test("uses a free port that is given", async () => {
  const port = await freePort();
  expect((await start({ port })).endpoint).toBe(`http://127.0.0.1:${port}`);
});

test("refuses production and Lambda before starting anything", async () => {
  await expect(start({ env: {}, directory })).rejects.toThrow(
    "The embedded stack is for development and tests, and NODE_ENV is not set",
  );
  await expect(start({ env: { ...env, AWS_LAMBDA_FUNCTION_NAME: "f" } })).rejects.toThrow(
    "is not for Lambda",
  );
  expect(() => readFileSync(directory)).toThrow("ENOENT");
});

test("uses the process's environment when none is given", async () => {
  vi.stubEnv("NODE_ENV", "production");
  await expect(startEmbeddedStack()).rejects.toThrow('NODE_ENV is "production"');
  vi.unstubAllEnvs();
});

test("fails when its process cannot be started", async () => {
  const { execPath } = process;
  process.execPath = "/nowhere/node";
  try {
    await expect(start()).rejects.toThrow("ENOENT");
  } finally {
    process.execPath = execPath;
  }
});

test("fails when its process ends before it listens", async () => {
  const { execPath } = process;
  process.execPath = "/bin/false";
  try {
    await expect(start()).rejects.toThrow(
      "The embedded stack did not start: its process ended with 1 before it listened",
    );
  } finally {
    process.execPath = execPath;
  }
});

test("ignores signals that are sent to the whole process group", async () => {
  const stack = await start({ directory });
  const client = clientOf(stack);
  await createTable(client);
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.kill(storePid(), signal);
  await put(client, "a");
  expect(await get(client, "a")).toBeDefined();
});

test("closing kills a stack that hangs", async () => {
  const stack = await start({ directory });
  const pid = storePid();
  process.kill(pid, "SIGSTOP");
  await stack.close();
  expect(isAlive(pid)).toBe(false);
});

test("logs a killed stack, whose directory can be reopened at once", async () => {
  const log = logged();
  const stack = await start({ directory, log });
  await createTable(clientOf(stack));
  await put(clientOf(stack), "a");
  process.kill(storePid(), "SIGKILL");
  await waitFor(() => expect(log.error).toHaveBeenCalled());
  expect(log.error.mock.calls).toEqual([
    ["embedded.stopped", { endpoint: stack.endpoint, exitCode: null, signal: "SIGKILL" }],
  ]);
  await stack.close();
  expect(await get(clientOf(await start({ directory, log })), "a")).toBeDefined();
  await opened.at(-2)?.close();
  expect(log.error).toHaveBeenCalledTimes(1);
});

test("after a kill amid transactions, each one is complete or absent, and no acknowledged one is lost", async () => {
  let expected = 0;
  for (let round = 0; round < 5; round += 1) {
    const stack = await start({ directory });
    const client = clientOf(stack);
    if (round === 0) await createTable(client);
    const read = async () => {
      const [left, right] = [await get(client, "left"), await get(client, "right")];
      expect(left?.["n"]?.N).toBe(right?.["n"]?.N);
      return Number(left?.["n"]?.N ?? 0);
    };
    const before = await read();
    expect(before).toBeGreaterThanOrEqual(expected);
    let acknowledged = before;
    const run = async () => {
      const update = (pk: string) => ({
        Update: {
          TableName: "tab",
          Key: { pk: { S: pk } },
          UpdateExpression: "ADD n :n",
          ExpressionAttributeValues: { ":n": { N: "1" } },
        },
      });
      for (;;) {
        await client.send(
          new TransactWriteItemsCommand({ TransactItems: [update("left"), update("right")] }),
        );
        acknowledged += 1;
        if (acknowledged === before + 3 * (round + 1)) process.kill(storePid(), "SIGKILL");
      }
    };
    const workers = await Promise.allSettled([run(), run(), run()]);
    expect(workers.every(({ status }) => status === "rejected")).toBe(true);
    expected = acknowledged;
  }
});

const watched = { ...env, KEELSON_WATCH: "1" };
const logged = () => ({
  debug: vi.fn(),
  info: vi.fn(),
  warn: vi.fn(),
  error: vi.fn(),
  child: vi.fn(),
});

/** Ends the stack that outlives its users. */
function endShared(): void {
  process.kill(storePid(), "SIGKILL");
}

test("a watched process leaves its stack running for the next one, with its data", async () => {
  const log = logged();
  const first = await start({ directory, env: watched, log });
  await createTable(clientOf(first));
  await put(clientOf(first), "a");
  const pid = storePid();
  await first.close();
  expect([log.info.mock.calls, isAlive(pid)]).toEqual([[], true]);

  const second = await start({ directory, env: watched, log });
  expect([second.endpoint, storePid()]).toEqual([first.endpoint, pid]);
  expect(log.info.mock.calls).toEqual([["embedded.attached", { endpoint: first.endpoint }]]);
  expect(await get(clientOf(second), "a")).toBeDefined();
  endShared();
});

test("concurrent starts of watched processes on one directory share one stack", async () => {
  const stacks = await Promise.all(
    Array.from({ length: 4 }, () => start({ directory, env: watched })),
  );
  expect(new Set(stacks.map(({ endpoint }) => endpoint)).size).toBe(1);
  endShared();
});

test("a process that is not watched uses a watched one's stack, and leaves it running", async () => {
  const shared = await start({ directory, env: watched });
  const stack = await start({ directory });
  expect(stack.endpoint).toBe(shared.endpoint);
  await stack.close();
  await createTable(clientOf(shared));
  endShared();
});

test("a watched process logs that its stack was killed, and the directory can be reopened at once", async () => {
  const log = logged();
  const stack = await start({ directory, env: watched, log });
  endShared();
  await waitFor(() =>
    expect(log.error.mock.calls).toEqual([["embedded.stopped", { endpoint: stack.endpoint }]]),
  );
  await start({ directory });
});

test("refuses to share a stack with another port or region", async () => {
  const { endpoint } = await start({ directory, env: watched });
  const port = Number(new URL(endpoint).port);
  expect((await start({ directory, port, env: watched })).endpoint).toBe(endpoint);
  await expect(start({ directory, port: 1, env: watched })).rejects.toThrow(
    `The embedded stack runs already, on 127.0.0.1:${port}, not on 1; end the processes that use it, or pass no port`,
  );
  await expect(start({ directory, env: { ...watched, AWS_REGION: "eu-west-1" } })).rejects.toThrow(
    `The data directory ${directory} is in use by the embedded stack of us-east-1 (process ${storePid()}): stop that one first`,
  );
  endShared();
});

test("a watched process names a port that is in use, and leaves no stack behind", async () => {
  const taken = createServer().listen(0, "127.0.0.1");
  await once(taken, "listening");
  opened.push({ close: () => taken.close() });
  const { port } = taken.address() as AddressInfo; // it listens on TCP
  await expect(start({ directory, port, env: watched })).rejects.toThrow(
    `The embedded stack did not start: 127.0.0.1:${port} is in use; stop what listens there, or pass another port`,
  );
  await start({ directory });
});

test("watched processes in memory have a stack each", async () => {
  const [one, two] = [await start({ env: watched }), await start({ env: watched })];
  expect(one.endpoint).not.toBe(two.endpoint);
});

test("variables of watchers and loaders do not reach the stack", async () => {
  vi.stubEnv("WATCH_REPORT_DEPENDENCIES", "1");
  vi.stubEnv("NODE_OPTIONS", "--import=data:text/javascript,process.exit(3)");
  expect((await start()).endpoint).toMatch(/^http:/);
  vi.unstubAllEnvs();
});

/** Starts a stack in a process of its own, which prints the address. */
function startParent(then: string) {
  const module = new URL("./index.ts", import.meta.url).href;
  const script = `import(${JSON.stringify(module)})
    .then((m) => m.startEmbeddedStack({ directory: process.argv[1], env: { NODE_ENV: "test" } }))
    .then((stack) => { console.log(stack.endpoint); ${then} })`;
  return spawn(process.execPath, ["-e", script, directory], {
    stdio: ["ignore", "pipe", "inherit"],
  });
}

test("ends with its parent, even a killed one, and releases the directory", async () => {
  const parent = startParent("setInterval(() => {}, 1000)");
  const [endpoint] = await once(parent.stdout, "data");
  expect((await fetch(String(endpoint).trim())).status).toBe(200);
  parent.kill("SIGKILL");
  await once(parent, "exit");
  await createTable(clientOf(await start({ directory }))); // waits for the orphan
  await expect(fetch(String(endpoint).trim())).rejects.toThrow("fetch failed");
});

test("runs on for other processes when its parent is killed, and ends with the last of them", async () => {
  const parent = startParent("setInterval(() => {}, 1000)");
  const [endpoint] = await once(parent.stdout, "data");
  const stack = await start({ directory });
  expect(stack.endpoint).toBe(String(endpoint).trim());
  await createTable(clientOf(stack));
  parent.kill("SIGKILL");
  await once(parent, "exit");
  await put(clientOf(stack), "a");
  const pid = storePid();
  await stack.close();
  await waitFor(() => expect(isAlive(pid)).toBe(false));
});

test("a process without a region uses a stack of any region, and its variables name that region", async () => {
  const { endpoint } = await start({ directory, env: { ...env, AWS_REGION: "eu-west-1" } });
  const other = await start({ directory });
  expect(other.env).toMatchObject({ AWS_ENDPOINT_URL: endpoint, AWS_REGION: "eu-west-1" });
});

test("a script that forgets to close the stack still ends, and the stack with it", async () => {
  const parent = startParent("");
  const [[endpoint], [code]] = await Promise.all([
    once(parent.stdout, "data"),
    once(parent, "exit"),
  ]);
  expect(code).toBe(0);
  await waitFor(() => expect(fetch(String(endpoint).trim())).rejects.toThrow("fetch failed"));
});
