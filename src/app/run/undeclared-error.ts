import { errorCodes } from "../../base/errors/errors.ts";
import type { HandlerDeclaration } from "../handlers/handler.ts";
import { isExpected } from "../registry/expected-code.ts";
import type { RequestScope } from "../runtime/scope.ts";

/** Maximum number of remembered codes, because applications may build codes from data. */
const maxReported = 1_000;

/**
 * Warns once per code, outside production, of an error that the scope's handler does not declare,
 * because clients that read the contract do not expect it.
 */
export function warnOfUndeclared(
  scope: RequestScope,
  { error, status }: Readonly<Record<string, unknown>>,
): void {
  const { handler, runtime } = scope;
  if (runtime.environment === "production" || handler === undefined) return;
  const { reportedErrors, server } = runtime;
  const declaration = server.registry.handlers.get(handler);
  // The casts are safe: the log record of an error has both.
  const [code, given] = [error as string, status as number];
  if (declaration === undefined || given === statusOf(code, declaration, scope, given)) return;
  const reported = `${handler} ${code}`;
  if (reportedErrors.has(reported) || reportedErrors.size >= maxReported) return;
  reportedErrors.add(reported);
  scope.log.warn("error.undeclared", {
    error: code,
    status: given,
    fix: `declare it: errors: { ${code}: ${given} }`,
  });
}

/** Warns once, outside production, of a status below 400 that the scope's handler does not declare. */
export function warnOfUndeclaredStatus(
  scope: RequestScope,
  declared: readonly number[] | undefined,
  status: number,
): void {
  if ((declared ?? usual).includes(status) || status >= 400) return;
  const { handler, runtime } = scope;
  if (runtime.environment === "production") return;
  if (handler === undefined || !runtime.server.registry.handlers.has(handler)) return;
  const reported = `${handler} ${status}`;
  if (runtime.reportedErrors.has(reported)) return;
  runtime.reportedErrors.add(reported);
  scope.log.warn("status.undeclared", {
    status,
    fix: `declare it: status: ${JSON.stringify(declared === undefined ? status : [...declared, status])}`,
  });
}

const usual: readonly number[] = [200, 204];

/** Returns the status that callers expect for a code, `undefined` if they do not expect the code. */
function statusOf(
  code: string,
  declaration: HandlerDeclaration,
  { runtime }: RequestScope,
  given: number,
): number | undefined {
  const { errors } = declaration;
  if (errors !== undefined && Object.hasOwn(errors, code)) return errors[code];
  // Any status: errors thrown with a status of their own, and requests that a host refuses.
  if (code === "pipeline_error" || code === "malformed_request") return given;
  return isExpected(code, declaration, runtime.server) ? errorCodes[code] : undefined;
}
