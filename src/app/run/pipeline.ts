import { describeError } from "../../base/errors/describe.ts";
import {
  AccessDeniedError,
  FrameworkError,
  isTypedError,
  NotFoundError,
} from "../../base/errors/errors.ts";
import {
  type AccessRule,
  allows,
  anonymous,
  describeRule,
  needsIdentity,
  type User,
} from "../../base/identity/access.ts";
import type { Credentials, Identification } from "../../base/identity/authenticator.ts";
import { lazy } from "../../base/process/lazy.ts";
import type { RequestView } from "../../base/request/request-view.ts";
import { corsHeaders, preflight } from "../../parts/http/cors.ts";
import {
  bodyTooLarge,
  type ReceivedBody,
  readInput,
  validateInput,
} from "../../parts/http/input.ts";
import { type HttpRequest, type HttpResponse, requestView } from "../../parts/http/message.ts";
import { isWebResponse, isWebStream, toResponse } from "../../parts/http/response.ts";
import type { RouteTable } from "../../parts/http/route-table.ts";
import { begun } from "../../parts/http/stream.ts";
import { readResponse } from "../../parts/http/web-response.ts";
import { checkOutput } from "../ctx/check-output.ts";
import { createContext } from "../ctx/context.ts";
import { runStream } from "../ctx/stream-result.ts";
import type { HandlerDeclaration } from "../handlers/handler.ts";
import type { Runtime } from "../runtime/runtime.ts";
import { type RequestScope, runInScope } from "../runtime/scope.ts";
import { assertActive } from "./active-tenant.ts";
import { fail, refuse, warnOfUndeclaredStatus } from "./failed-request.ts";
import { readParts } from "./multipart-form.ts";

const noBytes = new Uint8Array(0);
/** Not loaded at a query's cold start. */
const writes = lazy(() => import("./write.ts"));
const webhooks = lazy(() => import("./receive-webhook.ts"));

export interface Sender {
  /** Called in the request's scope, in which a streamed body is read as well. */
  send(response: HttpResponse, scope: RequestScope): Promise<void> | undefined;
}

export function serve(
  { runtime, routes }: { readonly runtime: Runtime; readonly routes: Runtime["routes"] },
  request: HttpRequest,
  sender: Sender,
): Promise<void> {
  return runInScope(runtime, request, async (scope) => {
    request.requestId = scope.requestId;
    let response: HttpResponse;
    try {
      response = await answer(scope, request, routes, (response) => response);
    } catch (error) {
      response = fail(scope, request, error);
    }
    scope.isHandlerOver = true;
    finish(scope, request, response.headers);
    const sending = sender.send(response, scope);
    if (sending !== undefined) await sending;
  });
}

/**
 * Answers a request inside its scope, in a fixed order: route, limits per address, declared length
 * of the body, authentication, access, other limits, body, input validation, handler.
 *
 * @param shape - converts a response into the host's type
 */
