// A version's server as Lambda functions, on the stack that the environment names.
import type { SQSEvent } from "aws-lambda";
import type { HttpApiEvent, HttpApiResult } from "keelson/lambda";
import { keptServer, type Variant } from "./features.ts";
import type { QueueName, Store } from "./store.ts";
import type { Version } from "./version.ts";
import type { World } from "./world.ts";

/** The caller. */
export interface Caller {
  readonly sub: string;
  readonly tenantId: string;
  readonly roles: readonly string[];
}

/** A request. A body that is not a string is sent as JSON. */
export interface HostRequest {
  readonly method?: string;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  /** Absent for an anonymous caller. */
  readonly as?: Caller | undefined;
}

/** An answer as JSON keeps it. */
export interface HostAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** Bytes are Base64. */
  readonly body: string;
}

/** A process of a version, in so far as keelson is one. */
export interface Host {
  readonly version: string;
  send(path: string, request?: HostRequest): Promise<HostAnswer>;
  /**
   * Consumes what queues show; gives how many messages it has acknowledged. Default: the queues that
   * every version reads.
   */
  drain(...queues: readonly QueueName[]): Promise<number>;
  /** Dispatches the rest of the outbox. */
  sweep(): Promise<unknown>;
}

/** Starts a host. It does not share memory with others. */
export function startHost(version: Version, world: World, store: Store, variant: Variant): Host {
  const server = keptServer(version, world, variant);
  const { lambdaHttp, lambdaQueue, lambdaSweep } = version.lambda;
  const [http, queue, sweep] = [lambdaHttp(server), lambdaQueue(server), lambdaSweep(server)];
  const context = {} as never; // nothing of it is used: no time limit, no request ID of AWS's
  return {
    version: version.name,
    send: async (path, request = {}) => {
      const result = (await http(eventOf(path, request), context)) as HttpApiResult; // the shape of the event decides
      return {
        status: Number(result.statusCode),
        headers: result.headers as HostAnswer["headers"],
        body: result.body ?? "",
      };
    },
    drain: async (...given) => {
      const names = given.length > 0 ? given : (["events", "jobs"] as const);
      let acknowledged = 0;
      for (;;) {
        const found = [];
        for (const name of names) found.push(await store.receive(name));
        const received = found.filter(({ length }) => length > 0);
        if (received.length === 0) return acknowledged;
        for (const messages of received) {
          const event = { Records: messages.map(({ record }) => record) } as SQSEvent;
          const { batchItemFailures } = await queue(event, {});
          const failed = batchItemFailures.map(({ itemIdentifier }) => itemIdentifier);
          const done = messages.filter(({ record }) => !failed.includes(record.messageId));
          for (const message of done) await message.remove();
          acknowledged += done.length;
        }
      }
    },
    sweep: () => sweep(),
  };
}

function eventOf(path: string, { method, body, headers = {}, as }: HostRequest): HttpApiEvent {
  const [rawPath = "", rawQueryString = ""] = path.split("?");
  const isJson = body !== undefined && typeof body !== "string";
  const text = isJson ? JSON.stringify(body) : body;
  return {
    version: "2.0",
    rawPath,
    rawQueryString,
    headers: { ...(isJson ? { "content-type": "application/json" } : {}), ...headers },
    ...(text === undefined ? {} : { body: text }),
    isBase64Encoded: false,
    requestContext: {
      stage: "$default",
      http: {
        method: method ?? (body === undefined ? "GET" : "POST"),
        path: rawPath,
        sourceIp: "203.0.113.9",
      },
      ...(as === undefined ? {} : { authorizer: { jwt: { claims: as } } }),
    },
  } as unknown as HttpApiEvent; // the parts of an event that are read
}
