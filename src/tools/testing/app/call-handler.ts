import { receiveResult } from "../../../app/ctx/check-output.ts";
import { type ContextParts, createContext, createContexts } from "../../../app/ctx/context.ts";
import { run } from "../../../app/ctx/run.ts";
import type { Effects } from "../../../app/handlers/effects.ts";
import type { HandlerDeclaration } from "../../../app/handlers/handler.ts";
import type { PipelineContext } from "../../../app/handlers/pipeline-context.ts";
import { type QuotaUse, quotaUse } from "../../../app/handlers/quota.ts";
import { assertActive } from "../../../app/run/active-tenant.ts";
import { warnOfUndeclared } from "../../../app/run/failed-request.ts";
import { causeOf, runWrite } from "../../../app/run/write.ts";
import type { Adapters } from "../../../app/runtime/adapters.ts";
import type { Runtime } from "../../../app/runtime/runtime.ts";
import { type RequestScope, runInScope } from "../../../app/runtime/scope.ts";
import { describeError } from "../../../base/errors/describe.ts";
import { assertAllowed } from "../../../base/identity/assert-allowed.ts";
import { validateInput } from "../../../parts/http/input.ts";
import { bodyOf } from "../../../parts/http/response.ts";
import { parsedBody } from "../../../parts/http/web-response.ts";
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

/** Checks access and input as for a request. */
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
  given: unknown,
): Promise<unknown> {
  await assertActive(scope);
  const { access } = declaration;
  if (access !== undefined) assertAllowed(access, scope.user, declaration.name);
  const rawInput = () => given ?? {};
  const input = await validateInput(declaration.input, rawInput());
  const adapters = await scope.runtime.adapters.open();
  if (declaration.kind === "write") {
    const write = { declaration, request: { headers }, input, rawInput, head: false };
    const { headers: sent, body } = await runWrite(scope, adapters, write);
    return parsedBody(sent, body);
  }
  const result = declaration.run(createContext(scope, adapters, {}), input);
  return bodyOf(await receiveResult(declaration, result, scope));
}

function headersOf(requestId: string | undefined): Record<string, string> {
  const headers: Record<string, string> = Object.create(null);
  if (requestId !== undefined) headers["x-request-id"] = requestId;
  return headers;
}

/** Creates a `ctx` outside of a handler: each call with effects is a run that commits immediately. */
export function testContext(
  { runtime, adapters }: { readonly runtime: Runtime; readonly adapters: Adapters },
  caller: Caller,
  {
    requestId,
    handler = "test.app.ctx",
  }: { readonly requestId?: string; readonly handler?: string },
): Promise<PipelineContext> {
  const request = { headers: headersOf(requestId), signal: undefined };
  return runInScope(runtime, request, async (scope) => {
    scope.handler = handler;
    scope.user = userOf(caller);
    const commits = commitsAlone(scope, adapters);
    return createContexts(scope, adapters, { commits }).of("handler");
  });
}

function commitsAlone(scope: RequestScope, adapters: Adapters): ContextParts["commits"] {
  const runAlone = async <Result>(
    handle: (ctx: PipelineContext) => Promise<Result>,
  ): Promise<Result> => {
    let result: Result | undefined;
    await run<unknown>(scope, adapters, {
      logPrefix: "once",
      claim: undefined,
      cause: causeOf(scope),
      handle: async (ctx) => {
        result = await handle(ctx);
      },
    });
    return result as Result; // safe cast: a run that does not throw has called `handle`
  };
  const effects: Effects = {
    // Safe casts: the type of the test's `ctx` checks names; here, a name is any string.
    publish: (type, payload, options) =>
      runAlone((ctx) => ctx.publish(type as never, payload as never, options)),
    enqueue: (name, payload, options) =>
      runAlone((ctx) => ctx.enqueue(name as never, payload as never, options)),
    cancelJob: (jobId) => runAlone((ctx) => ctx.cancelJob(jobId)),
    step: (name, options, call) => runAlone((ctx) => ctx.step(name, options, call)),
    // Safe cast: every `ctx` has the member.
    count: (quota, change) =>
      runAlone((ctx) =>
        (ctx as unknown as { [quotaUse](): QuotaUse })[quotaUse]().count(quota, change),
      ),
    deliver: (channel, message, options) =>
      runAlone((ctx) => ctx.delivery.send(channel as never, message as never, options)),
  };
  return {
    start: (_caller, work) => work(effects),
    commit: (_caller, items, result) => runAlone((ctx) => ctx.commit(items, result)),
  };
}
