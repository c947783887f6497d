import type { Clock } from "../../base/process/clock.ts";
import type { Variables } from "../../base/process/environment.ts";
import { isOnLambda } from "../../base/process/platform.ts";
import type { SpanContext } from "../../base/request/trace.ts";
import type { HttpRequest } from "../../parts/http/message.ts";
import type { EnqueueOptions } from "../handlers/effect-options.ts";
import type { ServerOptions } from "../registry/options.ts";
import { schemeOf, type TaskEnd } from "./run-observer.ts";
import type { Attributes } from "./tracer.ts";

export interface TracedRun {
  readonly requestId: string;
  readonly headers: Readonly<Record<string, string>> | undefined;
  readonly asked: AskedRequest | undefined;
  readonly handler: string | undefined;
  readonly route: string | undefined;
  readonly startMs: number;
  readonly runtime: {
    readonly clock: Clock;
    readonly variables: Variables;
    readonly server: { readonly options: Pick<ServerOptions, "basePath"> };
  };
}

export type AskedRequest = {
  readonly [Name in "method" | "path" | "ip" | "isEncrypted"]?: HttpRequest[Name] | undefined;
};

export interface RunSubject {
  readonly kind: TaskEnd["kind"];
  /** Event type, job name, schedule name or delivery channel. */
  readonly about: string;
  /** ID of the event, the job or the scheduled run. */
  readonly id: string;
}

export interface Origin {
  readonly parent?: SpanContext | undefined;
  readonly link?: SpanContext | undefined;
}

const longest = Object.freeze({ method: 32, path: 1_024, agent: 256, host: 255, trace: 512 });
const methods = "GET HEAD POST PUT DELETE CONNECT OPTIONS TRACE PATCH".split(" ");

function knownMethod(method = ""): string {
  return methods.includes(method) ? method : "_OTHER";
}

/** Follows OpenTelemetry's HTTP conventions. */
export function requestName(method: string | undefined, route: string | undefined): string {
  const known = knownMethod(method);
  const verb = known === "_OTHER" ? "HTTP" : known;
  return route === undefined ? verb : `${verb} ${route}`;
}

export function routeOf({ route, runtime }: TracedRun): string | undefined {
  if (route === undefined) return undefined;
  return `${runtime.server.options.basePath ?? ""}${route.slice(route.indexOf(" ") + 1)}`;
}

/** Omits the query, which may hold secrets. */
export function requestAttributes(scope: TracedRun): Attributes {
  const { asked, headers = {} } = scope;
  const method = asked?.method;
  const known = knownMethod(method);
  const scheme = schemeOf(scope);
  return {
    "http.request.method": known,
    "http.request.method_original": method === known ? undefined : method?.slice(0, longest.method),
    "http.route": routeOf(scope),
    "url.path": asked?.path?.slice(0, longest.path),
    "url.scheme": scheme,
    ...serverAttributes(headers["host"], scheme),
    "client.address": asked?.ip,
    "user_agent.original": headers["user-agent"]?.slice(0, longest.agent),
    ...triggerAttributes(scope, "http"),
  };
}

function serverAttributes(host: string | undefined, scheme: "http" | "https"): Attributes {
  const [, name, port] =
    (host !== undefined && host.length <= longest.host && hostForm.exec(host)) || [];
  if (name === undefined) return {};
  return {
    "server.address": name,
    "server.port": port === undefined ? defaultPorts[scheme] : Number(port),
  };
}

const hostForm = /^\[?([\w.-]+|[\da-f:.]+(?=\]))\]?(?::(\d{1,5}))?$/i;
const defaultPorts = Object.freeze({ http: 80, https: 443 });

/**
 * Returns the `x-amzn-trace-id` header of load balancers and gateways if it names a trace without a
 * span. The tracer then starts a new trace, so only this attribute leads to their logs.
 */
export function rootAttributes(
  { headers = {} }: TracedRun,
  ...origins: readonly (SpanContext | undefined)[]
): Attributes {
  const isRoot = origins.some((origin) => origin !== undefined && origin.spanId === undefined);
  const header = headers["x-amzn-trace-id"];
  return isRoot && header !== undefined
    ? { "http.request.header.x-amzn-trace-id": [header.slice(0, longest.trace)] }
    : {};
}

export type Verb = "publish" | "enqueue" | "deliver";

/** Whether a job is stored first, and sent with the commit or when it is due. */
export function isStored({ delaySeconds, at, afterCommit }: EnqueueOptions = {}): boolean {
  return afterCommit !== false || delaySeconds !== undefined || at !== undefined;
}

export function producerAttributes(
  { requestId }: TracedRun,
  verb: Verb,
  about: string,
  isStored: boolean,
): Attributes {
  return {
    "messaging.system.name": verb === "publish" ? "aws.eventbridge" : "aws.sqs",
    "messaging.operation.name": verb,
    "messaging.operation.type": isStored ? "create" : "send",
    "messaging.destination.name": about,
    "messaging.message.conversation_id": requestId,
  };
}

export function messageAttributes(scope: TracedRun, about: string, id: string): Attributes {
  return {
    "messaging.system.name": "aws.sqs",
    "messaging.operation.name": "process",
    "messaging.operation.type": "process",
    "messaging.destination.name": about,
    "messaging.destination.subscription.name": scope.handler,
    "messaging.message.id": id,
    "messaging.message.conversation_id": scope.requestId,
    ...triggerAttributes(scope, "pubsub"),
  };
}

/** Returns nothing outside of Lambda. */
export function triggerAttributes(
  { runtime }: TracedRun,
  trigger: "http" | "pubsub" | "timer" | "other",
): Attributes {
  return isOnLambda(runtime.variables) ? { "faas.trigger": trigger } : {};
}
