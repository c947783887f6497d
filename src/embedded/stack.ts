import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import type { Logger } from "../log/logger.ts";
import type { Variables } from "../process/environment.ts";
import { createDataDirectory } from "./data-directory.ts";
import { refuseInProduction } from "./refusal.ts";
import type { StackProcessMessage, StackProcessOptions } from "./stack-process.ts";

/** How long {@link EmbeddedStack.close} waits before the process is killed. */
const closeMs = 5000;

/** Options of {@link startEmbeddedStack}. */
export interface EmbeddedStackOptions {
  /** Where data is kept, such as `.keelson`. Default: in memory. */
  readonly directory?: string;
  /** The port on 127.0.0.1. Default 0, which picks a free one. */
  readonly port?: number;
  /** Gets an error if the stack stops unexpectedly. */
  readonly log?: Logger;
  /** Where the environment (production or not) and the region are read from. Default `process.env`. */
  readonly env?: Variables;
}

/** A running embedded stack. */
export interface EmbeddedStack {
  /** Its address, `http://127.0.0.1:PORT`. */
  readonly endpoint: string;
  /** Variables that point AWS clients of any process at it: endpoint, region and dummy credentials. */
  readonly env: Readonly<Record<string, string>>;
  /** Stops it; data in a directory stays. */
  close(): Promise<void>;
}

/**
 * Starts AWS for development and tests in a child process: DynamoDB, SSM, SQS and EventBridge, on 127.0.0.1 only.
 * The child ends with this process, however this process ends.
 *
 * @throws Error in production and in Lambda; if dynalite is not installed, another process uses the directory, or the
 * port is taken.
 * @example
 * const stack = await startEmbeddedStack({ directory: ".keelson" });
 * Object.assign(process.env, stack.env);
 */
export async function startEmbeddedStack(options: EmbeddedStackOptions = {}): Promise<EmbeddedStack> {
  const { directory, port = 0, log, env = process.env } = options;
  refuseInProduction("The embedded stack", env);
  if (directory !== undefined) createDataDirectory(directory);
  const region = env["AWS_REGION"] ?? "us-east-1";
  const child = startProcess({ ...(directory === undefined ? {} : { directory }), port }, region);
  const endpoint = `http://127.0.0.1:${await portOf(child)}`;
  let closing = false;
  child.once("exit", (exitCode, signal) => {
    if (!closing) log?.error("embedded.stopped", { endpoint, exitCode, signal });
  });
  // A script that forgets to close the stack still ends, and the stack with it.
  child.unref();
  child.channel?.unref();
  return {
    endpoint,
    env: Object.freeze({
      AWS_ENDPOINT_URL: endpoint,
      AWS_REGION: region,
      AWS_ACCESS_KEY_ID: "embedded",
      AWS_SECRET_ACCESS_KEY: "embedded",
    }),
    async close() {
      closing = true;
      await stop(child);
    },
  };
}

function startProcess(options: StackProcessOptions, region: string): ChildProcess {
  // Beside this file, and like it TypeScript in the repository and JavaScript in the package.
  const extension = import.meta.url.slice(import.meta.url.lastIndexOf("."));
  const entry = fileURLToPath(new URL(`./stack-process${extension}`, import.meta.url));
  return spawn(process.execPath, [entry, JSON.stringify(options)], {
    stdio: ["ignore", "ignore", "inherit", "ipc"],
    env: { ...process.env, AWS_REGION: region }, // dynalite's table ARNs name it
  });
}

async function portOf(child: ChildProcess): Promise<number> {
  const stopped = new AbortController();
  try {
    const message = await Promise.race([
      once(child, "message", { signal: stopped.signal }).then(([told]) => told as StackProcessMessage), // stack-process.ts sends nothing else
      once(child, "exit", { signal: stopped.signal }).then(([code, signal]) => ({
        failure: `its process ended with ${signal ?? code} before it listened`,
      })),
    ]);
    if ("port" in message) return message.port;
    await stop(child);
    throw new Error(`The embedded stack did not start: ${message.failure}`);
  } finally {
    stopped.abort();
  }
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.ref();
  const exit = once(child, "exit");
  const killer = setTimeout(() => child.kill("SIGKILL"), closeMs);
  if (child.connected) child.disconnect();
  await exit;
  clearTimeout(killer);
}
