/* v8 ignore file -- entry of a child process, which stack.system.test.ts runs */
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { existsSync } from "node:fs";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { inspect } from "node:util";
import { systemCode } from "../../base/errors/errors.ts";
import { openEventBridge } from "../bus/event-bridge.ts";
import { openDynamoDb } from "../dynamodb/dynamodb.ts";
import { openSsm } from "../parameters/ssm.ts";
import { openSqs } from "../queues/sqs.ts";
import { openExclusively, shared, writeHolder } from "../service/data-directory.ts";
import { type Attachments, acceptAttachments } from "./attachments.ts";
import { createFrontServer } from "./front-server.ts";

export interface StackProcessOptions {
  readonly directory?: string | undefined;
  readonly port: number;
  readonly region?: string | undefined;
  /** Time without users until exit. If set, the parent must attach to be a user. */
  readonly idleMs?: number | undefined;
}

/** First message to the parent. */
export type StackProcessMessage =
  /** The stack runs, and the parent already counts as its user. */
  | { readonly port: number }
  /** The parent must attach: to this stack, or to one that runs on the directory. */
  | { readonly isOwn: boolean }
  /** No stack could be started. */
  | { readonly failure: string };

/** Response to a parent that leaves while others use the stack. */
const othersUse = { isStaying: true } as const;

// A terminal signals the whole group, but the parent needs the stack while it drains.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => {});

try {
  await run(JSON.parse(process.argv[2] ?? "") as StackProcessOptions); // startStackChild passes the options
} catch (error) {
  process.once("disconnect", () => process.exit(1));
  tell({ failure: messageOf(error) });
}

async function run({ directory, port, region: wanted, idleMs }: StackProcessOptions) {
  let attachments: Attachments | undefined;
  const reportFault = (error: unknown) => {
    console.error("keelson/embedded:", error);
    attachments?.tell(`keelson/embedded: ${inspect(error)}\n`);
  };
  const region = process.env["AWS_REGION"] ?? "us-east-1";
  const self = { pid: process.pid, parentPid: process.ppid };
  const pathOf = (name: string) => directory && join(directory, name);
  const open = () => openDynamoDb({ path: pathOf("dynamodb"), reportFault });
  const dynamoDb =
    directory === undefined
      ? await open()
      : await openExclusively(directory, { ...self, isStarting: true }, wanted, open);
  if (dynamoDb === shared) return tell({ isOwn: false });
  // dynalite can throw in its own callbacks, which do not know the request.
  process.on("uncaughtException", (error) => {
    reportFault(error);
    dynamoDb.abandon(error);
  });

  const ssm = openSsm({ region, directory });
  const sqs = openSqs({ region, path: pathOf("queues.jsonl") });
  const path = pathOf("event-bridge.jsonl");
  const eventBridge = openEventBridge({ sqs, region, reportFault, path });
  const server = createFrontServer([dynamoDb, ssm, sqs, eventBridge], reportFault);
  const close = async () => {
    setTimeout(() => process.exit(1), 5000).unref(); // an orphan that cannot close must not hold the directory
    if (directory !== undefined && existsSync(directory))
      writeHolder(directory, { ...self, isEnding: true });
    server.close();
    attachments?.close();
    sqs.close();
    eventBridge.close();
    await dynamoDb.close();
    process.exit(0);
  };
  const key = randomBytes(16).toString("base64url"); // a stack in memory never shares its key
  attachments = acceptAttachments(server, { key, idleMs: idleMs ?? 0, onIdle: close });
  if (idleMs === undefined) useUntilParentLeaves(attachments);

  server.listen(port, "127.0.0.1");
  await once(server, "listening").catch((error: unknown) => {
    throw new Error(reasonOf(error, port), { cause: error });
  });
  const listening = (server.address() as AddressInfo).port; // a TCP server's address is an AddressInfo
  if (directory !== undefined)
    writeHolder(directory, { ...self, shared: { port: listening, key, region } });
  tell(idleMs === undefined ? { port: listening } : { isOwn: true });
}

function useUntilParentLeaves({ enter }: Attachments) {
  const leave = enter();
  process.once("disconnect", leave);
  process.once("message", () => {
    if (leave() > 0) tell(othersUse);
  });
  if (!process.connected) leave();
}

function reasonOf(error: unknown, port: number) {
  return systemCode(error) === "EADDRINUSE"
    ? `127.0.0.1:${port} is in use; stop what listens there, or pass another port`
    : messageOf(error);
}

function messageOf(error: unknown) {
  return error instanceof Error ? error.message : String(error);
}

function tell(message: StackProcessMessage | typeof othersUse) {
  process.send?.(message);
}
