import { FrameworkError, isTypedError, NotFoundError } from "../../base/errors/errors.ts";
import { type AccessRule, needsIdentity } from "../../base/identity/access.ts";
import { anonymous, type User } from "../../base/identity/user.ts";
import { lazy } from "../../base/process/lazy.ts";
import { corsHeaders, preflight } from "../../parts/http/cors.ts";
import { errorResponse } from "../../parts/http/error-response.ts";
import { bodyTooLarge, validateInput } from "../../parts/http/input.ts";
import type { HttpRequest, HttpResponse } from "../../parts/http/message.ts";
import { requestView } from "../../parts/http/request-view.ts";
import { isWebResponse, isWebStream, toResponse } from "../../parts/http/response.ts";
import type { RouteTable } from "../../parts/http/route-table.ts";
import { begun } from "../../parts/http/stream.ts";
import { readResponse } from "../../parts/http/web-response.ts";
import { checkOutput } from "../ctx/check-output.ts";
import { createContext } from "../ctx/context.ts";
import type { HandlerDeclaration } from "../handlers/handler.ts";
import type { Runtime } from "../runtime/runtime.ts";
import type { RequestScope } from "../runtime/scope.ts";
import { runInScope } from "../runtime/scoped-run.ts";
import { authenticated } from "./authenticated-caller.ts";
import { inputOf, refuseEncoded, rereadInput } from "./received-body.ts";
import { warnOfUndeclared, warnOfUndeclaredStatus } from "./undeclared-error.ts";

const noBytes = new Uint8Array(0);
/** Loaded with the first write, so that a cold start that answers a query does not wait for it. */
const writes = lazy(() => import("./write.ts"));

export interface Sender {
  /** Sends a response in the request's scope. A streamed body is read in that scope as well. */
  send(response: HttpResponse, scope: RequestScope): Promise<void> | undefined;
}

/** Answers a request, from its ID to its response. Sends an error response if the request fails. */
export function serve(runtime: Runtime, request: HttpRequest, sender: Sender): Promise<void> {
  return runInScope(runtime, request, async (scope) => {
    request.requestId = scope.requestId;
    let response: HttpResponse;
    try {
      response = await answer(scope, request, runtime.routes, asItIs);
    } catch (error) {
      response = fail(scope, request, error);
    }
    finish(scope, request, response.headers);
    const sending = sender.send(response, scope);
    if (sending !== undefined) await sending;
  });
}

function asItIs(response: HttpResponse): HttpResponse {
  return response;
}

/**
 * Answers a request inside its scope. The order is fixed: route, declared length of the body,
 * authentication, access, body, input validation, handler. The body is read only after the caller
 * is authorized.
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
      const message = `Method not allowed; allowed are ${match.allow}`;
      return refuse(
        scope,
        request,
        new FrameworkError("method_not_allowed", message, { headers: { allow: match.allow } }),
      );
    }
    case "options": {
      const granted =
        cors === undefined ? undefined : preflight(cors, request.headers, match.allow);
      return shape({
        status: 204,
        headers: { allow: match.allow, ...granted },
        cookies: [],
        body: undefined,
      });
    }
    case "found":
  }
  const { target: declaration, params, head } = match;
  scope.handler = declaration.name;
  scope.route = declaration.route;
  scope.spans?.routed();
  const limitBytes = runtime.bodyLimitBytes;
  if (Number(request.headers["content-length"]) > limitBytes)
    return refuse(scope, request, bodyTooLarge(limitBytes));
  // Here and below, a value that is already available is never awaited: each `await` costs a turn
  // of the microtask queue.
  // Safe: boot rejects a route without an access rule.
  const known = authorize(scope, request, declaration.access as AccessRule);
  const user = known instanceof Promise ? await known : known;
  scope.user = user;
  const form = declaration.body === "form" ? request.readForm?.(limitBytes) : undefined;
  const body = form === undefined ? request.readBody(limitBytes) : noBytes;
  const bytes = body instanceof Promise ? await body : body;
  refuseEncoded(request, bytes);
  const accepted = validateInput(
    declaration.input,
    inputOf(request, declaration, params, { bytes, form }),
  );
  const input = accepted instanceof Promise ? await accepted : accepted;
  const view = () => requestView(request, bytes);
  let adapters = runtime.opened;
  if (adapters === undefined) adapters = await runtime.adaptersFor(declaration);
  if (declaration.kind === "write") {
    const { runWrite } = writes.value ?? (await writes.open());
    const rawInput = rereadInput(request, declaration, routes, basePath, { bytes, form });
    const response = await runWrite(scope, adapters, {
      declaration,
      request,
      input,
      rawInput,
      view,
      head,
    });
    noteStatus(scope, declaration, response);
    return shape(response);
  }
  const returned = declaration.run(createContext(scope, adapters, { request: view }), input);
  const result = await (declaration.output === undefined
    ? returned
    : checkOutput(declaration, returned, scope));
  const given = isWebResponse(result) ? await readResponse(result, "query") : result;
  const development = runtime.environment === "development";
  const response = toResponse(given, {
    kind: "query",
    head,
    development,
    status: declaration.status,
  });
  noteStatus(scope, declaration, response);
  return shape(
    isWebStream(response.body)
      ? { ...response, body: await begun(response.body, request.signal) }
      : response,
  );
}

function noteStatus(
  scope: RequestScope,
  { status: declared }: HandlerDeclaration,
  { status }: HttpResponse,
): void {
  if (status !== (declared?.[0] ?? 200)) warnOfUndeclaredStatus(scope, declared, status);
}

/**
 * Rejects a request before its caller is authenticated. Its log line still names the caller if that
 * does not need a call.
 */
