import { run } from "../../app/ctx/run.ts";
import type { PipelineContext } from "../../app/handlers/pipeline-context.ts";
import { assertActive } from "../../app/run/active-tenant.ts";
import { fail, recognize } from "../../app/run/failed-request.ts";
import { authorize } from "../../app/run/pipeline.ts";
import { causeOf, responseOf, writeClaim } from "../../app/run/write.ts";
import type { Runtime } from "../../app/runtime/runtime.ts";
import type { RequestScope } from "../../app/runtime/scope.ts";
import { FrameworkError } from "../../base/errors/errors.ts";
import {
  type AccessRule,
  anonymous,
  describeRule,
  needsIdentity,
} from "../../base/identity/access.ts";
import { preflight } from "../../parts/http/cors.ts";
import { type HttpRequest, requestView } from "../../parts/http/message.ts";
import { noAnswer, type WriteAnswer } from "../../parts/once/answer.ts";
import type { OnceClaim } from "../../parts/once/claims.ts";
import type { LambdaAnswer, WholeBody } from "../lambda-http/codec.ts";
import { type Exchange, type Invocation, scopeMode } from "../lambda-http/execution-mode.ts";
import { assertFits, HttpExchange, httpEventOf, wholeAnswer } from "../lambda-http/http-events.ts";
import type { MiddyFunction, Mode } from "../lambda-http/lazy-mode.ts";
import { isRequest, kindOf } from "../lambda-http/other-event.ts";
import { measured, readResult } from "../lambda-http/result.ts";
import { fromMiddy, runMiddlewares } from "../lambda-http/run-middlewares.ts";
import { type ClaimDescription, takeDescription } from "./write-once.ts";

export { createLambdaRuntime, loadSdk, openMeasuring } from "../lambda-http/lambda-runtime.ts";

/** Options of `requestScope`. */
export interface RequestScopeOptions {
  /** Full name of the handler, `<feature>.<entity>.<operation>`, for log lines and claims. */
  readonly handler: string;
  /**
   * Rule for the callers of the handler. With `access.everyone`, a valid token still identifies the
   * caller. A rule that needs an identity refuses every event that is not HTTP, because such an
   * event does not identify its sender.
   */
  readonly access: AccessRule;
}

export function adoptedMode(runtime: Runtime, options: RequestScopeOptions): Mode {
  return scopeMode<unknown>(runtime, (invocation) => {
    const http = httpEventOf(invocation.event);
    return http === undefined
      ? otherExchange(invocation, options)
      : new AdoptedExchange(http, invocation, options);
  });
}

/** A preflight allows all methods, because the trigger decides which reach the function. */
const methods = "GET, HEAD, POST, PUT, PATCH, DELETE";

class AdoptedExchange extends HttpExchange {
  readonly #invocation: Invocation;
  readonly #options: RequestScopeOptions;

  constructor(http: HttpExchange["http"], invocation: Invocation, options: RequestScopeOptions) {
    super(http, true);
    this.#invocation = invocation;
    this.#options = options;
  }

