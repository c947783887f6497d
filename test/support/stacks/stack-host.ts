import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { openEventBridge } from "../../../src/embedded/bus/event-bridge.ts";
import { openDynamoDb } from "../../../src/embedded/dynamodb/dynamodb.ts";
import { openSsm } from "../../../src/embedded/parameters/ssm.ts";
import { openSqs } from "../../../src/embedded/queues/sqs.ts";
import { createFrontServer } from "../../../src/embedded/stack/front-server.ts";
import type { HostRequest } from "./shared-stack.ts";

// A process that serves many embedded stacks in memory, one per test app. Each has what
// `src/embedded/stack/stack-process.ts` opens, and nothing in common with the others.

const region = "us-east-1";
const closers = new Map<number, () => Promise<void>>();
const abandoned = new Map<number, (error: unknown) => void>();

const reportFault = (error: unknown) => console.error("keelson/embedded:", error);
process.on("uncaughtException", (error) => {
  reportFault(error);
  for (const abandon of abandoned.values()) abandon(error);
});
process.on("disconnect", () => process.exit(0));
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => {});

process.on("message", async ({ id, action }: HostRequest) => {
  const port = action === "open" ? await open(id) : await close(id);
  process.send?.({ id, port });
});

async function open(id: number): Promise<number> {
  const dynamoDb = await openDynamoDb({ reportFault });
  const ssm = openSsm({ region });
  const sqs = openSqs({ region });
  const eventBridge = openEventBridge({ sqs, region, reportFault });
  const server = createFrontServer([dynamoDb, ssm, sqs, eventBridge], reportFault);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  abandoned.set(id, (error) => dynamoDb.abandon(error));
  closers.set(id, async () => {
    server.close();
    server.closeAllConnections();
    sqs.close();
    eventBridge.close();
    await dynamoDb.close();
  });
  return (server.address() as AddressInfo).port; // a TCP server's address is an AddressInfo
}

async function close(id: number): Promise<number> {
  await closers.get(id)?.();
  closers.delete(id);
  abandoned.delete(id);
  return 0;
}
