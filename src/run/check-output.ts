import type { HandlerDeclaration } from "../declare/handler.ts";
import { isReply, isWebResponse } from "../http/response.ts";
import { ReadResponse, readResponse, UnreadableResponse } from "../http/web-response.ts";
import type { Environment } from "../process/environment.ts";

/** What a handler returned: a `Response` is read, and what has an `output` schema is held against it as {@link checkOutput} does. */
export async function receiveResult(
  declaration: HandlerDeclaration,
  returned: unknown,
  environment: Environment,
): Promise<unknown> {
  const result = await (declaration.output === undefined ? returned : checkOutput(declaration, returned, environment));
  return isWebResponse(result) ? readResponse(result, declaration.kind) : result;
}

/**
 * Gives a result as it is; outside production it is held against the `output` schema of its handler.
 *
 * @throws Error where it does not fit, naming the handler and the paths.
 */
export function checkOutput(declaration: HandlerDeclaration, result: unknown, environment: Environment): unknown {
  return declaration.output === undefined || environment === "production" ? result : checked(declaration, result);
}

async function checked(declaration: HandlerDeclaration, returned: unknown): Promise<unknown> {
  const given = await returned;
  const result = isWebResponse(given) ? await readResponse(given, declaration.kind) : given;
  if (!isCheckable(result)) return result;
  const value = isReply(result) ? result.body : result instanceof ReadResponse ? result.value : result;
  const outcome = await declaration.output?.["~standard"].validate(value);
  if (outcome?.issues === undefined) return result;
  const problems = outcome.issues.slice(0, 10).map(({ path = [], message }) => {
    const dotted = path.map((part) => String(typeof part === "object" ? part.key : part)).join(".");
    return dotted === "" ? message : `${dotted}: ${message}`;
  });
  throw new Error(
    `${declaration.name}: the result does not fit its output schema (${problems.join("; ")}); mend the handler or the schema`,
  );
}

/** Of a `Response` only JSON of a success: a redirect, an error or a file says nothing of the output. */
function isCheckable(result: unknown): boolean {
  if (result instanceof UnreadableResponse) return false;
  return !(result instanceof ReadResponse) || (result.isJson && result.status < 300);
}
