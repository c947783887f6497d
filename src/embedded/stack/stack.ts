import type { ChildProcess } from "node:child_process";
import type { Logger } from "../../base/log/logger.ts";
import { isWatched, type Variables } from "../../base/process/environment.ts";
import { createDataDirectory } from "../service/data-directory.ts";
import { refuseInProduction } from "../service/refusal.ts";
import { type Attachment, attach } from "./attach.ts";
import {
  leaveStackChild,
  releaseStackChild,
  startStackChild,
  stopStackChild,
} from "./stack-child.ts";

/** How long a stack that processes share waits for the next one, in milliseconds. */
const idleMs = 5000;

/** Options of {@link startEmbeddedStack}. */
export interface EmbeddedStackOptions {
  /** Where data is kept, such as `.keelson`. Default: in memory. */
  readonly directory?: string;
  /** The port on 127.0.0.1. Default 0, which picks a free one, or that of a stack which runs on the directory. */
  readonly port?: number;
  /** Gets an error if the stack stops unexpectedly, and an info if another process has started it. */
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
 * A stack with a directory is one that other processes use as well: whoever starts another on the directory gets it. It ends
 * with its last user; in a process that is restarted with each change (`node --watch`, `KEELSON_WATCH=1`) 5 s later, so the
 * next process finds it running.
 *
 * @throws Error in production and in Lambda; if dynalite is not installed, the port is taken, or the directory has a stack
 * of another region or port.
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
    isWatched: isWatched(env),
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

/** A stack that runs: this process's own, or one that it shares. */
interface OpenedStack {
  readonly port: number;
  readonly region: string;
  /** Whether it was there already. */
  readonly isAttached: boolean;
  /** Resolves with what is known of its end. */
  readonly ended: Promise<Readonly<Record<string, unknown>>>;
  close(): Promise<void>;
}

interface Wanted {
  readonly directory: string | undefined;
  /** 0 is any. */
  readonly port: number;
  /** `undefined` is that of a stack which is there already. */
  readonly region: string | undefined;
  readonly isWatched: boolean;
}

/** How often a directory's stack is attached to: the one that was found may be about to end. */
const attempts = 3;

async function openStack({ directory, port, region, isWatched }: Wanted): Promise<OpenedStack> {
  const ownRegion = region ?? "us-east-1";
  const options = {
    port,
    ...(region === undefined ? {} : { region }),
    ...(directory === undefined ? {} : { directory, ...(isWatched ? { idleMs } : {}) }),
  };
  let hasStarted = false;
  for (let attempt = 0; attempt < attempts; attempt += 1) {
    const attached = directory === undefined ? undefined : await attach(directory, region);
    if (attached !== undefined) return shareStack(attached, port, !hasStarted);
    const { child, told } = await startStackChild(options, ownRegion);
    if ("port" in told) {
      const ended = exitOf(child);
      return {
        port: told.port,
        region: ownRegion,
        isAttached: false,
        ended,
        close: () => leaveStackChild(child),
      };
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
): Promise<OpenedStack> {
  if (wanted === 0 || wanted === port)
    return { port, region, isAttached, ended: ended.then(() => ({})), close: detach };
  await detach();
  throw new Error(
    `The embedded stack runs already, on 127.0.0.1:${port}, not on ${wanted}; end the processes that use it, or pass no port`,
  );
}

function exitOf(child: ChildProcess): OpenedStack["ended"] {
  return new Promise((resolve) => {
    child.once("exit", (exitCode, signal) => resolve({ exitCode, signal }));
  });
}
