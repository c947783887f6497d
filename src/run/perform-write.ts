import type { HandlerDeclaration } from "../declare/handler.ts";
import { onceTable } from "../declare/table.ts";
import { describeError } from "../errors/describe.ts";
import type { Cause } from "../events/cause.ts";
import { errorResponse } from "../http/error-response.ts";
import type { HttpResponse } from "../http/message.ts";
import { toResponse } from "../http/response.ts";
import type { User } from "../identity/user.ts";
import type { Answer } from "../once/answer.ts";
import { answerCipher } from "../once/answer-cipher.ts";
import { claimKey } from "../once/claim-key.ts";
import type { OnceAnswer, OnceWrite, Work } from "../once/claimed-run.ts";
import { fingerprintOf } from "../once/fingerprint.ts";
import { type WriteId, writeIdOf } from "../once/write-id.ts";
import type { Adapters } from "./adapters.ts";
import { createContext } from "./context.ts";
import { createEffects, unclaimedCommit } from "./effects.ts";
import { checkOutput, invoke } from "./invoke.ts";
import type { Performance } from "./perform.ts";
import { type RequestScope, runUnder } from "./scope.ts";

/** Runs a write and makes a response of what it returns; one that was done before gives its answer again. */
export async function runWrite(scope: RequestScope, adapters: Adapters, performance: Performance): Promise<HttpResponse> {
  const { runtime, requestId } = scope;
  const { declaration, user, signal, request, input, head, headers } = performance;
  const { environment } = runtime;
  const facts = { requestId, user, handler: declaration.name, request };
  const respond = (result: unknown) => toResponse(result, { kind: "write", head, development: environment === "development" });
  /** The answer of a handler that came to its end; where its result is none, the 500 of that, since what was done is done. */
  const doneAnswer = (result: unknown): Answer => {
    try {
      return respond(result) as Answer; // safe, here and below: a write's body is never a stream
    } catch (error) {
      const { response, log } = errorResponse(error, { requestId, environment, accept: headers["accept"], head });
      scope.log[log.level]("request.failed", log.data);
      return { ...(response as Answer), isDone: true };
    }
  };
  const work: Work = async (run) => {
    const effects = createEffects(runtime, adapters, causeOf(scope, user), scope, run);
    // A request without a signal gets none, whoever else may wait for its run.
    if (signal !== undefined) runUnder(scope, run.signal);
    const ctx = createContext(runtime, adapters, {
      ...facts,
      signal: scope.runSignal,
      effects,
      commit: async (items, result) => {
        await checkOutput(declaration, result, environment);
        await effects.commit(items, respond(result) as Answer);
      },
    });
    const answer = doneAnswer(await invoke(declaration, ctx, input, environment));
    await effects.settle(() => answer);
    return answer;
  };
  const once = declaration.once ?? runtime.server.options.once?.key ?? "either";
  const isClaimable = declaration.isClaimable?.(input) ?? true;
  const id = isClaimable ? writeIdOf(headers, { requestId, once, isSignedIn: user.id !== undefined }) : undefined;
  if (id === undefined) {
    const { result, committed = result } = await unclaimedRun(adapters, scope, signal, work);
    return { ...committed } as HttpResponse;
  }
  return responseOf(await runtime.once.run(await onceWrite(scope, performance, id), signal, work));
}

/** What events and jobs of a request say of it. */
export function causeOf({ requestId }: RequestScope, { id, tenantId }: User): Cause {
  return { causedBy: requestId, origRequestId: requestId, tenantId, userId: id };
}

/**
 * Runs a write that nothing claims. Its commit is of its items alone; what was committed is the answer, whatever comes
 * later: a later throw is logged.
 */
export async function unclaimedRun<Result>(
  adapters: Adapters,
  scope: RequestScope,
  signal: AbortSignal | undefined,
  work: (run: Parameters<Work>[0]) => Promise<Result>,
): Promise<{ readonly result?: Result; readonly committed?: Answer }> {
  const commit = unclaimedCommit(scope.runtime, adapters, signal);
  let seed: string | undefined;
  let committed: Answer | undefined;
  const run: Parameters<Work>[0] = {
    signal,
    commit: async (items, answer, own) => {
      await commit(items, answer, own);
      committed = answer;
    },
    seed: () => {
      seed ??= crypto.randomUUID();
      return seed;
    },
  };
  try {
    const result = await work(run);
    return committed === undefined ? { result } : { result, committed };
  } catch (error) {
    if (committed === undefined) throw error;
    scope.log.error("once.threw_after_commit", describeError(error, { requestId: "", environment: "production" }).log.data);
    return { committed };
  }
}

/** A write that is to happen once, as its handler and its host know it. */
export interface WantedOnce
  extends Pick<Performance, "user" | "input" | "deadlineMs" | "assertFits">,
    Partial<Pick<Performance, "given">> {
  readonly declaration: Pick<HandlerDeclaration, "name" | "replay" | "replayHeaders">;
  /** What keeps callers apart whom keelson does not know. */
  readonly anonymousAs?: string;
}

/**
 * Who asks for what, by which ID. With `Idempotency-Key` the same key for another request is an error, with
 * `X-Request-ID`, mostly a correlation ID, another request is another write; nobody who is not
 * signed in can come across another's answer by its key alone.
 */
export async function onceWrite(scope: RequestScope, wanted: WantedOnce, { by, id }: WriteId): Promise<OnceWrite> {
  const { declaration, user, input, given, deadlineMs, assertFits, anonymousAs = "" } = wanted;
  const { runtime, log } = scope;
  const fingerprint = fingerprintOf(declaration.name, input, given);
  const isKnown = user.id !== undefined;
  const comparesFingerprint = by === "idempotency-key" && isKnown;
  const who = isKnown ? ["user", String(user.tenantId), String(user.id)] : ["anonymous", anonymousAs];
  const key = claimKey(["write", by, ...who, declaration.name, ...(comparesFingerprint ? [] : [fingerprint])], id);
  const cipher =
    declaration.replay === "encrypted"
      ? answerCipher(runtime.secrets, [runtime.tableName(onceTable.name), key.partition, key.sort])
      : undefined;
  // Before anything is done: what cannot be sealed could not be stored.
  if (cipher !== undefined) await runtime.secrets.active();
  return {
    key,
    fingerprint,
    comparesFingerprint,
    replayedHeaders: declaration.replayHeaders ?? [],
    cipher,
    deadlineMs,
    log,
    assertFits: (answer) => assertFits?.(answer),
  };
}

/** The response of an answer; one of before says so. */
export function responseOf({ answer, isReplay }: OnceAnswer): HttpResponse {
  const { status, headers, cookies, body } = answer;
  if (!isReplay) return { status, headers: { ...headers }, cookies, body };
  const length = body === undefined ? {} : { "content-length": String(Buffer.byteLength(body)) };
  return { status, headers: { ...headers, ...length, "idempotent-replayed": "true" }, cookies: [], body };
}
