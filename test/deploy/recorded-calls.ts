import { once } from "node:events";
import { createServer, request } from "node:http";
import type { RecordedCall } from "../iam/recorded-requests.ts";

/** A proxy in front of an emulator of AWS that records the permissions that each call needs. */
export interface RecordedCalls {
  readonly endpoint: string;
  /** `dynamodb:PutItem table/<name>`, each once. */
  readonly permissions: Set<string>;
  /** All of them, in order. */
  readonly calls: readonly RecordedCall[];
  /** Calls whose permissions are unknown. */
  readonly unknown: Set<string>;
  /** From now on, calls do not get an answer. */
  hang(): void;
  close(): Promise<void>;
}

/** Starts a {@link RecordedCalls}. */
export async function recordCalls(endpoint: string): Promise<RecordedCalls> {
  const target = new URL(endpoint);
  const [permissions, unknown] = [new Set<string>(), new Set<string>()];
  const calls: RecordedCall[] = [];
  let hangs = false;
  const server = createServer((incoming, outgoing) => {
    const chunks: Buffer[] = [];
    incoming.on("data", (chunk: Buffer) => chunks.push(chunk));
    incoming.on("end", () => {
      const body = Buffer.concat(chunks);
      const call = String(incoming.headers["x-amz-target"] ?? `${incoming.method} ${incoming.url}`);
      const needed = permissionsOf(call, body.toString());
      calls.push({ target: call, input: parsed(body.toString()) });
      if (needed === undefined) unknown.add(call);
      for (const permission of needed ?? []) permissions.add(permission);
      if (hangs) return;
      const options = {
        host: target.hostname,
        port: target.port,
        method: incoming.method,
        path: incoming.url,
        headers: incoming.headers,
      };
      const forwarded = request(options, (answer) => {
        outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
        answer.pipe(outgoing);
      });
      forwarded.on("error", () => outgoing.destroy());
      forwarded.end(body);
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as { readonly port: number }; // safe: it listens on a port
  return {
    endpoint: `http://127.0.0.1:${port}`,
    permissions,
    calls,
    unknown,
    hang: () => {
      hangs = true;
    },
    close: async () => {
      server.closeAllConnections();
      server.close();
    },
  };
}

/** Permission of a call, as `<action> <resource>`; `undefined` if it is unknown. A transaction needs its items' permissions. */
function permissionsOf(call: string, body: string): readonly string[] | undefined {
  const [service = "", operation = ""] = call.split(".");
  const input = parsed(body);
  switch (service) {
    case "DynamoDB_20120810": {
      if (operation === "TransactWriteItems") {
        const items = list(input["TransactItems"]).flatMap((item) => Object.entries(item));
        return items.map(
          ([action, value]) => `dynamodb:${action}Item table/${String(object(value)["TableName"])}`,
        );
      }
      if (operation === "BatchGetItem") {
        return Object.keys(object(input["RequestItems"])).map(
          (table) => `dynamodb:BatchGetItem table/${table}`,
        );
      }
      return [`dynamodb:${operation} table/${String(input["TableName"])}`];
    }
    case "AmazonSQS": {
      const queue = String(input["QueueUrl"] ?? input["QueueName"]);
      return [`sqs:${operation} queue/${queue.slice(queue.lastIndexOf("/") + 1)}`];
    }
    case "AmazonSSM":
      return [`ssm:${operation} parameter${String(input["Path"] ?? input["Name"])}`];
    case "AWSEvents":
      return list(input["Entries"]).map(
        (entry) => `events:${operation} event-bus/${String(entry["EventBusName"])}`,
      );
    default:
      return undefined;
  }
}

function parsed(body: string): Record<string, unknown> {
  try {
    return object(JSON.parse(body));
  } catch {
    return {};
  }
}

function object(value: unknown): Record<string, unknown> {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {}; // safe: it was just looked at
}

function list(value: unknown): Record<string, unknown>[] {
  return Array.isArray(value) ? value.map(object) : [];
}
