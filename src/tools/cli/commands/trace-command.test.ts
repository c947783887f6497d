import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { afterAll, beforeAll, expect, test } from "vitest";
import { ranCommand } from "../../../../test/support/ran-command.ts";
import { developmentLogFiles } from "../../../embedded/stack/development-log.ts";
import { type EmbeddedStack, startEmbeddedStack } from "../../../embedded/stack/index.ts";
import { developmentDirectory } from "../trace/document.ts";

const source = JSON.stringify(new URL("../../../index.ts", import.meta.url).href);
const moduleText = (environment: string) => `import { buildServer, defineFeature } from ${source};
const anything = { "~standard": { version: 1, vendor: "test", validate: (value) => ({ value }) } };
const shop = defineFeature("shop", (r) => {
  r.event("order.placed", anything);
  r.on("order.placed", { name: "charge", handler: () => undefined });
  r.on("order.placed", { name: "count", handler: () => undefined });
});
export const server = buildServer({ features: [shop], environment: ${JSON.stringify(environment)} });`;

const time = "2026-11-02T09:30:00.000Z";
const completed = {
  requestId: "r1",
  trace_id: "t1",
  tenantId: "acme",
  msg: "request.completed",
  method: "GET",
  route: "/orders",
  status: 200,
  durationMs: 4,
  time,
};

let folder: string;
let [developed, deployed, logs]: [string, string, string] = ["", "", ""];
let stack: EmbeddedStack;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "keelson-trace-command-"));
  [developed, deployed, logs] = [
    join(folder, "developed.mjs"),
    join(folder, "deployed.mjs"),
    join(folder, "lines.jsonl"),
  ];
  await writeFile(developed, moduleText("development"));
  await writeFile(deployed, moduleText("production"));
  await writeFile(logs, `${JSON.stringify(completed)}\n{"requestId":"r1","msg":"cut\n`);
  const directory = join(folder, "running");
  stack = await startEmbeddedStack({ directory, env: { NODE_ENV: "development" } });
  await writeFile(developmentLogFiles(directory)[1], `${JSON.stringify(completed)}\n`);
  await mkdir(join(folder, "empty"));
  await writeFile(developmentLogFiles(join(folder, "empty"))[0], "\n");
});
afterAll(async () => {
  await stack.close();
  await rm(folder, { recursive: true });
});

async function trace(
  args: readonly string[],
  {
    env = {},
    input,
  }: { readonly env?: Readonly<Record<string, string>>; readonly input?: Readable } = {},
) {
  const { out, ...ended } = await ranCommand(["trace", ...args], {
    env,
    clock: { now: () => Date.parse(time) + 60_000 },
    ...(input === undefined ? {} : { input: () => input }),
    wait: async () => undefined,
  });
  return { ...ended, out: out.join("\n") };
}
const running = () => ({ env: { KEELSON_DIRECTORY: join(folder, "running") } });

test.each([
  [[], "no module is given"],
  [["m", "an id"], "the ID is not valid"],
  [["m", "r1", "more"], 'unexpected argument "more"'],
  [["m", "r1", "--all"], "there is no option --all"],
  [["m", "r1", "--logs", "nowhere.log"], 'there is no file "nowhere.log"; use --logs <file>'],
  [
    ["m", "r1", "--logs", "/"],
    '"/" is not a regular file, and a log is read several times; pipe it in with --logs -',
  ],
  [["m", "r1", "--logs", "-", "--logs", "-"], "--logs - is given twice"],
  [["m", "r1", "--logs", "-"], "nothing comes in on standard input"],
  [
    ["m", "r1", "--timeout-seconds", "soon"],
    '--timeout-seconds "soon" is not a whole number from 1 to 999',
  ],
  [["nowhere.mjs", "r1"], 'there is no module "nowhere.mjs"'],
])("%j exits with 2 and explains the mistake", async (args, why) => {
  const { code, err } = await trace(args);
  expect([code, err]).toEqual([2, expect.stringContaining(`keelson: ${why}`)]);
  expect(err).toContain("Run `keelson trace --help`.");
});