async function refuse(scope: RequestScope, request: SentRequest, error: unknown): Promise<never> {
  const recognizing = recognize(scope, request);
  if (recognizing !== undefined) await recognizing;
  throw error;
}

type SentRequest = Pick<HttpRequest, "headers" | "gatewayClaims">;

/** Identifies the caller of a rejected request for the log, if the request carries credentials. */
export function recognize(
  scope: RequestScope,
  { headers, gatewayClaims }: SentRequest,
): Promise<void> | undefined {
  const { authorization } = headers;
  if (authorization === undefined && gatewayClaims === undefined) return undefined;
  return scope.runtime.authenticator.recognize({ authorization, gatewayClaims }).then((user) => {
    if (user !== undefined) scope.user = user;
  });
}

type FailedRequest = Pick<HttpRequest, "headers" | "method"> & {
  readonly signal?: AbortSignal | undefined;
};

/** Converts an error into the uniform error response, and logs it (specification 7). */
export function fail(scope: RequestScope, request: FailedRequest, thrown: unknown): HttpResponse {
  const isStopped = stoppedBy(request.signal, thrown);
  // The service timed out. The caller gets that error, whatever error the SDK creates from the
  // signal.
  const error = isStopped && isTypedError(request.signal?.reason) ? request.signal.reason : thrown;
  const { response, log } = errorResponse(error, {
    requestId: scope.requestId,
    environment: scope.runtime.environment,
    accept: request.headers["accept"],
    head: request.method === "HEAD",
  });
  // A handler that stops because the client disconnected behaves correctly, so this is not an
  // error.
  if (isStopped && !isTypedError(error)) scope.log.warn("request.aborted");
  else scope.log[log.level]("request.failed", log.data);
  scope.spans?.thrown(error, response.status);
  warnOfUndeclared(scope, log.data);
  return response;
}

/**
 * Checks whether an error only reports that the signal stopped the work: the signal's reason, or
 * the AbortError that the SDK and Node create from it.
 */
function stoppedBy(signal: AbortSignal | undefined, error: unknown): boolean {
  if (!signal?.aborted) return false;
  return error === signal.reason || (error instanceof Error && error.name === "AbortError");
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
  return headers;
}

/**
 * Returns the caller if the rule admits them. @throws FrameworkError `unauthenticated`,
 * AccessDeniedError.
 */
export function authorize(
  scope: RequestScope,
  request: SentRequest,
  rule: AccessRule,
): User | Promise<User> {
  const { authorization } = request.headers;
  const isOpen = !needsIdentity(rule);
  if (isOpen && authorization === undefined && request.gatewayClaims === undefined)
    return anonymous;
  return authenticated(
    scope,
    { authorization, gatewayClaims: request.gatewayClaims },
    rule,
    isOpen,
  );
}

/** Adds headers. `vary` is joined with its present value. */
function addHeaders(
  headers: Record<string, string>,
  added: Readonly<Record<string, string>>,
): void {
  for (const [name, value] of Object.entries(added)) {
    const present = headers[name];
    headers[name] = name === "vary" && present !== undefined ? `${present}, ${value}` : value;
  }
}

/** Returns the path for a message: at most 200 characters, and none that could end a line. */
function shownPath(path: string): string {
  return path.replaceAll(/[^\x21-\x7e]/g, "?").slice(0, 200);
}
