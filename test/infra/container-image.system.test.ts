import { execFile } from "node:child_process";
import { globSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { signToken } from "../../src/base/identity/token.ts";
import { systemClock } from "../../src/base/process/clock.ts";
import { type EmbeddedStack, startEmbeddedStack } from "../../src/embedded/stack/index.ts";
import { type StartedProcess, signalGroup, startProcess } from "../support/process.ts";
import { buildImage, type Image } from "./build-image.ts";
import { root } from "./dockerfile.ts";

const into = mkdtempSync(join(tmpdir(), "keelson-image-"));
const secret = "a secret of the test, of at least 32 bytes";
const path = `${dirname(process.execPath)}:/usr/bin:/bin`;
let image: Image;
let stack: EmbeddedStack;
const running: StartedProcess[] = [];

beforeAll(async () => {
  stack = await startEmbeddedStack({ env: { NODE_ENV: "test" } });
  image = await buildImage(into);
});

afterAll(async () => {
  for (const one of running) {
    signalGroup(one, "SIGKILL");
    await one.exited;
  }
  await stack.close();
  rmSync(into, { recursive: true, force: true });
});

test("the image contains everything for production, and nothing for development", () => {
  const packages = readdirSync(join(image.workingDirectory, "node_modules"));

  expect(readdirSync(image.files)).toEqual(["app"]);
  expect(readdirSync(image.workingDirectory).sort()).toEqual([
    "dist",
    "examples",
    "node_modules",
    "package.json",
  ]);
  expect(packages).toEqual(expect.arrayContaining(["@aws-sdk", "jose", "zod"]));
  expect(
    packages.filter((name) => /^(node-|typescript|vitest|dynalite|esbuild|playwright)/.test(name)),
  ).toEqual([]);
  expect(
    globSync("{dist,examples}/**/{*.env,.*,*.test.*}", { cwd: image.workingDirectory }),
  ).toEqual([]);
});

test("every package of the image matches the lock file", () => {
  const installed = packagesOf(join(image.workingDirectory, "node_modules", ".package-lock.json"));
  const locked = packagesOf(join(root, "package-lock.json"));

  expect(installed.size).toBeGreaterThan(40);
  expect([...installed].filter(([name, integrity]) => locked.get(name) !== integrity)).toEqual([]);
});

test("the image serves in production with the settings of its environment, and exits with 0 on SIGTERM", async () => {
  const container = await start();
  expect(container.logs.find(({ msg }) => msg === "server.started")).toMatchObject({
    environment: "production",
    adapters: { dynamodb: stack.endpoint, sqs: stack.endpoint },
  });
  expect(await checkHealth({ PORT: String(container.port) })).toBe(0);

  const created = await send(container, "POST", "/files", { name: "report.pdf", sizeMb: 3 });
  expect(created.status).toBe(201);
  const link = await send(container, "GET", `${created.headers.get("location")}/download-url`);
  expect(await link.json()).toMatchObject({ url: expect.stringContaining("X-Amz-Signature") });
  expect((await fetch(`http://127.0.0.1:${container.port}/health/ready`)).status).toBe(200);

  container.child.kill("SIGTERM");
  expect(await container.exited).toEqual({ code: 0, signal: null });
  expect(container.logs).toContainEqual(
    expect.objectContaining({ msg: "shutdown.completed", clean: true }),
  );
  expect(await checkHealth({ PORT: String(container.port) })).toBe(1);
});

test("the image does not start without a secret, and names what is missing", async () => {
  await expect(start({ KEELSON_AUTH_SECRET: undefined })).rejects.toThrow(
    /exited with 1.*set KEELSON_AUTH_SECRET/s,
  );
});

test("the health check uses the port of the process, which defaults to 3000", async () => {
  const stub =
    "globalThis.fetch = async (url) => ({ ok: url === 'http://127.0.0.1:3000/health/live' })";
  const env = { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(stub)}` };

  expect(await checkHealth(env)).toBe(0);
  expect(await checkHealth({ ...env, PORT: "3001" })).toBe(1);
});

/** Starts what the image's entrypoint says, in an environment that has nothing but what a container gets. */
async function start(
  env: Readonly<Record<string, string | undefined>> = {},
): Promise<StartedProcess> {
  const none = Object.fromEntries(Object.keys(process.env).map((name) => [name, undefined]));
  const given = {
    ...none,
    PATH: path,
    ...image.env,
    ...stack.env,
    KEELSON_AUTH_SECRET: secret,
    PORT: "0",
    ...env,
  };
  const parameters = ["-c", 'cd "$0" && exec "$@"', image.workingDirectory, ...image.entrypoint];
  const started = await startProcess("sh", parameters, given);
  running.push(started);
  return started;
}

/** The exit code of the image's health check. */
function checkHealth(env: Readonly<Record<string, string>>): Promise<number> {
  const [command = "", ...parameters] = image.healthcheck;
  const options = { cwd: image.workingDirectory, env: { PATH: path, ...image.env, ...env } };
  return new Promise((resolve) => {
    const child = execFile(command, parameters, options, () => resolve(child.exitCode ?? -1));
  });
}

async function send(
  { port }: StartedProcess,
  method: string,
  target: string,
  body?: unknown,
): Promise<Response> {
  const token = await signToken(
    { secret, userId: "ann", tenantId: "acme", roles: [] },
    systemClock,
  );
  return fetch(`http://127.0.0.1:${port}${target}`, {
    method,
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
}

/** The packages of a lock by their place, with what identifies their content. */
function packagesOf(lock: string): Map<string, string> {
  const { packages } = JSON.parse(readFileSync(lock, "utf8")) as {
    packages: Record<string, { integrity?: string }>;
  };
  return new Map(Object.entries(packages).map(([name, { integrity = "" }]) => [name, integrity]));
}
