import { errorCodes } from "../../base/errors/error-codes.ts";
import { isTypedError } from "../../base/errors/errors.ts";
import { errorResponse } from "../../parts/http/error-response.ts";
import type { HttpRequest, HttpResponse } from "../../parts/http/message.ts";
import type { HandlerDeclaration } from "../handlers/handler.ts";
import { isExpected } from "../registry/expected-code.ts";
import type { RequestScope } from "../runtime/scope.ts";

/**
 * Rejects a request before its caller is authenticated. Its log line names the caller if the
 * credentials can be verified without a network call.
 */
export async function refuse(
  scope: RequestScope,
  request: SentRequest,
  error: unknown,
): Promise<never> {
  const recognizing = recognize(scope, request);
  if (recognizing !== undefined) await recognizing;
  throw error;
}

type SentRequest = Pick<HttpRequest, "headers" | "gatewayClaims">;

/** Identifies the caller of a rejected request for the log. */
export function recognize(scope: RequestScope, request: SentRequest): Promise<void> | undefined {
  const { headers, gatewayClaims } = request;
  const { authorization } = headers;
  const { authenticator } = scope.runtime;
  if (authorization === undefined && gatewayClaims === undefined && !authenticator.readsAll)
    return undefined;
  return authenticator.recognize({ authorization, gatewayClaims, request }).then((user) => {
    if (user !== undefined) scope.user = user;
  });
}

type FailedRequest = Pick<HttpRequest, "headers" | "method"> & {
  readonly signal?: AbortSignal | undefined;
};

/** Converts an error into its response, and logs it (specification 7). */
export function fail(scope: RequestScope, request: FailedRequest, thrown: unknown): HttpResponse {
  const isStopped = stoppedBy(request.signal, thrown);
  // After a timeout, the caller gets the typed reason of the signal and not the SDK's AbortError.
  const error = isStopped && isTypedError(request.signal?.reason) ? request.signal.reason : thrown;
  const { response, log } = errorResponse(error, {
    requestId: scope.requestId,
    environment: scope.runtime.environment,
    accept: request.headers["accept"],
    head: request.method === "HEAD",
  });
  // Not an error: a handler that stops because the client disconnected behaves correctly.
  if (isStopped && !isTypedError(error)) scope.log.warn("request.aborted");
  else scope.log[log.level]("request.failed", log.data);
  scope.spans?.thrown(error, response.status);
  warnOfUndeclared(scope, log.data);
  return response;
}

/** Whether an error is the signal's reason, or the AbortError into which the SDK and Node turn it. */
function stoppedBy(signal: AbortSignal | undefined, error: unknown): boolean {
  if (!signal?.aborted) return false;
  return error === signal.reason || (error instanceof Error && error.name === "AbortError");
}

/** Maximum number of remembered codes, because applications may build codes from data. */
const maxReported = 1_000;

/**
 * Warns once per code, outside production, of an error that the scope's handler does not declare,
 * because clients that read the contract do not expect it.
 */
export function warnOfUndeclared(
  scope: RequestScope,
  described: Readonly<Record<string, unknown>>,
): void {
  const { reportedErrors } = scope.runtime;
  const declaration = checkedHandler(scope);
  // The casts are safe: the log record of an error has both.
  const [error, status] = [described["error"] as string, described["status"] as number];
  if (declaration === undefined || status === statusOf(error, declaration, scope, status)) return;
  const reported = `${declaration.name} ${error}`;
  if (reportedErrors.has(reported) || reportedErrors.size >= maxReported) return;
  reportedErrors.add(reported);
  const fix = `declare it: errors: { ${error}: ${status} }`;
  scope.log.warn("error.undeclared", { error, status, fix });
}

/** Warns once, outside production, of a status below 400 that the scope's handler does not declare. */
export function warnOfUndeclaredStatus(
  scope: RequestScope,
  declared: readonly number[] | undefined,
  status: number,
): void {
  if ((declared ?? usual).includes(status) || status >= 400) return;
  const { reportedErrors } = scope.runtime;
  const reported = `${scope.handler} ${status}`;
  if (checkedHandler(scope) === undefined || reportedErrors.has(reported)) return;
  reportedErrors.add(reported);
  const fixed = declared === undefined ? status : [...declared, status];
  const fix = `declare it: status: ${JSON.stringify(fixed)}`;
  scope.log.warn("status.undeclared", { status, fix });
}

const usual: readonly number[] = [200, 204];

function checkedHandler({ handler = "", runtime: { environment, server } }: RequestScope) {
  return environment === "production" ? undefined : server.registry.handlers.get(handler);
}

/** Returns `undefined` for a code that callers do not expect. */
function statusOf(
  code: string,
  declaration: HandlerDeclaration,
  { runtime }: RequestScope,
  given: number,
): number | undefined {
  const { errors } = declaration;
  if (errors !== undefined && Object.hasOwn(errors, code)) return errors[code];
  // Any status: errors thrown with their own status, and requests that a host refuses.
  if (code === "pipeline_error" || code === "malformed_request") return given;
  return isExpected(code, declaration, runtime.server) ? errorCodes[code] : undefined;
}
