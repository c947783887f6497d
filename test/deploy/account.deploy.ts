import { spawn } from "node:child_process";
import { once } from "node:events";
import { request } from "node:http";
import { createServer } from "node:net";
import { delimiter, dirname } from "node:path";
import { afterAll, beforeAll, expect, inject, test, vi } from "vitest";
import { signToken } from "../../src/identity/token.ts";
import { root } from "./package.ts";

const { miniStack } = inject("deployed");
const child: { process?: ReturnType<typeof spawn>; text: string } = { text: "" };
const stage = "account";
let env: NodeJS.ProcessEnv = {};
let [host, authorization] = ["", ""];

beforeAll(async () => {
  const probe = createServer().listen(0, "127.0.0.1");
  await once(probe, "listening");
  const { port } = probe.address() as { readonly port: number }; // safe: it listens on a port
  probe.close();
  const endpoint = `http://127.0.0.1:${port}`;
  env = {
    ...process.env,
    PATH: `${dirname(process.execPath)}${delimiter}${process.env["PATH"]}`, // its functions run in the `node` that is found there
    AWS_ENDPOINT_URL: endpoint,
    AWS_REGION: "us-east-1",
    AWS_ACCESS_KEY_ID: "test",
    AWS_SECRET_ACCESS_KEY: "test",
  };
  const started = spawn(miniStack, ["--bind", `127.0.0.1:${port}`, "ministack.app:app"], {
    stdio: ["ignore", "pipe", "pipe"],
    detached: true, // its functions are in its group
    env: { ...env, GATEWAY_PORT: String(port) },
  });
  child.process = started;
  for (const stream of [started.stdout, started.stderr]) {
    stream.on("data", (chunk: Buffer) => {
      child.text += chunk.toString();
    });
  }
  await vi.waitFor(() => expect(child.text).toContain("Running on"), { timeout: 30_000 });
});
afterAll(async () => {
  if (child.process?.pid === undefined || child.process.exitCode !== null) return;
  const ended = once(child.process, "exit");
  process.kill(-child.process.pid, "SIGKILL");
  await ended;
});

test("npm run deploy makes the key ring and the whole stack, functions and API included", async () => {
  const printed = await deploy();

  expect(printed).toContain(`made the key ring /keelson-files/${stage}/key-ring`);
  expect(printed).toContain(`Service deployed to stack keelson-files-${stage}`);
  host = /https:\/\/(\w+)\.execute-api/.exec(printed)?.[1] ?? "";
  expect(host).not.toBe("");
}, 180_000);

test("the API answers once it is deployed", async () => {
  const found = await call("secretsmanager.ListSecrets", {});
  // Safe: what is looked at fails the test where it is not there.
  const [{ ARN }] = found["SecretList"] as [{ readonly ARN: string }];
  const { SecretString: secret } = await call("secretsmanager.GetSecretValue", { SecretId: ARN });
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

  await expect.poll(() => child.text, { timeout: 60_000 }).toContain(`{"text":"the file was scanned","file":"${file["id"]}"}`);
});

test("deployed once more with a function for each handler, the key ring stays, and each answers its route", async () => {
  const before = await functionNames();
  expect(await deploy("--param", "shape=each")).toContain(`the key ring /keelson-files/${stage}/key-ring is there`);
  const after = await functionNames();
  expect(after).toEqual(
    expect.arrayContaining(["createFile", "listFiles", "showFile"].map((name) => `keelson-files-${stage}-${name}`)),
  );
  expect(before).not.toEqual(after);

  const [created, file] = await ask("POST", "/files", { name: "b.txt", sizeMb: 1 });
  expect(created).toBe(201);
  expect(await ask("GET", `/files/${file["id"]}`)).toMatchObject([200, { name: "b.txt" }]);
  expect(await ask("GET", "/health/ready")).toMatchObject([200, { status: "ready" }]);
}, 180_000);

/** The functions that are there. */
async function functionNames(): Promise<string[]> {
  const response = await fetch(`${env["AWS_ENDPOINT_URL"]}/2015-03-31/functions`, {
    headers: { authorization: "AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/lambda" },
  });
  // Safe: what is not there fails the test.
  const { Functions: functions } = (await response.json()) as { readonly Functions: { readonly FunctionName: string }[] };
  return functions.map(({ FunctionName: name }) => name).sort();
}

async function deploy(...more: string[]): Promise<string> {
  const started = spawn("npm", ["run", "deploy", "--", "--stage", stage, ...more], {
    cwd: root,
    env,
    stdio: ["ignore", "pipe", "pipe"],
  });
  let printed = "";
  for (const stream of [started.stdout, started.stderr]) {
    stream.on("data", (chunk: Buffer) => {
      printed += chunk.toString();
    });
  }
  const [code] = await once(started, "exit");
  if (code !== 0) throw new Error(`npm run deploy ended with ${code}: ${printed}\n${child.text.slice(-2000)}`);
  return printed;
}

async function call(target: string, input: object): Promise<Record<string, unknown>> {
  const [service = ""] = target.split(".");
  const response = await fetch(String(env["AWS_ENDPOINT_URL"]), {
    method: "POST",
    headers: {
      "x-amz-target": target,
      "content-type": "application/x-amz-json-1.1",
      authorization: `AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/${service}/aws4_request`,
    },
    body: JSON.stringify(input),
  });
  return (await response.json()) as Record<string, unknown>;
}

/** A request to the API, which is told by the name of the host. */
function ask(method: string, path: string, body?: object): Promise<[status: number, body: Record<string, unknown>]> {
  const { hostname, port } = new URL(String(env["AWS_ENDPOINT_URL"]));
  const text = body === undefined ? "" : JSON.stringify(body);
  const headers = {
    host: `${host}.execute-api.localhost:${port}`,
    authorization,
    "content-type": "application/json",
    "content-length": Buffer.byteLength(text),
  };
  return new Promise((resolve, reject) => {
    const asked = request({ hostname, port, method, path, headers }, (response) => {
      let answer = "";
      response.on("data", (chunk: Buffer) => {
        answer += chunk.toString();
      });
      response.on("end", () => resolve([response.statusCode ?? 0, JSON.parse(answer)]));
    });
    asked.on("error", reject);
    asked.end(text);
  });
}
