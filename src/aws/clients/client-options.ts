import type { Agent as HttpsAgent } from "node:https";
import type { Duplex, Readable } from "node:stream";
import type { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { defined } from "../../base/types/defined.ts";

/** Members that differ from the environment's. */
export interface ClientOptions {
  readonly endpoint?: string | undefined;
  readonly region?: string | undefined;
  readonly credentials?:
    | { readonly accessKeyId: string; readonly secretAccessKey: string }
    | undefined;
  /** Receives a DynamoDB client before its first call. */
  readonly measure?: ((client: Pick<DynamoDBClient, "middlewareStack">) => void) | undefined;
}

export type MessagingSdk = typeof import("./messaging-sdk.ts");

/** The SDK determines absent options itself. */
export function clientOptions({ endpoint, region, credentials }: ClientOptions) {
  return { streamCollector, ...defined({ endpoint, region, credentials }) };
}

/** Whether an endpoint is on this machine, or has plain HTTP outside AWS. */
export function isEmulator(endpoint: string): boolean {
  const { protocol, hostname } = new URL(endpoint);
  return (
    ["localhost", "127.0.0.1", "[::1]"].includes(hostname) ||
    (protocol === "http:" && !/\.(amazonaws\.com(\.cn)?|aws)$/.test(hostname))
  );
}

/**
 * Handler of a client whose attempts fail if a connection takes longer than `ms` to be made, or is
 * silent for longer. The SDK's other timeouts also count the wait for one of its 50 connections, so
 * they would fail most of several thousand concurrent calls.
 */
export function attemptsWithin(ms: number) {
  const { Agent } = process.getBuiltinModule("node:https");
  class ConnectingAgent extends Agent {
    override createConnection(...given: Parameters<HttpsAgent["createConnection"]>) {
      const socket = super.createConnection(...given) as Duplex; // safe: this class returns one
      limitConnecting(socket, ms);
      return socket;
    }
  }
  const httpsAgent = new ConnectingAgent({ keepAlive: true, maxSockets: 50 });
  return { socketTimeout: ms, httpsAgent };
}

function limitConnecting(socket: Duplex, ms: number): void {
  const giveUp = () => {
    const late = new Error(`no connection within ${ms} ms`);
    socket.destroy(Object.assign(late, { code: "ETIMEDOUT" }));
  };
  const timer = setTimeout(giveUp, ms);
  for (const event of ["connect", "close"]) socket.once(event, () => clearTimeout(timer));
}

/**
 * The SDK's own collector costs 1.4 ms of a cold start, because it loads the classes of web streams
 * and blobs to check for them, and then pipes into a second stream.
 */
function streamCollector(stream: Readable): Promise<Uint8Array> {
  const { promise, resolve, reject } = Promise.withResolvers<Uint8Array>();
  const chunks: Buffer[] = [];
  stream.on("data", (chunk: Buffer) => chunks.push(chunk));
  stream.on("end", () => resolve(Buffer.concat(chunks)));
  stream.on("error", reject);
  return promise;
}

/** Whether an OpenTelemetry instrumentation has wrapped and marked the `send` of an AWS client. */
export function isInstrumented({ send }: { readonly send: object }): boolean {
  return "__wrapped" in send;
}