test("prints its help, and reports missing logs or a missing last request", async () => {
  expect((await trace(["--help"])).out).toContain("Usage: keelson trace");
  expect(await trace([deployed])).toMatchObject({
    code: 2,
    err: expect.stringContaining("no ID is given"),
  });
  const env = { KEELSON_DIRECTORY: join(folder, "empty") };
  expect(await trace([developed], { env })).toMatchObject({
    code: 1,
    err: expect.stringContaining("keelson: no request is in "),
  });
  const none = await trace([deployed, "r9", "--no-tables"]);
  expect([none.code, none.err]).toEqual([
    1,
    'keelson: "r9" is not found: no logs were read; give them by --logs <file>',
  ]);
});

test("reads logs from files and standard input, and counts unreadable lines", async () => {
  const { code, out } = await trace([deployed, "r1", "--logs", logs, "--no-tables"]);
  expect([code, out]).toEqual([
    0,
    [
      "request r1, of acme, at 2026-11-02T09:29:59.996Z, trace t1",
      "",
      "GET /orders → 200  done  +0 ms  4 ms",
      "",
      "Nothing is stuck.",
      "1 line mentions it and cannot be read.",
    ].join("\n"),
  ]);
  const input = Readable.from([`${JSON.stringify(completed)}\n`]);
  const { out: json } = await trace([deployed, "r1", "--logs", "-", "--no-tables", "--json"], {
    input,
  });
  expect(JSON.parse(json)).toEqual({
    id: "r1",
    says: "Nothing is stuck.",
    roots: [expect.objectContaining({ kind: "request", id: "r1", state: "done", children: [] })],
    leftOut: 0,
    notes: [],
    logs: { lines: 1, broken: 0 },
    tables: false,
  });
});

test("reports unreadable lines without a time, and has a default development directory", async () => {
  const broken = join(folder, "broken.jsonl");
  await writeFile(broken, '{"requestId":"r1","msg":"cut\n{"requestId":"r1","msg":"cut\n');
  const { code, err } = await trace([deployed, "r1", "--logs", broken, "--no-tables"]);
  expect([code, err]).toEqual([
    1,
    expect.stringMatching(/it is not in .*\n2 lines mention it and cannot be read\.$/),
  ]);
  expect(developmentDirectory({ environment: "development" }, {})).toBe(".keelson");
  expect(
    developmentDirectory({ environment: "development" }, { AWS_LAMBDA_FUNCTION_NAME: "f" }),
  ).toBeUndefined();
});

test("reads the running server's logs in development, and queries its tables", async () => {
  for (const args of [[developed, "r1"], [developed]]) {
    const { code, out } = await trace(args, running());
    expect([code, out]).toEqual([0, expect.stringContaining("GET /orders → 200  done")]);
    // The stack of this test has no tables, but it answers.
    expect(out).toMatch(
      /The tables cannot be read, so this is based only on the logs: .*not found/,
    );
  }
  const env = { KEELSON_DIRECTORY: join(folder, "nobody") };
  expect((await trace([developed, "r1", "--logs", logs], { env })).out).toContain(
    "no process runs on ",
  );
  expect((await trace([developed, "r9"], { env })).err).toMatch(
    /"r9" is not found: no logs were read.*\n.*no process runs on/,
  );
});

test("a table that does not answer within the timeout is out of reach", async () => {
  const { createServer } = await import("node:http");
  const silent = createServer(() => undefined).listen(0, "127.0.0.1");
  await new Promise((resolve) => silent.once("listening", resolve));
  const address = silent.address();
  const endpoint = `http://127.0.0.1:${typeof address === "object" ? address?.port : 0}`;
  const env = {
    AWS_ENDPOINT_URL: endpoint,
    AWS_REGION: "us-east-1",
    AWS_ACCESS_KEY_ID: "a",
    AWS_SECRET_ACCESS_KEY: "b",
  };
  const { code, out } = await trace([deployed, "r1", "--logs", logs, "--timeout-seconds", "1"], {
    env,
  });
  expect([code, out]).toEqual([0, expect.stringContaining("no answer within 1 s")]);
  silent.closeAllConnections();
  silent.close();
});
