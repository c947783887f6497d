import type { StandardSchemaV1 } from "@standard-schema/spec";
import { FrameworkError } from "../../base/errors/errors.ts";
import type { Logger } from "../../base/log/logger.ts";
import { isReply, isWebResponse, jsonText } from "../../parts/http/response.ts";
import { isStreamed } from "../../parts/http/stream.ts";
import {
  inUtf8,
  ReadResponse,
  readResponse,
  UnreadableResponse,
} from "../../parts/http/web-response.ts";
import type { HandlerDeclaration } from "../features/handler.ts";
import type { RequestScope } from "../runtime/scope.ts";

/** What a handler returned: a `Response` is read, and what has an `output` schema is what {@link checkOutput} makes of it. */
export async function receiveResult(
  declaration: HandlerDeclaration,
  returned: unknown,
  scope: RequestScope,
  log?: Logger,
): Promise<unknown> {
  const result = await checkOutput(declaration, returned, scope, log);
  return isWebResponse(result) ? read(declaration, result, scope) : result;
}

/** Its JSON is read to its end: what is checked and what is parsed is its value. */
function read({ kind }: HandlerDeclaration, response: Response, { signal }: RequestScope) {
  return readResponse(response, kind, { needsJson: true, signal });
}

/**
 * Makes of a result what the `output` schema of its handler gives. A result whose body the schema does not describe stays as it
 * is: a stream, bytes, an error, a redirect. So does every one where the server's `output` says that nothing is checked.
 *
 * @param log - carries the name of the handler; default: the scope's.
 * @throws FrameworkError `response_mismatch` where it does not fit, with handler and paths in its cause.
 */
export function checkOutput(
  declaration: HandlerDeclaration,
  returned: unknown,
  scope: RequestScope,
  log?: Logger,
): Promise<unknown> | unknown {
  const { output } = declaration;
  const { environment, server } = scope.runtime;
  if (output === undefined) return returned;
  if (environment === "production" && server.options.output?.check === "development")
    return returned;
  return checked(declaration, output, returned, scope, log);
}

async function checked(
  declaration: HandlerDeclaration,
  schema: StandardSchemaV1,
  returned: unknown,
  scope: RequestScope,
  log: Logger | undefined,
): Promise<unknown> {
  const given = await returned;
  const result = isWebResponse(given) ? await read(declaration, given, scope) : given;
  if (!isDescribed(result)) return result;
  let body: unknown = result;
  if (isReply(result)) body = result.body;
  else if (result instanceof ReadResponse) {
    try {
      body = result.value;
    } catch (error) {
      // Its message alone: what caused it quotes the body.
      return misfit(
        declaration,
        result,
        ["result"],
        scope,
        log,
        new TypeError((error as TypeError).message),
      );
    }
  }
  const validation = schema["~standard"].validate(body);
  const outcome = validation instanceof Promise ? await validation : validation;
  if (outcome.issues !== undefined)
    return misfit(declaration, result, pathsOf(outcome.issues), scope, log);
  if (isReply(result)) return Object.freeze({ ...result, body: outcome.value });
  return result instanceof ReadResponse ? withValue(result, outcome.value) : outcome.value;
}

/** Whether the `output` schema says of a result what it has to be. */
function isDescribed(result: unknown): boolean {
  if (result instanceof UnreadableResponse) return false;
  if (result instanceof ReadResponse) return result.isJson && result.status < 300;
  if (!isReply(result)) return !isRaw(result);
  return (result.status ?? 200) < 300 && !isRaw(result.body);
}

function isRaw(body: unknown): boolean {
  return body instanceof Uint8Array || body instanceof ArrayBuffer || isStreamed(body);
}

const digests: readonly string[] = ["content-digest", "content-md5", "digest", "repr-digest"];

/** The same answer with another value, written as JSON. Headers that vouch for the bytes of before are left out. */
function withValue(
  { status, headers: given, cookies }: ReadResponse,
  value: unknown,
): ReadResponse {
  const headers = Object.fromEntries(
    Object.entries(given).filter(([name]) => !digests.includes(name)),
  );
  headers["content-type"] = inUtf8(String(given["content-type"]));
  return new ReadResponse({
    status,
    headers,
    cookies,
    body: value === undefined ? undefined : jsonText(value),
  });
}

/** Gives the result as it is where the server sends it all the same. @throws FrameworkError `response_mismatch` otherwise. */
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
  const what = `${name}: the result does not fit its output schema at ${paths.join(", ")}; mend the handler or the schema`;
  throw new FrameworkError("response_mismatch", "The server's answer is not what it should be", {
    cause: new TypeError(what, { cause: why }),
  });
}

const maxPaths = 10;
const maxParts = 20;

/** Where a result does not fit; never what is there: messages of issues may quote it, and so does a name that is data. */
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

/** A member of a schema is named like one of a program; what is not, such as an address, is a key of a record. */
function shown(part: PropertyKey): string {
  const text = String(part);
  return /^(?:\d{1,9}|[A-Za-z_$][\w$-]{0,63})$/.test(text) ? text : "*";
}
