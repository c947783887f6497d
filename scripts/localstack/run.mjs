// Gets a LocalStack: the one that a variable names, one in a container if an engine answers,
// or one installed here in host mode.
import { spawn, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { install } from "./install.mjs";

const directory = join(import.meta.dirname, "..", "..", ".keelson", "localstack");
const image = "localstack/localstack:4.9.2";
const readyMs = 180_000;
const stopMs = 20_000;

/**
 * Gets a LocalStack, and prints one line per step.
 *
 * @returns `{ endpoint, stopped, stop() }`: `stopped` resolves when its process ends, but never for
 * a given one; `stop` ends only a process that this function has started.
 * @throws Error naming missing programs, or the reason why it did not start; and if `signal` aborts, once
 * the started process has ended.
 */
export async function getLocalStack({ port, host = false, signal }, say) {
  const given = process.env.LOCALSTACK_ENDPOINT || process.env.AWS_ENDPOINT_URL;
  if (given) return useGiven(given, say);
  const free = port ?? (await freePort());
  if (!host && hasContainerEngine()) return startContainer(free, say, signal);
  return startHere(free, say, signal);
}

/**
 * Prepares for {@link getLocalStack} without starting a process: downloads the image if an engine answers, installs LocalStack
 * otherwise. Does not do anything for a given LocalStack.
 *
 * @throws Error naming missing programs, or the step that failed.
 */
export async function prepareLocalStack(say, signal) {
  if (process.env.LOCALSTACK_ENDPOINT || process.env.AWS_ENDPOINT_URL) return;
  if (!hasContainerEngine()) return void (await install(directory, say, signal));
  say(`pulling ${image}`);
  const { status, stderr } = spawnSync("docker", ["pull", "--quiet", image], { encoding: "utf8" });
  if (status !== 0) throw new Error(`docker pull ${image} failed: ${stderr}`);
}

async function useGiven(given, say) {
  if (!URL.canParse(given))
    throw new Error(
      `LOCALSTACK_ENDPOINT or AWS_ENDPOINT_URL is ${JSON.stringify(given)}, which is not a URL`,
    );
  const endpoint = new URL(given).origin;
  if (!(await isReady(endpoint))) {
    throw new Error(
      `no LocalStack answers at ${endpoint}; start it, or unset LOCALSTACK_ENDPOINT and AWS_ENDPOINT_URL`,
    );
  }
  say(`using the one at ${endpoint}`);
  return { endpoint, stopped: new Promise(() => {}), stop: async () => {} };
}

async function startContainer(port, say, signal) {
  const name = `keelson-localstack-${process.pid}`;
  say(`starting ${image} in a container`);
  const child = spawn(
    "docker",
    ["run", "--rm", "--name", name, "-p", `127.0.0.1:${port}:4566`, image],
    {
      stdio: ["ignore", "pipe", "pipe"],
      detached: true,
    },
  );
  return whenReady(child, { port, signal }, say, () =>
    spawnSync("docker", ["stop", name], { stdio: "ignore" }),
  );
}

async function startHere(port, say, signal) {
  const places = await install(directory, say, signal);
  say("starting");
  const root = ownRoot(places.root);
  const child = spawn(places.python, ["-m", "localstack.runtime.main"], {
    stdio: ["ignore", "pipe", "pipe"],
    detached: true, // a separate process group, because DynamoDB Local is its child
    env: {
      ...process.env,
      FILESYSTEM_ROOT: root,
      OVERRIDE_IN_DOCKER: "0", // this machine may be a container itself
      GATEWAY_LISTEN: `127.0.0.1:${port}`,
      DISABLE_EVENTS: "1",
      SKIP_SSL_CERT_DOWNLOAD: "1",
      DNS_ADDRESS: "0",
      S3_SKIP_SIGNATURE_VALIDATION: "0", // or a tampered presigned URL would be accepted
    },
  });
  child.once("exit", () => {
    signalGroup(child, "SIGKILL"); // its children write to its folders
    rmSync(root, { recursive: true, force: true, maxRetries: 10 });
  });
  return whenReady(child, { port, signal }, say, () => signalGroup(child, "SIGTERM"));
}

/** A root with the installation and a separate state: if two shared one, the first to end would delete the other's. */
function ownRoot(installed) {
  const root = mkdtempSync(join(directory, "run-"));
  const data = join("var", "lib", "localstack");
  mkdirSync(join(root, data), { recursive: true });
  symlinkSync(join(installed, data, "lib"), join(root, data, "lib"));
  return root;
}

async function whenReady(child, { port, signal }, say, askToStop) {
  const endpoint = `http://127.0.0.1:${port}`;
  const began = performance.now();
  let said = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (text) => {
      said = (said + text).slice(-4000);
    });
  }
  let ended;
  const stopped = new Promise((resolve) => {
    const end = (why) => {
      ended = why;
      resolve(why);
    };
    child.once("error", (error) => end(error.message));
    child.once("exit", (code, signalName) => end(`it ended with ${signalName ?? code}`));
  });
  const stop = async () => {
    askToStop();
    await Promise.race([stopped, delay(stopMs, undefined, { ref: false })]);
    signalGroup(child, "SIGKILL"); // the rest of its group
    await stopped;
  };
  while (!(await isReady(endpoint))) {
    if (ended !== undefined) throw new Error(`LocalStack did not start: ${ended}\n${said.trim()}`);
    if (signal.aborted || performance.now() - began > readyMs) {
      await stop();
      signal.throwIfAborted();
      throw new Error(`LocalStack was not ready within ${readyMs / 1000} s\n${said.trim()}`);
    }
    await delay(200);
  }
  say(`ready at ${endpoint} after ${((performance.now() - began) / 1000).toFixed(1)} s`);
  return { endpoint, stopped, stop };
}

async function isReady(endpoint) {
  try {
    return (await fetch(`${endpoint}/_localstack/health`, { signal: AbortSignal.timeout(5000) }))
      .ok;
  } catch {
    return false;
  }
}

function signalGroup({ pid }, name) {
  if (pid === undefined) return;
  try {
    process.kill(-pid, name);
  } catch {
    // Its group has ended.
  }
}

function hasContainerEngine() {
  return spawnSync("docker", ["info"], { stdio: "ignore", timeout: 10_000 }).status === 0;
}

async function freePort() {
  const server = createServer().listen(0, "127.0.0.1");
  await new Promise((resolve, reject) => server.once("listening", resolve).once("error", reject));
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return port;
}
