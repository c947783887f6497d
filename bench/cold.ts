import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { bundleAsUser, bundleOurs, bundlePeer } from "./bundles.ts";
import { median, type Result, result, rounded, spreadOf } from "./measure.ts";

const rounds = 60;
const names = ["empty", "ours", "peer", "rolldown", "esbuild"] as const;

/**
 * How long a cold function takes to its first answer in Lambda's own runtime: the start of the process, the import, and a
 * value from DynamoDB. A function that does nothing is printed for comparison. Beside ours stand the bundles of an application
 * that has installed the package, made by the build scripts of `docs/deploy.md`.
 */
export async function coldResults(env: Readonly<Record<string, string>>): Promise<Result[]> {
  const program = await lambdaRuntime();
  const folder = mkdtempSync(join(tmpdir(), "keelson-bench-"));
  try {
    await bundleOurs(join(folder, "ours"));
    await bundlePeer(join(folder, "peer"));
    await bundleAsUser(join(folder, "user"), { rolldown: join(folder, "rolldown"), esbuild: join(folder, "esbuild") });
    mkdirSync(join(folder, "empty"));
    const answer = { statusCode: 200, body: value };
    writeFileSync(join(folder, "empty", "app.mjs"), `export const handler = async () => (${JSON.stringify(answer)});\n`);
    const taken = names.map(() => [] as number[]);
    for (let round = -2; round < rounds; round++) {
      for (const [index, name] of names.entries()) {
        const ms = await firstAnswer(program, join(folder, name), env);
        if (round >= 0) taken[index]?.push(ms);
      }
    }
    const [empty = 0, ours = 0, peer = 0, byRolldown = 0, byEsbuild = 0] = taken.map((times) => rounded(median(times), 1));
    const [, ourTimes = [], , rolldownTimes = [], esbuildTimes = []] = taken;
    console.log(`lambda-cold: a function that does nothing ${empty} ms; quartiles ${taken.map(quartiles).join(", ")}`);
    const user = { goal: "ratio <= 1.03", peer: ours, unit: "ms" } as const;
    return [
      result({ id: "lambda-cold", goal: "ratio <= 0.75", ours, peer, unit: "ms" }),
      result({ ...user, id: "user-bundle-cold", ours: byRolldown, spread: spreadOf(rolldownTimes, ourTimes) }),
      result({ ...user, id: "user-esbuild-cold", ours: byEsbuild, spread: spreadOf(esbuildTimes, ourTimes) }),
    ];
  } finally {
    rmSync(folder, { recursive: true });
  }
}

interface LambdaRuntime {
  /** A program. */
  readonly emulator: string;
  /** A module that Node runs in it. */
  readonly runtime: string;
}

/** Installed where it is not there yet, as the tests of the package do. */
async function lambdaRuntime(): Promise<LambdaRuntime> {
  const { installRuntime } = await import(new URL("../scripts/package-emulator.mjs", import.meta.url).href);
  return installRuntime(console.log) as LambdaRuntime; // safe: it is what it says that it returns
}

const value = '{"id":"f1","maxMb":77}';
const path = "/limits/f1";
const event = {
  version: "2.0",
  rawPath: path,
  rawQueryString: "",
  headers: { "x-request-id": "r1" },
  pathParameters: { id: "f1" },
  requestContext: { http: { method: "GET", path, sourceIp: "192.0.2.1" }, stage: "$default" },
  isBase64Encoded: false,
};

/** The milliseconds from the first event, with which the emulator starts the process, to its answer. */
async function firstAnswer(
  { emulator, runtime }: LambdaRuntime,
  folder: string,
  env: Readonly<Record<string, string>>,
): Promise<number> {
  const [port, runtimePort] = await freePorts();
  const child = spawn(
    emulator,
    [
      ...["--runtime-interface-emulator-address", `127.0.0.1:${port}`, "--runtime-api-address", `127.0.0.1:${runtimePort}`],
      ...[process.execPath, runtime, "app.handler"],
    ],
    {
      cwd: folder,
      detached: true, // a group of its own: the function's process ends with the emulator's
      stdio: "ignore",
      env: {
        ...process.env,
        ...env,
        NODE_ENV: "production",
        LAMBDA_TASK_ROOT: folder,
        AWS_LAMBDA_FUNCTION_NAME: "files",
        AWS_LAMBDA_FUNCTION_TIMEOUT: "20",
        AWS_LAMBDA_FUNCTION_MEMORY_SIZE: "512",
      },
    },
  );
  try {
    while (!(await isListening(port))) await new Promise((resolve) => setTimeout(resolve, 5));
    const began = performance.now();
    const response = await fetch(`http://127.0.0.1:${port}/2015-03-31/functions/function/invocations`, {
      method: "POST",
      body: JSON.stringify(event),
    });
    const text = await response.text();
    const ms = performance.now() - began;
    const { statusCode, body } = JSON.parse(text) as { statusCode?: number; body?: string }; // safe: what is neither is not the answer
    if (statusCode !== 200 || body !== value) throw new Error(`not the answer: ${text}`);
    return ms;
  } finally {
    await stop(child);
  }
}

async function stop(child: ChildProcess): Promise<void> {
  const { pid } = child;
  if (pid === undefined || child.exitCode !== null) return;
  const exited = once(child, "exit");
  process.kill(-pid, "SIGKILL");
  await exited;
}

/** The emulator takes no port 0: two that were free a moment ago. */
async function freePorts(): Promise<[number, number]> {
  const servers = [createServer().listen(0, "127.0.0.1"), createServer().listen(0, "127.0.0.1")];
  await Promise.all(servers.map((server) => once(server, "listening")));
  // Safe: they listen on TCP, so their addresses are objects.
  const [first, second] = servers.map((server) => (server.address() as { port: number }).port);
  for (const server of servers) server.close();
  return [Number(first), Number(second)];
}

function isListening(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1", () => {
      socket.destroy();
      resolve(true);
    }).on("error", () => resolve(false));
  });
}

function quartiles(times: readonly number[], index: number): string {
  const sorted = [...times].sort((a, b) => a - b);
  const at = (share: number) => rounded(sorted[Math.floor(sorted.length * share)] ?? Number.NaN, 1);
  return `${names[index]} ${at(0.25)}-${at(0.75)}`;
}
