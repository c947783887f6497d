import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { openEventBridge } from "../bus/event-bridge.ts";
import { openDynamoDb } from "../dynamodb/dynamodb.ts";
import { openSsm } from "../parameters/ssm.ts";
import { openSqs } from "../queues/sqs.ts";
import { ServiceError, unknownOperation } from "../service/service.ts";
import { clockOffsetMs, createFrontServer } from "./front-server.ts";

/** Request of the JSON protocol, as an SDK client sends it. */
export interface StackRequest {
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: unknown;
}

export interface StackAnswer {
  readonly statusCode: number;
  readonly headers: Record<string, string>;
  readonly body: Uint8Array;
}

export type StackHere = Awaited<ReturnType<typeof openStackHere>>;

const region = "us-east-1";
const decoder = new TextDecoder();

/**
 * Opens an embedded stack in memory in this process, for tests that make thousands of calls. It
 * also listens on 127.0.0.1, but `answer` saves the way over the socket.
 *
 * @param now - returns the time of the queues, in milliseconds since the epoch.
 */
export async function openStackHere(now: () => number) {
  const reportFault = (error: unknown) => console.error("keelson/embedded:", error);
  // Keeps expired rows and tokens: `clear` deletes them, too.
  const dynamoDb = await openDynamoDb({ reportFault, clock: { now: () => 0 } });
  const ssm = openSsm({ region });
  const sqs = openSqs({ region });
  const eventBridge = openEventBridge({ sqs, region, reportFault });
  const services = [dynamoDb, sqs, eventBridge, ssm];
  const server = createFrontServer(services, reportFault);
  server.listen(0, "127.0.0.1").unref();
  await once(server, "listening");
  const { port } = server.address() as AddressInfo; // safe cast: the server listens on a port
  const endpoint = `http://127.0.0.1:${port}`;
  const contextOf = (headers: StackRequest["headers"] = {}) => ({
    nowMs: now() + clockOffsetMs(headers),
    ...{ endpoint, signal: new AbortController().signal },
  });
  const purge = async () => {
    const listed = await sqs.call("ListQueues", {}, contextOf());
    // Safe cast: the queues' own answer.
    const { QueueUrls = [] } = listed as { readonly QueueUrls?: readonly string[] };
    for (const QueueUrl of QueueUrls) await sqs.call("PurgeQueue", { QueueUrl }, contextOf());
  };
  return {
    endpoint,
    env: Object.freeze({
      AWS_ENDPOINT_URL: endpoint,
      AWS_REGION: region,
      AWS_ACCESS_KEY_ID: "embedded",
      AWS_SECRET_ACCESS_KEY: "embedded",
    }),
    async answer({ headers, body }: StackRequest): Promise<StackAnswer> {
      const target = String(headers["x-amz-target"]);
      const service = services.find(({ targetPrefix }) => target.startsWith(targetPrefix));
      // Safe cast: the SDK sends text or bytes.
      const text = typeof body === "string" ? body : decoder.decode(body as Uint8Array);
      try {
        if (service === undefined) throw unknownOperation(target);
        const operation = target.slice(service.targetPrefix.length);
        return sent(200, await service.call(operation, JSON.parse(text), contextOf(headers)));
      } catch (error) {
        if (!(error instanceof ServiceError)) throw error;
        const { type: __type, message, status, members } = error;
        return sent(status, { __type, message, ...members });
      }
    },
    /** Deletes all items and messages. */
    async clear(): Promise<void> {
      await dynamoDb.clear();
      await purge();
    },
    async close(): Promise<void> {
      server.close();
      server.closeAllConnections();
      sqs.close();
      eventBridge.close();
      await dynamoDb.close();
    },
  };
}

function sent(statusCode: number, body: object): StackAnswer {
  const headers = { "content-type": "application/x-amz-json-1.0" };
  return { statusCode, headers, body: Buffer.from(JSON.stringify(body)) };
}
