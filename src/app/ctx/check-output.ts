import type { StandardSchemaV1 } from "@standard-schema/spec";
import { FrameworkError } from "../../base/errors/errors.ts";
import type { Logger } from "../../base/log/logger.ts";
import { mapped } from "../../parts/http/event-stream.ts";
import { isDescribed, isReply, isWebResponse, jsonText } from "../../parts/http/response.ts";
import type { StreamForm } from "../../parts/http/streamed-output.ts";
import { inUtf8, ReadResponse, readResponse } from "../../parts/http/web-response.ts";
import type { HandlerDeclaration } from "../handlers/handler.ts";
import type { RequestScope } from "../runtime/scope.ts";
import { isIterable } from "./stream-result.ts";

/** As {@link checkOutput}, and reads a `Response`. */
export async function receiveResult(
  declaration: HandlerDeclaration,
  returned: unknown,
  scope: RequestScope,
  options: OutputOptions = {},
): Promise<unknown> {
  const { read = reader(declaration, scope) } = options;
  const result = await checkOutput(declaration, returned, scope, { ...options, read });
  return isWebResponse(result) ? read(result) : result;
}

export interface OutputOptions {
  /** Default: the scope's log. */
  readonly log?: Logger;
  /** Default: {@link reader}. */
  readonly read?: ReturnType<typeof reader>;
}

/**
 * Creates a function that reads a `Response`, completely if it is JSON. It remembers the result,
 * because a handler whose commit failed may return the same `Response` again.
 */
export function reader({ kind }: HandlerDeclaration, { signal }: RequestScope) {
  let known: { readonly of: Response; readonly read: ReturnType<typeof readResponse> } | undefined;
  return (response: Response): ReturnType<typeof readResponse> => {
    if (known?.of !== response)
      known = { of: response, read: readResponse(response, kind, { needsJson: true, signal }) };
    return known.read;
  };
}

/**
 * Validates a result with the `output` schema of its handler and returns the schema's output. A
 * result without a described body (a stream, bytes, an error, a redirect) stays unchanged. If the
 * server's `output` option disables the check, every result stays unchanged.
 *
 * @throws FrameworkError `response_mismatch` if the result does not match. Its cause names the
 * handler and the paths.
 */
export function checkOutput(
  declaration: HandlerDeclaration,
  returned: unknown,
  scope: RequestScope,
  options: OutputOptions = {},
): Promise<unknown> | unknown {
  const { output } = declaration;
  const { environment, server } = scope.runtime;
  if (output === undefined) return returned;
  if (environment === "production" && server.options.output?.check === "development")
    return returned;
  return checked(declaration, output, returned, scope, options);
}

async function checked(
  declaration: HandlerDeclaration,
  schema: StandardSchemaV1,
  returned: unknown,
  scope: RequestScope,
  { log, read }: OutputOptions,
): Promise<unknown> {
  const given = await returned;
  const result = isWebResponse(given) ? await (read ?? reader(declaration, scope))(given) : given;
  const { stream } = declaration;
  if (stream !== undefined) return checkedItems(declaration, stream, result, scope, log);
  if (!isDescribed(result)) return result;
  let body: unknown = result;
  if (isReply(result)) body = result.body;
  else if (result instanceof ReadResponse) {
    try {
      body = result.value;
    } catch (error) {
      // Passes on only the message, because the error's cause quotes the body.
      const why = new TypeError((error as TypeError).message);
      return misfit(declaration, result, ["result"], scope, log, why);
    }
  }
  const validation = schema["~standard"].validate(body);
  const outcome = validation instanceof Promise ? await validation : validation;
  if (outcome.issues !== undefined)
    return misfit(declaration, result, pathsOf(outcome.issues), scope, log);
  if (isReply(result)) return Object.freeze({ ...result, body: outcome.value });
  return result instanceof ReadResponse ? withValue(result, outcome.value) : outcome.value;
}

/** Validates each item of a stream when it is read. */
function checkedItems(
  declaration: HandlerDeclaration,
  { kind, item }: StreamForm,
  result: unknown,
  scope: RequestScope,
  log: Logger | undefined,
): unknown {
  const body = isReply(result) ? result.body : result;
  if (!isIterable(body))
    return body === undefined || isWebResponse(body) || body instanceof ReadResponse
      ? result
      : misfit(declaration, result, ["result"], scope, log);
  const check = async (given: unknown): Promise<unknown> => {
    const data = kind === "sse" ? Object(given).data : given;
    const validation = item["~standard"].validate(data);
    const outcome = validation instanceof Promise ? await validation : validation;
    if (outcome.issues !== undefined)
      return misfit(declaration, given, pathsOf(outcome.issues), scope, log);
    return kind === "sse" ? { ...Object(given), data: outcome.value } : outcome.value;
  };
  const items = mapped(body, check);
  return isReply(result) ? Object.freeze({ ...result, body: items }) : items;
}

const digests: readonly string[] = ["content-digest", "content-md5", "digest", "repr-digest"];

/** Copies a response with another value, as JSON, without digest headers of the old bytes. */
function withValue({ status, headers, cookies }: ReadResponse, value: unknown): ReadResponse {
  const kept = Object.fromEntries(
    Object.entries(headers).filter(([name]) => !digests.includes(name)),
  );
  kept["content-type"] = inUtf8(String(headers["content-type"]));
  const body = value === undefined ? undefined : jsonText(value);
  return new ReadResponse({ status, headers: kept, cookies, body });
}

/** Logs a mismatch if the server sends it. @throws FrameworkError `response_mismatch` otherwise. */
function misfit(
  { name }: HandlerDeclaration,
  result: unknown,
  paths: readonly string[],
  scope: RequestScope,
  log: Logger | undefined,
  why?: TypeError,
): unknown {
  if (scope.runtime.server.options.output?.mismatch === "send") {
    scope.misfits ??= new Set();
    if (!scope.misfits.has(name)) (log ?? scope.log).warn("response.mismatch", { paths });
    scope.misfits.add(name);
    return result;
  }
  const what = `${name}: the result does not fit its output schema at ${paths.join(", ")}; fix the handler or the schema`;
  throw new FrameworkError(
    "response_mismatch",
    "The server's response does not match its contract",
    {
      cause: new TypeError(what, { cause: why }),
    },
  );
}

const maxPaths = 10;
const maxParts = 20;

/** Returns no messages, which may quote the result. */
function pathsOf(issues: readonly StandardSchemaV1.Issue[]): string[] {
  const paths = new Set<string>();
  for (const { path = [] } of issues) {
    const dotted = path
      .slice(0, maxParts)
      .map((part) => shown(typeof part === "object" ? part.key : part))
      .join(".");
    paths.add(dotted === "" ? "result" : dotted);
    if (paths.size === maxPaths) break;
  }
  return [...paths];
}

/** Returns `*` for a path segment that may be data, such as an address. */
function shown(part: PropertyKey): string {
  const text = String(part);
  return /^(?:\d{1,9}|[A-Za-z_$][\w$-]{0,63})$/.test(text) ? text : "*";
}
