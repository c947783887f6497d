import { once } from "node:events";
import {
  Agent,
  createServer,
  type IncomingMessage,
  request,
  type Server,
  type ServerResponse,
} from "node:http";
import type { AddressInfo } from "node:net";
import type { Random } from "./random.ts";

/** Stands before the embedded stack: throttles calls, fails them, and loses answers of calls that were done. */
export interface FaultyGateway {
  readonly endpoint: string;
  /** Probability that a call fails, from 0 to 1. Starts at 0. */
  probability: number;
  /** Number of failed calls, by fault. */
  readonly faults: Readonly<Record<Fault, number>>;
  close(): void;
}

const kinds = ["throttled", "failed", "lost"] as const;
type Fault = (typeof kinds)[number];

export async function startFaultyGateway(endpoint: string, random: Random): Promise<FaultyGateway> {
  const agent = new Agent({ keepAlive: true });
  const { hostname: host, port } = new URL(endpoint);
  const faults = { throttled: 0, failed: 0, lost: 0 };
  const server = createServer((incoming, outgoing) => {
    const chunks: Buffer[] = [];
    incoming.on("data", (chunk: Buffer) => chunks.push(chunk));
    incoming.on("error", () => undefined);
    incoming.on("end", () => {
      if (outgoing.destroyed) return; // its process has ended
      const fault = random.chance(gateway.probability) ? random.of(kinds) : undefined;
      if (fault !== undefined) faults[fault] += 1;
      if (fault === "throttled") return refuse(outgoing, 400, "ThrottlingException");
      if (fault === "failed") return refuse(outgoing, 500, "InternalServerError");
      const forwarded = { agent, host, port, body: Buffer.concat(chunks) };
      forward(forwarded, incoming, outgoing, fault === "lost");
    });
  });
  const gateway = {
    endpoint: await listening(server),
    probability: 0,
    faults,
    close: () => {
      server.closeAllConnections();
      server.close();
      agent.destroy();
    },
  };
  return gateway;
}

async function listening(server: Server): Promise<string> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo; // safe: it listens on a port
  return `http://127.0.0.1:${port}`;
}

function refuse(outgoing: ServerResponse, status: number, name: string): void {
  outgoing.writeHead(status, { "content-type": "application/x-amz-json-1.0" });
  outgoing.end(JSON.stringify({ __type: `com.amazonaws#${name}`, message: "the soak's fault" }));
}

interface Forwarded {
  readonly agent: Agent;
  readonly host: string;
  readonly port: string;
  readonly body: Buffer;
}

function forward(
  { agent, host, port, body }: Forwarded,
  { method, url: path, headers }: IncomingMessage,
  outgoing: ServerResponse,
  losesAnswer: boolean,
): void {
  const sent = request({ agent, host, port, method, path, headers }, (answer) => {
    if (losesAnswer) {
      answer.resume().on("end", () => outgoing.destroy());
      return;
    }
    outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
    answer.pipe(outgoing);
  });
  sent.on("error", () => outgoing.destroy());
  // Otherwise the long poll of a dead process would take messages.
  outgoing.on("close", () => {
    if (!outgoing.writableFinished) sent.destroy();
  });
  sent.end(body);
}
