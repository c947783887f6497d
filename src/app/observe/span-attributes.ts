import type { SpanContext } from "../../base/request/trace.ts";
import { schemeOf } from "./request-scheme.ts";
import type { TracedRun } from "./spans.ts";
import type { Attributes } from "./tracer.ts";

/** How long texts of callers may become. */
const longest = Object.freeze({ method: 32, path: 1_024, agent: 256, host: 255, trace: 512 });
const methods: readonly unknown[] = [
  "GET",
  "HEAD",
  "POST",
  "PUT",
  "DELETE",
  "CONNECT",
  "OPTIONS",
  "TRACE",
  "PATCH",
];

function knownMethod(method: string | undefined): string {
  return method !== undefined && methods.includes(method) ? method : "_OTHER";
}

/** As the conventions of HTTP have it: where the method says nothing, `HTTP` does. */
export function requestName(method: string | undefined, route: string | undefined): string {
  const known = knownMethod(method);
  const verb = known === "_OTHER" ? "HTTP" : known;
  return route === undefined ? verb : `${verb} ${route}`;
}

/** The pattern of a request's path, as clients see it. */
export function routeOf({ route, runtime }: TracedRun): string | undefined {
  if (route === undefined) return undefined;
  return `${runtime.server.options.basePath ?? ""}${route.slice(route.indexOf(" ") + 1)}`;
}

/** What a request's span says when it begins, by the conventions of HTTP. The query is left out: it may hold secrets. */
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
    "client.address": asked?.ip?.replace(mappedAddress, ""),
    "user_agent.original": headers["user-agent"]?.slice(0, longest.agent),
    ...triggerAttributes(scope, "http"),
  };
}

/** What comes before an address of IPv4 on a socket that listens to both. */
const mappedAddress = /^::ffff:(?=\d+\.)/i;

/** The host that was asked, as far as it is one. */
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
 * What a trace began with whose span is not known, as load balancers and gateways send it: a tracer begins another, and this finds
 * the request in their logs.
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

/** How a message is made. */
export type Verb = "publish" | "enqueue" | "deliver";

/** What the span says that makes a message. One that is stored, and sent later, is only created. */
export function producerAttributes(
  { requestId }: TracedRun,
  verb: Verb,
  about: string,
  isLater: boolean,
): Attributes {
  return {
    "messaging.system.name": verb === "publish" ? "aws.eventbridge" : "aws.sqs",
    "messaging.operation.name": verb,
    "messaging.operation.type": isLater ? "create" : "send",
    "messaging.destination.name": about,
    "messaging.message.conversation_id": requestId,
  };
}

/** What the span of a message's work says, by the conventions of messaging. */
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

/** What has called a function of Lambda. */
export function triggerAttributes(
  { runtime }: TracedRun,
  trigger: "http" | "pubsub" | "timer" | "other",
): Attributes {
  return runtime.variables["AWS_LAMBDA_FUNCTION_NAME"] === undefined
    ? {}
    : { "faas.trigger": trigger };
}
