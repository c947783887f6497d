import { receiveResult } from "../../app/ctx/check-output.ts";
import { createContext } from "../../app/ctx/context.ts";
import type { HandlerDeclaration } from "../../app/handlers/handler.ts";
import { warnOfUndeclared } from "../../app/run/undeclared-error.ts";
import { runWrite } from "../../app/run/write.ts";
import type { Runtime } from "../../app/runtime/runtime.ts";
import { type RequestScope, runInScope } from "../../app/runtime/scope.ts";
import { describeError } from "../../base/errors/describe.ts";
import { assertAllowed } from "../../base/identity/assert-allowed.ts";
import { validateInput } from "../../parts/http/input.ts";
import { bodyOf } from "../../parts/http/response.ts";
import { parsedBody } from "../../parts/http/web-response.ts";
import { type Caller, userOf } from "./caller.ts";

/** Options of `app.call`. */
export interface TestCallOptions {
  /** Caller of the handler. Default: anonymous. */
  readonly as?: Caller;
  /** Correlation ID, as in `X-Request-ID`. */
  readonly requestId?: string;
  /** `Idempotency-Key` of a write. */
  readonly idempotencyKey?: string;
}

/** Calls a handler, with access and input checked as for a request. */
export function callHandler(
  runtime: Runtime,
  name: string,
  input: unknown,
  { as, requestId, idempotencyKey }: TestCallOptions,
): Promise<unknown> {
  const declaration = runtime.server.registry.handlers.get(name);
  if (declaration === undefined)
    throw new Error(`app.call: no feature of this server declares ${name}`);
  const headers = headersOf(requestId);
  if (idempotencyKey !== undefined) headers["idempotency-key"] = idempotencyKey;
  return runInScope(runtime, { headers, signal: undefined }, async (scope) => {
    scope.handler = name;
    scope.user = userOf(as);
    try {
      return await called(scope, declaration, headers, input);
    } catch (error) {
      const { requestId } = scope;
      const { log } = describeError(error, { requestId, environment: runtime.environment });
      warnOfUndeclared(scope, log.data);
      throw error;
    }
  });
}

async function called(
  scope: RequestScope,
  declaration: HandlerDeclaration,
  headers: Record<string, string>,
  input: unknown,
): Promise<unknown> {
  const { access } = declaration;
  if (access !== undefined) assertAllowed(access, scope.user, declaration.name);
  const rawInput = () => input ?? {};
  const accepted = await validateInput(declaration.input, rawInput());
  const adapters = await scope.runtime.adapters.open();
  if (declaration.kind === "write") {
    const write = { declaration, request: { headers }, input: accepted, rawInput, head: false };
    const { headers: sent, body } = await runWrite(scope, adapters, write);
    return parsedBody(sent, body);
  }
  const result = declaration.run(createContext(scope, adapters, {}), accepted);
  return bodyOf(await receiveResult(declaration, result, scope));
}

export function headersOf(requestId: string | undefined): Record<string, string> {
  const headers: Record<string, string> = Object.create(null);
  if (requestId !== undefined) headers["x-request-id"] = requestId;
  return headers;
}
