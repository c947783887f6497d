import { isTypedError } from "../../base/errors/errors.ts";
import { errorResponse } from "../../parts/http/error-response.ts";
import type { HttpRequest, HttpResponse } from "../../parts/http/message.ts";
import type { RequestScope } from "../runtime/scope.ts";
import { warnOfUndeclared } from "./undeclared-error.ts";

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

/** Whether an error is the signal's reason, or the AbortError that the SDK and Node make of it. */
function stoppedBy(signal: AbortSignal | undefined, error: unknown): boolean {
  if (!signal?.aborted) return false;
  return error === signal.reason || (error instanceof Error && error.name === "AbortError");
}
