import { type ChildProcess, type SpawnOptions, spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import type { Logger } from "../../base/log/logger.ts";
import { isWatched, type Variables } from "../../base/process/environment.ts";
import { createDataDirectory } from "../service/data-directory.ts";
import { refuseInProduction } from "../service/development-secret.ts";
import { type Attachment, attach } from "./attachments.ts";
import type { StackProcessMessage, StackProcessOptions } from "./stack-process.ts";

/** Options of {@link startEmbeddedStack}. */
export interface EmbeddedStackOptions {
  /** Data directory, such as `.keelson`. Default: none; the data stays in memory. */
  readonly directory?: string;
  /** Port on 127.0.0.1. Default 0: the port of the directory's running stack, or a free port. */
  readonly port?: number;
  /** Receives an error if the stack stops unexpectedly, and an info if it was already running. */
  readonly log?: Logger;
  /** Variables that determine the environment and the region. Default `process.env`. */
  readonly env?: Variables;
}

/** A running embedded stack. */
export interface EmbeddedStack {
  /** URL of the stack: `http://127.0.0.1:PORT`. */
  readonly endpoint: string;
  /** Endpoint, region and dummy credentials for the AWS clients of any process. */
  readonly env: Readonly<Record<string, string>>;
  /** Stops the stack. Data in a directory stays. */
  close(): Promise<void>;
}

/**
 * Starts local DynamoDB, SSM, SQS and EventBridge for development and tests, in a child process on
 * 127.0.0.1 that exits with this process, even if this process is killed.
 *
 * Processes with the same directory share a stack, which stops when the last process leaves. If a
 * process restarts on each change (`node --watch`, `KEELSON_WATCH=1`), the stack waits 15 s for the
 * next process.
 *
 * @throws Error in production and in Lambda; if dynalite is not installed, the port is taken, or
 * the directory has a stack of another region or port.
 * @example
 * const stack = await startEmbeddedStack({ directory: ".keelson" });
 * Object.assign(process.env, stack.env);
 */
export async function startEmbeddedStack(
  options: EmbeddedStackOptions = {},
): Promise<EmbeddedStack> {
  const { directory, port = 0, log, env = process.env } = options;
  refuseInProduction("The embedded stack", env);
  if (directory !== undefined) createDataDirectory(directory);
  const stack = await openStack({
    directory,
    port,
    region: env["AWS_REGION"] || undefined,
    idleMs: directory !== undefined && isWatched(env) ? reloadMs : undefined,
  });
  const endpoint = `http://127.0.0.1:${stack.port}`;
  if (stack.isAttached) log?.info("embedded.attached", { endpoint });
  let closing: Promise<void> | undefined;
  void stack.ended.then((how) => {
    if (closing === undefined) log?.error("embedded.stopped", { endpoint, ...how });
  });
  return {
    endpoint,
    env: Object.freeze({
      AWS_ENDPOINT_URL: endpoint,
      AWS_REGION: stack.region,
      AWS_ACCESS_KEY_ID: "embedded",
      AWS_SECRET_ACCESS_KEY: "embedded",
    }),
    close: () => (closing ??= stack.close()),
  };
}

/** A restart may compile the application first. */
const reloadMs = 15_000;

/** A stack may be about to stop, and others may take and leave the directory. */
const patience = Object.freeze({ attempts: 3, ms: 15_000 });

async function openStack(options: StackProcessOptions) {
  const { directory, port, region } = options;
  const ownRegion = region ?? "us-east-1";
  let hasStarted = false;
  const endMs = performance.now() + patience.ms;
  for (let attempt = 0; attempt < patience.attempts || performance.now() < endMs; attempt += 1) {
    const attached = directory === undefined ? undefined : await attach(directory, region);
    if (attached !== undefined) return shareStack(attached, port, !hasStarted);
    const { child, told } = await startStackChild(options, ownRegion);
    if ("port" in told) {
      const close = () => leaveStackChild(child);
      const ended = exitOf(child);
      return { port: told.port, region: ownRegion, isAttached: false, ended, close };
    }
    hasStarted = told.isOwn;
    if (told.isOwn) releaseStackChild(child);
    else await stopStackChild(child);
  }
  throw new Error(
    `The embedded stack of ${directory} does not answer; end the process that ${directory}/holder.json names`,
  );
}

async function shareStack(
  { port, region, ended, detach }: Attachment,
  wanted: number,
  isAttached: boolean,
) {
  if (wanted === 0 || wanted === port)
    return { port, region, isAttached, ended: ended.then(() => ({})), close: detach };
  await detach();
  throw new Error(
    `The embedded stack runs already, on 127.0.0.1:${port}, not on ${wanted}; end the processes that use it, or pass no port`,
  );
}

function exitOf(child: ChildProcess) {
  return new Promise<object>((resolve) => {
    child.once("exit", (exitCode, signal) => resolve({ exitCode, signal }));
  });
}

const stopMs = 5000;

/** Waits until the child listens or another process shares. It keeps no process alive. */
async function startStackChild(options: StackProcessOptions, ownRegion: string) {
  // The entry is TypeScript in the repository, JavaScript in the package.
  const extension = import.meta.url.slice(import.meta.url.lastIndexOf("."));
  const entry = fileURLToPath(new URL(`./stack-process${extension}`, import.meta.url));
  const parameters = [entry, JSON.stringify(options)];
  const env = { ...stackVariables(process.env), AWS_REGION: ownRegion }; // dynalite's table ARNs contain the region
  const child =
    options.idleMs === undefined
      ? spawn(process.execPath, parameters, { stdio: ["ignore", "ignore", "inherit", "ipc"], env })
      : startDetached(parameters, env);
  const told = await messageOf(child);
  if ("failure" in told) {
    await stopStackChild(child);
    throw new Error(`The embedded stack did not start: ${told.failure}`);
  }
  child.unref();
  child.channel?.unref?.(); // Bun's channel has no `unref` and does not keep the process alive
  return { child, told };
}

/** The child exits, or continues detached if others use it. */
async function leaveStackChild(child: ChildProcess) {
  if (!child.connected) return stopStackChild(child);
  child.ref();
  child.channel?.ref?.();
  const killer = setTimeout(() => child.kill("SIGKILL"), stopMs);
  child.send("leave", () => {}); // ignores the error of a process that has exited
  await messageOf(child); // resolves when other users remain, or when the process exits
  clearTimeout(killer);
  releaseStackChild(child);
}

/** For a process that does not count its parent as a user. */
function releaseStackChild(child: ChildProcess) {
  /* v8 ignore next -- the process may have exited and disconnected in the meantime */
  if (child.connected) child.disconnect();
  child.unref();
}

async function stopStackChild(child: ChildProcess) {
  if (child.connected) child.disconnect();
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.ref();
  const killer = setTimeout(() => child.kill("SIGKILL"), stopMs);
  await once(child, "exit");
  clearTimeout(killer);
}

/** Without a parent: tools that restart a process signal its descendants and wait for them. */
function startDetached(parameters: readonly string[], env: NodeJS.ProcessEnv) {
  const options: SpawnOptions = {
    stdio: ["ignore", "ignore", "ignore", "ipc"],
    env,
    detached: true,
  };
  /* v8 ignore next -- Windows has no /bin/sh, and Bun's channel ends with the shell */
  if (process.platform === "win32" || process.versions["bun"] !== undefined)
    return spawn(process.execPath, parameters, options);
  return spawn("/bin/sh", ["-c", '"$0" "$@" &', process.execPath, ...parameters], options);
}

async function messageOf(child: ChildProcess): Promise<StackProcessMessage> {
  const stopped = new AbortController();
  const event = (name: string) => once(child, name, { signal: stopped.signal });
  try {
    return await Promise.race([
      event("message").then(([told]) => told as StackProcessMessage), // the process does not send other messages
      // If the direct child is the shell, only the disconnect shows that the stack has ended.
      Promise.all([event("exit"), event("disconnect")]).then(([[code, killedBy]]) => ({
        failure: `its process ended with ${killedBy ?? code} before it listened`,
      })),
    ]);
  } finally {
    stopped.abort();
  }
}

const needed = new Set([
  ...["PATH", "HOME", "USERPROFILE", "TMPDIR", "TEMP", "TMP", "TZ", "LANG", "LC_ALL"],
  ...["SYSTEMROOT", "WINDIR", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "ELECTRON_RUN_AS_NODE"],
  ...["NODE_PATH", "NODE_COMPILE_CACHE", "NODE_DISABLE_COMPILE_CACHE"],
]);

/**
 * Without the options of watchers, debuggers and loaders: under `node --watch`, the child would report its
 * imports instead of its port. Only Plug'n'Play keeps `NODE_OPTIONS`, which names its loader.
 */
export function stackVariables(
  variables: Variables,
  hasPlugAndPlay = process.versions["pnp"] !== undefined,
) {
  return Object.fromEntries(
    Object.entries(variables).filter(
      ([name]) => needed.has(name.toUpperCase()) || (hasPlugAndPlay && name === "NODE_OPTIONS"),
    ),
  );
}
