import { refusalOfHeaders } from "../http/ambiguous-headers.ts";
import { requestView } from "../http/request-view.ts";
import type { AccessRule } from "../identity/access.ts";
import { anonymous } from "../identity/user.ts";
import type { Answer } from "../once/answer.ts";
import type { Work } from "../once/claimed-run.ts";
import { writeIdOf } from "../once/write-id.ts";
import { createContext } from "../run/context.ts";
import { createEffects } from "../run/effects.ts";
import { causeOf, onceWrite, responseOf, unclaimedRun } from "../run/perform-write.ts";
import { authorize, fail, recognize } from "../run/pipeline.ts";
import type { Runtime } from "../run/runtime.ts";
import { identify, nameHandler, type RequestScope, runUnder, type ScopeFacts } from "../run/scope.ts";
import { type LambdaAnswer, type WholeResponse, wholeAnswer } from "./codec.ts";
import { assertFits, eventCodec, failure, type HttpFacts } from "./event-codec.ts";
import { type EventCodec, type MiddyRun, scopeMode } from "./execution-mode.ts";
import type { LambdaHttpEvent, LambdaHttpResult } from "./http-event.ts";
import type { ExecutionMode } from "./lazy-mode.ts";
import { fromMiddy } from "./middy-error.ts";
import type { RequestScopeOptions } from "./request-scope.ts";
import { readResult } from "./result.ts";

export { createLambdaRuntime, loadSdk } from "./create-runtime.ts";

interface OtherFacts extends ScopeFacts {
  readonly shape: undefined;
  readonly event: unknown;
}

type Facts = (HttpFacts & { readonly shape: HttpFacts["shape"] }) | OtherFacts;

/** How a Middy handler that exists already runs: what {@link requestScope} loads. */
export function legacyMode(runtime: Runtime, { handler, access }: Required<RequestScopeOptions>): ExecutionMode {
  return scopeMode<unknown, unknown, Facts>(runtime, legacyCodec(handler, access));
}

function legacyCodec(handler: string, access: AccessRule): EventCodec<unknown, unknown, Facts> {
  return {
    facts: (event, invocation) => {
      try {
        // Safe: it throws for an event of another kind.
        return eventCodec.facts(event as LambdaHttpEvent, invocation);
      } catch {
        return { shape: undefined, event, headers: {}, ...invocation };
      }
    },
    fail: (error, scope, facts) => {
      if (facts.shape !== undefined) return eventCodec.fail(error, scope, facts);
      fail(scope, { headers: {}, method: "" }, fromMiddy(error)); // for the log: whoever sent the event has to know that it failed
      throw error;
    },
    finish: (result, scope, facts) =>
      facts.shape === undefined ? result : eventCodec.finish(result as LambdaHttpResult, scope, facts),
    around: async (scope, facts, run) => {
      nameHandler(scope, handler);
      return facts.shape === undefined ? runOther(scope, run) : runHttp(scope, facts, run, { handler, access });
    },
  };
}

async function runOther(scope: RequestScope, { context, run }: MiddyRun<unknown>): Promise<unknown> {
  const { runtime, requestId, signal } = scope;
  const adapters = await runtime.adapters();
  const handler = String(scope.handler);
  context["keelson"] = createContext(runtime, adapters, { requestId, user: anonymous, handler, signal });
  return run(signal);
}

async function runHttp(
  scope: RequestScope,
  facts: HttpFacts,
  { context, claim, run }: MiddyRun<unknown>,
  { handler, access }: Required<RequestScopeOptions>,
): Promise<unknown> {
  const { runtime, requestId, signal, deadlineMs } = scope;
  const { shape, event } = facts;
  const request = shape.request(event, facts.headers, scope);
  const refusal = refusalOfHeaders(request.headers);
  if (refusal !== undefined) {
    await recognize(scope, request);
    throw refusal;
  }
  const user = await authorize(scope, request, access);
  identify(scope, user);
  const adapters = await runtime.adapters();
  const bytes = await request.readBody(Number.POSITIVE_INFINITY);
  /** Runs it with a `ctx`; what it has published goes with the commit, or else with its result. */
  const runWith = async (given: Parameters<Work>[0]): Promise<{ readonly result: unknown; answer(): Answer }> => {
    const ownSignal = signal === undefined ? undefined : given.signal;
    const effects = createEffects(runtime, adapters, causeOf(scope, user), scope, given);
    runUnder(scope, ownSignal);
    context["keelson"] = createContext(runtime, adapters, {
      requestId,
      user,
      handler,
      signal: ownSignal,
      request: () => requestView(request, bytes),
      effects,
      commit: async (items, result) => effects.commit(items, answerOf(readResult(result))),
    });
    const result = await run(ownSignal);
    let made: Answer | undefined;
    const answer = () => {
      made ??= doneAnswer(result, scope, facts);
      return made;
    };
    await effects.settle(answer);
    return { result, answer };
  };
  const once = claim === undefined ? false : (claim.once ?? runtime.server.options.once?.key ?? "either");
  const id = writeIdOf(facts.headers, { requestId, once, isSignedIn: user.id !== undefined });
  if (id === undefined) {
    const { result, committed } = await unclaimedRun(adapters, scope, signal, runWith);
    return committed === undefined ? result?.result : shape.write(inShape(committed), event);
  }
  const { authorization = "", cookie = "" } = facts.headers;
  const write = await onceWrite(
    scope,
    {
      declaration: { name: handler, ...claim },
      user,
      input: { method: request.method, path: request.path, query: request.query, body: bytes },
      deadlineMs,
      assertFits: (response) => assertFits(inShape({ ...response, cookies: [] } as Answer), facts),
      // Who it is may be known to the handler's own middlewares alone.
      anonymousAs: JSON.stringify([authorization, cookie]),
    },
    id,
  );
  const work: Work = async (given) => (await runWith(given)).answer();
  // Safe, here and above: no answer is a stream.
  return shape.write(wholeAnswer(responseOf(await runtime.once.run(write, signal, work)) as WholeResponse), event);
}

function inShape({ status, headers, cookies, body }: Answer): LambdaAnswer {
  return wholeAnswer({ status, headers: { ...headers }, cookies, body });
}

/** The answer of a run that came to its end; where its result is none, the 500 of that, since what was done is done. */
function doneAnswer(result: unknown, scope: RequestScope, facts: HttpFacts): Answer {
  try {
    return answerOf(readResult(result));
  } catch (error) {
    return { ...answerOf(failure(error, scope, facts)), isDone: true };
  }
}

/** What the handler gave, or one of its middlewares, as an answer that can be kept. */
function answerOf({ statusCode, headers, cookies, body, isBase64Encoded }: LambdaAnswer): Answer {
  const content = isBase64Encoded === true && body !== undefined ? Buffer.from(body, "base64") : body;
  return { status: statusCode, headers, cookies, body: content };
}
