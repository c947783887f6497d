import type { ChildProcess } from "node:child_process";
import type { Logger } from "../../base/log/logger.ts";
import { isWatched, type Variables } from "../../base/process/environment.ts";
import { createDataDirectory } from "../service/data-directory.ts";
import { refuseInProduction } from "../service/refusal.ts";
import { type Attachment, attach } from "./attachments.ts";
import {
  leaveStackChild,
  releaseStackChild,
  startStackChild,
  stopStackChild,
} from "./stack-child.ts";
import type { StackProcessOptions } from "./stack-process.ts";

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
 * Processes with the same directory share a stack, which stops when the last of them leaves. If a
 * process restarts on each change (`node --watch`, `KEELSON_WATCH=1`), the stack waits 5 s for the
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
    idleMs: directory !== undefined && isWatched(env) ? 5000 : undefined,
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

/** Retries of attaching: a stack may be about to stop, and others may take and leave the directory. */
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