export async function answer<HostResponse>(
  scope: RequestScope,
  request: HttpRequest,
  routes: RouteTable<HandlerDeclaration>,
  shape: (response: HttpResponse) => HostResponse | Promise<HostResponse>,
): Promise<HostResponse> {
  const { runtime } = scope;
  scope.asked = request;
  const refusal = request.refusal ?? runtime.refusalOfHeaders(request.headers);
  if (refusal !== undefined) return refuse(scope, request, refusal);
  const { basePath = "", cors } = runtime.server.options;
  const match = routes.match(request.method, request.path, basePath);
  switch (match.kind) {
    case "malformed":
      return refuse(scope, request, new FrameworkError("malformed_request", match.message));
    case "not-found":
      return refuse(scope, request, new NotFoundError("route", shownPath(request.path)));
    case "method-not-allowed": {
      const { allow } = match;
      const message = `Method not allowed; allowed are ${allow}`;
      const error = new FrameworkError("method_not_allowed", message, { headers: { allow } });
      return refuse(scope, request, error);
    }
    case "options": {
      const { allow } = match;
      const headers = { allow, ...(cors && preflight(cors, request.headers, allow)) };
      return shape({ status: 204, headers, cookies: [], body: undefined });
    }
    case "found":
  }
  const { target: declaration, params, head } = match;
  scope.handler = declaration.name;
  scope.route = declaration.route;
  scope.spans?.routed();
  const limits = runtime.isLimited
    ? (runtime.limits.value ?? (await runtime.limits.open()))
    : undefined;
  const arriving = limits?.admit(scope, request, declaration, false);
  if (arriving !== undefined) await arriving;
  const limitBytes = declaration.bodyBytes ?? runtime.bodyLimitBytes;
  if (Number(request.headers["content-length"]) > limitBytes)
    return refuse(scope, request, bodyTooLarge(limitBytes));
  if (declaration.webhook !== undefined) {
    const { receiveWebhook } = webhooks.value ?? (await webhooks.open());
    const received = { declaration, webhook: declaration.webhook, request, params };
    return shape(await receiveWebhook(scope, received));
  }
  // This function awaits only promises, because each `await` costs a turn of the microtask queue.
  // The cast is safe: boot rejects a route without an access rule.
  const known = authorize(scope, request, declaration.access as AccessRule);
  const user = known instanceof Promise ? await known : known;
  scope.user = user;
  const { tenantsInFlight } = runtime;
  if (tenantsInFlight !== undefined) await tenantsInFlight.enter(scope, declaration);
  const admitted = limits?.admit(scope, request, declaration, true);
  if (admitted !== undefined) await admitted;
  const { body: kind } = declaration;
  const isForm = kind === "form" || kind === "multipart";
  const parsed = isForm ? await request.readForm?.(limitBytes) : undefined;
  const body = parsed === undefined ? request.readBody(limitBytes) : noBytes;
  const bytes = body instanceof Promise ? await body : body;
  const form = kind === "multipart" ? (parsed ?? (await readParts(request, bytes))) : parsed;
  const accepted = validateInput(
    declaration.input,
    readInput(request, declaration, params, { bytes, form }),
  );
  const input = accepted instanceof Promise ? await accepted : accepted;
  const view = viewOf(request, bytes);
  let adapters = runtime.adapters.all.value;
  if (adapters === undefined) adapters = await runtime.adapters.openFor(declaration);
  if (declaration.kind === "write") {
    const { runWrite } = writes.value ?? (await writes.open());
    const rawInput = rereadInput(request, declaration, routes, basePath, { bytes, form });
    const write = { declaration, request, input, rawInput, view, head };
    const response = await runWrite(scope, adapters, write);
    noteStatus(scope, declaration, response);
    return shape(response);
  }
  const { stream: items } = declaration;
  const streaming = items === undefined ? undefined : runStream(items, scope);
  const returned = declaration.run(createContext(scope, adapters, { request: view }), input);
  const result = await (declaration.output === undefined
    ? returned
    : checkOutput(declaration, returned, scope));
  const streamed = streaming === undefined ? result : streaming(result);
  const given = isWebResponse(streamed)
    ? await readResponse(streamed, "query", { signal: scope.signal })
    : streamed;
  const development = runtime.environment === "development";
  const { status } = declaration;
  const response = toResponse(given, { kind: "query", head, development, status });
  const { body: sent } = response;
  const stream = isWebStream(sent) ? sent : undefined;
  noteStatus(scope, declaration, response);
  return shape(
    stream === undefined ? response : { ...response, body: await begun(stream, request.signal) },
  );
}

function noteStatus(
  scope: RequestScope,
  { status: declared }: HandlerDeclaration,
  { status }: HttpResponse,
): void {
  if (status !== (declared?.[0] ?? 200)) warnOfUndeclaredStatus(scope, declared, status);
}

