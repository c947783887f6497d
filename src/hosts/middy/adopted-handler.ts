import { createContext } from "../../app/ctx/context.ts";
import { authorize, fail, recognize } from "../../app/run/pipeline.ts";
import { run } from "../../app/run/run.ts";
import { causeOf, responseOf, writeClaim } from "../../app/run/write.ts";
import type { Runtime } from "../../app/runtime/runtime.ts";
import type { RequestScope } from "../../app/runtime/scope.ts";
import type { ScopeFacts } from "../../app/runtime/scoped-run.ts";
import { FrameworkError } from "../../base/errors/errors.ts";
import { type AccessRule, describeRule, needsIdentity } from "../../base/identity/access.ts";
import { anonymous } from "../../base/identity/user.ts";
import type { HttpRequest } from "../../parts/http/message.ts";
import { requestView } from "../../parts/http/request-view.ts";
import type { WriteAnswer } from "../../parts/once/answer.ts";
import type { OnceClaim } from "../../parts/once/claimed-run.ts";
import { type LambdaAnswer, type WholeResponse, wholeAnswer } from "../lambda-http/codec.ts";
import { type EventCodec, type MiddyRun, scopeMode } from "../lambda-http/execution-mode.ts";
import type { LambdaHttpEvent, LambdaHttpResult } from "../lambda-http/http-event.ts";
import { assertFits, eventCodec, failure, type HttpFacts } from "../lambda-http/http-events.ts";
import type { ExecutionMode } from "../lambda-http/middleware.ts";
import { fromMiddy } from "../lambda-http/middy-error.ts";
import { isRequest, kindOf } from "../lambda-http/other-event.ts";
import { readResult } from "../lambda-http/result.ts";
import type { ClaimDescription } from "../lambda-http/write-once.ts";

export { createLambdaRuntime, loadSdk, openMeasuring } from "../lambda-http/lambda-runtime.ts";

/** Options of `requestScope`. */
export interface RequestScopeOptions {
  /** Full name of the handler, `<feature>.<entity>.<operation>`, for log lines and claims. */
  readonly handler: string;
  /**
   * Rule for the callers of the handler. Default: everyone; a valid token identifies the caller.
   * Any other rule refuses every event that is not HTTP, because such an event does not identify
   * its sender.
   */
  readonly access?: AccessRule;
}

interface OtherFacts extends ScopeFacts {
  readonly shape: undefined;
  readonly event: unknown;
}

type Facts = (HttpFacts & { readonly shape: HttpFacts["shape"] }) | OtherFacts;

/** Creates the execution mode of an existing Middy handler, which {@link requestScope} loads. */
export function adoptedMode(
  runtime: Runtime,
  { handler, access }: Required<RequestScopeOptions>,
): ExecutionMode {
  return scopeMode<unknown, unknown, Facts>(runtime, adoptedCodec(handler, access));
}

function adoptedCodec(handler: string, access: AccessRule): EventCodec<unknown, unknown, Facts> {
  return {
    facts: (event, invocation) => {
      try {
        // Safe: `facts` throws for an event of another kind.
        return eventCodec.facts(event as LambdaHttpEvent, invocation);
      } catch {
        return { shape: undefined, event, headers: {}, ...invocation };
      }
    },
    fail: (error, scope, facts) => {
      if (facts.shape !== undefined) return eventCodec.fail(error, scope, facts);
      fail(scope, { headers: {}, method: "" }, fromMiddy(error)); // only logged; rethrown for the source
      scope.runtime.observer?.ended(scope, { kind: "run", outcome: "failed", error });
      throw error;
    },
    finish: (result, scope, facts) => {
      if (facts.shape !== undefined)
        return eventCodec.finish(result as LambdaHttpResult, scope, facts);
      scope.runtime.observer?.ended(scope, { kind: "run", outcome: "processed" });
      return result;
    },
    around: async (scope, facts, middy) => {
      scope.handler = handler;
      if (facts.shape !== undefined) scope.route = patternOf(facts.event);
      return facts.shape === undefined
        ? runOther(scope, facts.event, middy, access)
        : runHttp(scope, facts, middy, access);
    },
  };
}