  async run(scope: RequestScope, middy: MiddyFunction): Promise<LambdaAnswer> {
    scope.handler = this.#options.handler;
    scope.route = patternOf(this.#invocation.event);
    const { runtime } = scope;
    const { description } = takeDescription(middy.befores);
    const request = this.http.request(this.headers, scope);
    scope.asked = request;
    const refusal = runtime.refusalOfHeaders(request.headers);
    if (refusal !== undefined) {
      await recognize(scope, request);
      throw refusal;
    }
    const { cors } = runtime.server.options;
    // A browser does not send a token with a preflight.
    const preflighted =
      cors === undefined || request.method !== "OPTIONS"
        ? undefined
        : preflight(cors, request.headers, methods);
    if (preflighted !== undefined)
      return { statusCode: 204, headers: preflighted, cookies: [], body: undefined };
    scope.user = await authorize(scope, request, this.#options.access);
    const adapters = await runtime.adapters.open();
    const bytes = await request.readBody(Number.POSITIVE_INFINITY);
    const claim =
      description === undefined
        ? undefined
        : await this.#claim(scope, description, { request, bytes });
    let answer: WriteAnswer | undefined;
    let [hasTriedToCommit, hasFailed] = [false, false];
    let left: LambdaAnswer | undefined;
    const ended = await run(scope, adapters, {
      logPrefix: "once",
      claim,
      cause: causeOf(scope),
      request: () => requestView(request, bytes),
      handle: async (ctx) => {
        const result = await runAdopted(middy, scope, this.#invocation, ctx, () => {
          hasFailed = true;
        });
        // Read here, because an invalid result counts as an error after the commit.
        if (hasTriedToCommit && !hasFailed) left = this.read(result);
        return result;
      },
      answerOf: (result) => {
        answer ??= this.#doneAnswer(result, scope);
        return answer;
      },
      committing: (result) => {
        hasTriedToCommit = true;
        return { result, answer: answerOf(readResult(result)) };
      },
    });
    if (ended.kind === "committed" && left !== undefined) return left;
    // Without a claim or a commit, the result stays as the middlewares left it.
    if (ended.kind === "done" && claim === undefined) return this.read(ended.result);
    const response = responseOf(ended);
    // Safe: the response of a write is never a stream.
    return measured(wholeAnswer(response, response.body as WholeBody), this.http.method);
  }

  async timedOut({ plugin }: MiddyFunction): Promise<LambdaAnswer> {
    return this.read(await plugin.timeoutEarlyResponse());
  }

  #claim(
    scope: RequestScope,
    described: ClaimDescription,
    { request, bytes }: { readonly request: HttpRequest; readonly bytes: Uint8Array },
  ): Promise<OnceClaim | undefined> {
    return writeClaim(scope, {
      declaration: { name: this.#options.handler, ...described },
      headers: this.headers,
      input: { method: request.method, path: request.path, query: request.query, body: bytes },
      assertFits: (response) => assertFits(response, this.http),
      anonymousAs: anonymousCaller(this.#invocation.event, this.headers),
    });
  }

  /** A result that is not a valid response becomes a 500, stored because the work is done. */
  #doneAnswer(result: unknown, scope: RequestScope): WriteAnswer {
    try {
      return answerOf(readResult(result));
    } catch (error) {
      return { ...answerOf(this.fail(error, scope)), isDone: true };
    }
  }
}

/** Event that is not HTTP. Lambda receives its result and its errors unchanged. */
function otherExchange(
  invocation: Invocation,
  { handler, access }: RequestScopeOptions,
): Exchange<unknown> {
  const { event, isolatedTo } = invocation;
  return {
    headers: {},
    run: async (scope, middy) => {
      scope.handler = handler;
      if (needsIdentity(access))
        throw new FrameworkError(
          "unauthenticated",
          `the event is ${kindOf(event)}, which does not identify its sender, but ${describeRule(access)} requires one; adopt its handler with another requestScope, without that rule`,
        );
      // An event that is not a client's request comes from AWS, or from a caller allowed to invoke
      // the function.
      scope.isIdentified = !isRequest(event);
      scope.isSystem = scope.isIdentified && isolatedTo === undefined;
      if (isolatedTo !== undefined)
        scope.user = Object.freeze({ ...anonymous, tenantId: isolatedTo });
      await assertActive(scope);
      let returned: unknown;
      let failed: { readonly error: unknown } | undefined;
      await run(scope, await scope.runtime.adapters.open(), {
        logPrefix: "once",
        claim: undefined,
        cause: causeOf(scope),
        handle: async (ctx) => {
          try {
            returned = await runAdopted(middy, scope, invocation, ctx);
          } catch (error) {
            failed = { error };
            throw error;
          }
        },
        committing: (result) => ({ result, answer: noAnswer }),
      });
      // Also after the commit: the source redelivers records that were not handled.
      if (failed !== undefined) throw failed.error;
      return returned;
    },
    timedOut: async ({ plugin }) => plugin.timeoutEarlyResponse(),
    fail: (error, scope) => {
      // The error is only logged here; the source of the event receives it.
      fail(scope, { headers: {}, method: "" }, fromMiddy(error));
      scope.runtime.observer?.ended(scope, { kind: "run", outcome: "failed", error });
      throw error;
    },
    finish: (result, scope) => {
      scope.runtime.observer?.ended(scope, { kind: "run", outcome: "processed" });
      return result;
    },
  };
}

/** Tells apart anonymous callers, whom possibly only the handler's own middlewares recognize. */
function anonymousCaller(
  event: unknown,
  { authorization = "", cookie = "" }: HttpExchange["headers"],
) {
  const { authorizer, identity } = Object(Object(event).requestContext);
  // With IAM authorization, the header has another signature in each attempt. All users of a Cognito
  // identity pool have the same ARN.
  const { iam = Object(identity) } = Object(authorizer);
  const { userArn, accessKey, cognitoIdentityId, cognitoIdentity } = Object(iam);
  const iamCaller = [userArn, accessKey, cognitoIdentityId ?? cognitoIdentity];
  return JSON.stringify([typeof userArn === "string" ? iamCaller : authorization, cookie]);
}

/** Returns the pattern that the gateway matched, such as `GET /files/{id}`. */
function patternOf(event: unknown): string | undefined {
  const { routeKey, resource }: { readonly [Name in "routeKey" | "resource"]?: unknown } =
    Object(event);
  const pattern = [routeKey, resource].find(
    (given): given is string => typeof given === "string" && given.includes("/"),
  );
  return pattern?.includes("+}") ? undefined : pattern;
}

function runAdopted(
  middy: MiddyFunction,
  scope: RequestScope,
  { event, context: given }: Invocation,
  ctx: PipelineContext,
  answering?: () => void,
): Promise<unknown> {
  const { signal } = ctx;
  const parts = {
    event,
    context: Object.assign(given ?? {}, { keelson: ctx }), // in place, as middlewares do
    befores: takeDescription(middy.befores).befores,
    handler:
      signal === undefined
        ? middy.handler
        : (event: unknown, context: unknown) => middy.handler(event, context, { signal }),
  };
  return runMiddlewares(middy, scope, parts, answering);
}

function answerOf({ statusCode: status, body, ...answer }: LambdaAnswer): WriteAnswer {
  const { headers, cookies, isBase64Encoded } = answer;
  const content =
    isBase64Encoded === true && body !== undefined ? Buffer.from(body, "base64") : body;
  return { status, headers, cookies, body: content };
}