export function finish(
  scope: RequestScope,
  request: Pick<HttpRequest, "headers">,
  headers: Record<string, string>,
): Record<string, string> {
  const { cors } = scope.runtime.server.options;
  headers["x-request-id"] = scope.requestId;
  headers["x-content-type-options"] ??= "nosniff";
  if (cors !== undefined) addHeaders(headers, corsHeaders(cors, request.headers));
  scope.reads?.addTo(headers, scope.user);
  scope.rates?.addTo(headers);
  return headers;
}

/** Returns the caller. @throws FrameworkError `unauthenticated`, AccessDeniedError. */
export function authorize(
  scope: RequestScope,
  request: Pick<HttpRequest, "headers" | "gatewayClaims">,
  rule: AccessRule,
): User | Promise<User> {
  const { authorization } = request.headers;
  const { gatewayClaims } = request;
  const isSilent = authorization === undefined && gatewayClaims === undefined;
  if (isSilent && !scope.runtime.authenticator.readsAll && !needsIdentity(rule)) return anonymous;
  const { handler } = scope;
  return authenticated(scope, { authorization, gatewayClaims, request, handler }, rule);
}

async function authenticated(
  scope: RequestScope,
  credentials: Credentials,
  rule: AccessRule,
): Promise<User> {
  let identification: Identification;
  try {
    identification = await scope.runtime.authenticator.authenticate(credentials);
  } catch (error) {
    const isRefusal = isTypedError(error) && error.status < 500;
    if (isRefusal || needsIdentity(rule)) throw error;
    // An open route works without authentication, so it does not fail if authentication does.
    scope.log.warn(
      "identity.unavailable",
      describeError(error, { requestId: "", environment: "production" }).log.data,
    );
    return anonymous;
  }
  const isRequired = needsIdentity(rule);
  const { user } = identification;
  if (user === undefined) {
    if (!isRequired) return anonymous;
    const { problem = "Authentication required" } = identification;
    const headers = { "www-authenticate": "Bearer" };
    throw new FrameworkError("unauthenticated", problem, { headers });
  }
  scope.isIdentified = isRequired;
  const { isolatedTo, runtime } = scope;
  // A process isolated to one tenant rejects all others, even on open routes.
  const isForeign = isolatedTo !== undefined && user.tenantId !== isolatedTo;
  scope.user = user; // so that the log line of a rejection names the caller
  // Before the access rule: all routes give a suspended tenant the same answer.
  if (runtime.suspensions !== undefined && !isForeign) await assertActive(scope);
  const isAllowed = !isForeign && allows(rule, user);
  if (!isAllowed) throw new AccessDeniedError(isForeign ? "tenant.isolation" : describeRule(rule));
  return user;
}

function addHeaders(
  headers: Record<string, string>,
  added: Readonly<Record<string, string>>,
): void {
  for (const [name, value] of Object.entries(added)) {
    const present = headers[name];
    headers[name] = name === "vary" && present !== undefined ? `${present}, ${value}` : value;
  }
}

/** Returns one line of at most 200 characters. */
function shownPath(path: string): string {
  return path.replaceAll(/[^\x21-\x7e]/g, "?").slice(0, 200);
}

/** A closure in `answer` would move the variables of `answer` from the stack to the heap. */
function viewOf(request: HttpRequest, bytes: Uint8Array): () => RequestView {
  return () => requestView(request, bytes);
}

/**
 * Returns a function that reads the input again, because a schema may have changed the object that
 * it validated. Outside `answer` for the same reason as `viewOf` (`wrapped-no-log`).
 */
function rereadInput(
  request: HttpRequest,
  declaration: HandlerDeclaration,
  routes: RouteTable<HandlerDeclaration>,
  basePath: string,
  body: ReceivedBody,
): () => unknown {
  return () => {
    const match = routes.match(request.method, request.path, basePath);
    const { params } = match as Extract<typeof match, { kind: "found" }>; // safe: the route matched before
    return readInput(request, declaration, params, body);
  };
}
