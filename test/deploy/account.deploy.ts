import { spawn } from "node:child_process";
import { once } from "node:events";
import { afterAll, beforeAll, expect, inject, test } from "vitest";
import { signToken } from "../../src/base/identity/token.ts";
import { type MiniStack, startMiniStack } from "./mini-stack.ts";
import { root } from "./package.ts";

const stage = "account";
let miniStack: MiniStack;
let [host, authorization] = ["", ""];

beforeAll(async () => {
  miniStack = await startMiniStack(inject("deployed"));
});
afterAll(() => miniStack?.stop());

test("npm run deploy creates the key ring and the whole stack, including functions and API", async () => {
  const printed = await deploy();

  expect(printed).toContain(`made the key ring /keelson-files/${stage}/key-ring`);
  expect(printed).toContain("fits the server and infra/dist/lambda.mjs");
  expect(printed).toContain("deployed after");
  host = /https:\/\/(\w+)\.execute-api/.exec(printed)?.[1] ?? "";
  expect(host).not.toBe("");
});

test("the deployed API answers", async () => {
  const found = await miniStack.call("secretsmanager.ListSecrets", {});
  // Safe: a missing member fails the test.
  const [{ ARN }] = found["SecretList"] as [{ readonly ARN: string }];
  const { SecretString: secret } = await miniStack.call("secretsmanager.GetSecretValue", {
    SecretId: ARN,
  });
  const token = await signToken(
    { secret: String(secret), userId: "ann", tenantId: "acme", roles: ["admin"] },
    { now: () => Date.now() },
  );
  authorization = `Bearer ${token}`;

  expect(await ask("GET", "/health/ready")).toMatchObject([200, { status: "ready" }]);
  expect(await ask("GET", "/config/files:config:signed-url-expiry-seconds")).toMatchObject([
    200,
    { value: 900, source: "app-override" },
  ]);
});

test("POST /files leads through stream, bus and queues to the message about the scan", async () => {
  const [status, file] = await ask("POST", "/files", { name: "a.txt", sizeMb: 1 });
  expect(status).toBe(201);

  // MiniStack prints what a function logs late only after its next invocation, which another file causes.
  const printed = async () => {
    await ask("POST", "/files", { name: "b.txt", sizeMb: 1 });
    return miniStack.text();
  };
  await expect
    .poll(printed, { timeout: 60_000, interval: 2_000 })
    .toContain(`{"text":"the file was scanned","file":"${file["id"]}"}`);
});

test("a second deployment with a function per handler keeps the key ring, and each function answers its route", async () => {
  const before = await functionNames();
  expect(await deploy("--shape", "each")).toContain(
    `the key ring /keelson-files/${stage}/key-ring exists`,
  );
  const after = await functionNames();
  expect(after).toEqual(
    expect.arrayContaining(
      ["Create", "List", "Show"].map((name) => `keelson-files-${stage}-filesFile${name}`),
    ),
  );
  expect(before).not.toEqual(after);

  const [created, file] = await ask("POST", "/files", { name: "b.txt", sizeMb: 1 });
  expect(created).toBe(201);
  expect(await ask("GET", `/files/${file["id"]}`)).toMatchObject([200, { name: "b.txt" }]);
  expect(await ask("GET", "/health/ready")).toMatchObject([200, { status: "ready" }]);
});

/** The existing functions. */
async function functionNames(): Promise<string[]> {
  const response = await fetch(`${miniStack.env["AWS_ENDPOINT_URL"]}/2015-03-31/functions`, {
    headers: { authorization: "AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/lambda" },
  });
  // Safe: a missing member fails the test.
  const { Functions: functions } = (await response.json()) as {
    readonly Functions: { readonly FunctionName: string }[];
  };
  return functions.map(({ FunctionName: name }) => name).sort();
}

async function deploy(...more: string[]): Promise<string> {
  const started = spawn("npm", ["run", "deploy", "--", "--stage", stage, ...more], {
    cwd: root,
    env: miniStack.env,
    stdio: ["ignore", "pipe", "pipe"],
  });
  let printed = "";
  for (const stream of [started.stdout, started.stderr]) {
    stream.on("data", (chunk: Buffer) => {
      printed += chunk.toString();
    });
  }
  const [code] = await once(started, "exit");
  if (code !== 0)
    throw new Error(
      `npm run deploy ended with ${code}: ${printed}\n${miniStack.text().slice(-2000)}`,
    );
  return printed;
}

function ask(
  method: string,
  path: string,
  body?: object,
): Promise<[status: number, body: Record<string, unknown>]> {
  return miniStack.ask(host, {
    method,
    path,
    authorization,
    ...(body === undefined ? {} : { body }),
  });
}
