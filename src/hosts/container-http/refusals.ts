import { FrameworkError, PipelineError } from "../../base/errors/errors.ts";

const malformed = (message: string, status: number, cause?: unknown) =>
  new PipelineError(message, status, {
    code: "malformed_request",
    ...(cause === undefined ? {} : { cause }),
  });

/** Errors of requests that are refused before the pipeline sees them. */
export const refusals = Object.freeze({
  noHttp: (cause: unknown) => malformed("The request is not valid HTTP", 400, cause),
  noHost: () => new FrameworkError("malformed_request", "The request has no Host header"),
  twoHosts: () =>
    new FrameworkError("malformed_request", "The Host header names another host than :authority"),
  expectation: () => malformed("The Expect header asks for what is not there", 417),
  coding: () =>
    malformed(
      "The Transfer-Encoding is not supported; send the body chunked alone, or with its length",
      501,
    ),
  headersTooLarge: (cause?: unknown) =>
    malformed("The headers of the request are too large", 431, cause),
  late: (cause?: unknown) => malformed("The request took too long to arrive", 408, cause),
  tunnel: () => new FrameworkError("method_not_allowed", "Method not allowed"),
  shuttingDown: () => new PipelineError("The service is shutting down", 503),
});
