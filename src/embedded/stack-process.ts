/* v8 ignore file -- the entry of a child process: only a real process can show its wiring (stack.test.ts) */
// The entry of the child process that stack.ts starts. Its parts are tested by themselves; what
// stands here is their wiring to a process, which only a real process can show (stack.test.ts).
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { openExclusively } from "./data-directory.ts";
import { openDynamoDb } from "./dynamodb.ts";
import { openEventBridge } from "./event-bridge.ts";
import { createFrontServer } from "./front-server.ts";
import { openSqs } from "./sqs.ts";
import { openSsm } from "./ssm.ts";

/** What the parent says on the command line. */
export interface StackProcessOptions {
  readonly directory?: string;
  readonly port: number;
}

/** What the process tells its parent, once. */
export type StackProcessMessage = { readonly port: number } | { readonly failure: string };

// A terminal and a supervisor signal the whole group. The parent still needs its store while it
// drains, so this process ends only when the parent says so or is gone.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => {});

try {
  const options = JSON.parse(process.argv[2] ?? "") as StackProcessOptions; // written by stack.ts alone
  const { directory, port } = options;
  const reportFault = (error: unknown) => console.error("keelson/embedded:", error);
  const dynamoDb =
    directory === undefined
      ? await openDynamoDb({ reportFault })
      : await openExclusively(directory, { pid: process.pid, parentPid: process.ppid }, () =>
          openDynamoDb({ path: join(directory, "dynamodb"), reportFault }),
        );
  // dynalite may throw in a callback of its own, where no request can be told from another.
  process.on("uncaughtException", (error) => {
    reportFault(error);
    dynamoDb.abandon(error);
  });

  const region = process.env["AWS_REGION"] ?? "us-east-1";
  const ssm = openSsm({ region, ...(directory === undefined ? {} : { directory }) });
  const fileOf = (name: string) => (directory === undefined ? {} : { path: join(directory, name) });
  const sqs = openSqs({ region, ...fileOf("queues.jsonl") });
  const eventBridge = openEventBridge({ sqs, region, reportFault, ...fileOf("event-bridge.jsonl") });
  const server = createFrontServer([dynamoDb, ssm, sqs, eventBridge], reportFault);
  const close = async () => {
    setTimeout(() => process.exit(1), 5000).unref(); // an orphan that cannot close must not hold the directory
    server.close();
    sqs.close();
    eventBridge.close();
    await dynamoDb.close();
    process.exit(0);
  };
  process.once("disconnect", close);
  if (!process.connected) await close();

  server.listen(port, "127.0.0.1");
  await once(server, "listening");
  tell({ port: (server.address() as AddressInfo).port }); // it listens on TCP, so its address is one
} catch (error) {
  tell({ failure: error instanceof Error ? error.message : String(error) });
}

function tell(message: StackProcessMessage): void {
  process.send?.(message);
}