/** Returns the pattern that the gateway matched, such as `GET /files/{id}`, if there is one. */
function patternOf(event: unknown): string | undefined {
  const { routeKey, resource } = event as {
    readonly routeKey?: unknown;
    readonly resource?: unknown;
  }; // safe: its shape was matched
  const pattern = [routeKey, resource].find(
    (given) => typeof given === "string" && given.includes("/"),
  );
  return typeof pattern === "string" && !pattern.includes("+}") ? pattern : undefined;
}

async function runOther(
  scope: RequestScope,
  event: unknown,
  middy: MiddyRun<unknown>,
  access: AccessRule,
): Promise<unknown> {
  const { isolatedTo } = scope;
  if (needsIdentity(access)) {
    const what = `the event is ${kindOf(event)} and says of nobody who sent it, as ${describeRule(access)} asks; `;
    throw new FrameworkError(
      "unauthenticated",
      `${what}adopt its handler by another requestScope, without that rule`,
    );
  }
  // Any other event comes from AWS, or from a caller allowed to invoke the function.
  const isTrusted = !isRequest(event);
  scope.isIdentified = isTrusted;
  scope.isSystem = isTrusted && isolatedTo === undefined;
  if (isolatedTo !== undefined) scope.user = Object.freeze({ ...anonymous, tenantId: isolatedTo });
  middy.context["keelson"] = createContext(scope, await scope.runtime.adapters(), {});
  return middy.run(scope.signal);
}

async function runHttp(
  scope: RequestScope,
  facts: HttpFacts,
  middy: MiddyRun<unknown>,
  access: AccessRule,
): Promise<unknown> {
  const { runtime } = scope;
  const { shape, event } = facts;
  const { claim: described } = middy;
  const request = shape.request(event, facts.headers, scope);
  scope.asked = request;
  const refusal = runtime.refusalOfHeaders(request.headers);
  if (refusal !== undefined) {
    await recognize(scope, request);
    throw refusal;
  }
  scope.user = await authorize(scope, request, access);
  const adapters = await runtime.adapters();
  const bytes = await request.readBody(Number.POSITIVE_INFINITY);
  const claim =
    described === undefined
      ? undefined
      : await adoptedClaim(scope, facts, { described, request, bytes });
  let answer: WriteAnswer | undefined;
  const ended = await run(scope, adapters, {
    logPrefix: "once",
    claim,
    cause: causeOf(scope),
    request: () => requestView(request, bytes),
    handle: (ctx) => {
      middy.context["keelson"] = ctx;
      return middy.run(ctx.signal);
    },
    answerOf: (result) => {
      answer ??= doneAnswer(result, scope, facts);
      return answer;
    },
    committedAnswer: (result) => answerOf(readResult(result)),
  });
  // Without a claim or a commit, the result stays as the middlewares left it.
  if (ended.kind === "done" && claim === undefined) return ended.result;
  return shape.write(wholeAnswer(responseOf(ended) as WholeResponse), event); // safe: not a stream
}

interface AdoptedWrite {
  readonly described: ClaimDescription;
  readonly request: HttpRequest;
  readonly bytes: Uint8Array;
}

function adoptedClaim(
  scope: RequestScope,
  facts: HttpFacts,
  { described, request, bytes }: AdoptedWrite,
): Promise<OnceClaim | undefined> {
  const { authorization = "", cookie = "" } = facts.headers;
  return writeClaim(scope, {
    declaration: { name: String(scope.handler), ...described },
    headers: facts.headers,
    input: { method: request.method, path: request.path, query: request.query, body: bytes },
    assertFits: (response) =>
      assertFits(wholeAnswer({ ...response, cookies: [] } as WholeResponse), facts), // safe: as above
    // Only the handler's own middlewares may know the caller's identity.
    anonymousAs: JSON.stringify([authorization, cookie]),
  });
}

/**
 * Returns the answer of a finished run. A result that is not a valid response becomes a 500, which
 * is stored because the work is done.
 */
function doneAnswer(result: unknown, scope: RequestScope, facts: HttpFacts): WriteAnswer {
  try {
    return answerOf(readResult(result));
  } catch (error) {
    return { ...answerOf(failure(error, scope, facts)), isDone: true };
  }
}

/** Converts the result of the handler or a middleware to an answer that can be stored. */
function answerOf({
  statusCode,
  headers,
  cookies,
  body,
  isBase64Encoded,
}: LambdaAnswer): WriteAnswer {
  const content =
    isBase64Encoded === true && body !== undefined ? Buffer.from(body, "base64") : body;
  return { status: statusCode, headers, cookies, body: content };
}
