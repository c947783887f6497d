import { hash } from "node:crypto";
import { FrameworkError } from "../../base/errors/errors.ts";
import { lazy } from "../../base/process/lazy.ts";
import type { RequestView } from "../../base/request/request-view.ts";
import { errorResponse } from "../../parts/http/error-response.ts";
import type { HttpRequest, HttpResponse } from "../../parts/http/message.ts";
import { isWebResponse, toResponse } from "../../parts/http/response.ts";
import { readResponse } from "../../parts/http/web-response.ts";
import type { Cause } from "../../parts/messages/cause.ts";
import { saysNotDone, type WriteAnswer } from "../../parts/once/answer.ts";
import { answerCipher } from "../../parts/once/answer-cipher.ts";
import { claimKey } from "../../parts/once/claim.ts";
import type { OnceClaim, RunOutcome } from "../../parts/once/claimed-run.ts";
import { fingerprintOf } from "../../parts/once/fingerprint.ts";
import type { OnceBy, RequiredKey } from "../../parts/once/once-by.ts";
import { checkOutput } from "../ctx/check-output.ts";
import type { HandlerDeclaration } from "../features/handler.ts";
import { onceTable } from "../features/table.ts";
import type { Adapters } from "../runtime/adapters.ts";
import type { RequestScope } from "../runtime/scope.ts";
import { run } from "./run.ts";

/** What runs hooks is loaded with the first write that has any. */
const hooking = lazy(() => import("./write-hooks.ts"));

/** A write that a request asks for; its caller may run it, and its input is accepted. */
export interface RequestedWrite {
  readonly declaration: HandlerDeclaration;
  readonly request: Pick<HttpRequest, "headers" | "assertFits">;
  readonly input: unknown;
  /** Reads the input again, as it was before its schema. */
  readonly rawInput: () => unknown;
  /** Makes the request as handlers see it, where there is one. */
  readonly view?: () => RequestView;
  /** A HEAD request. */
  readonly head: boolean;
}

/** Runs a write and makes a response of what it returns; one that was done before gives its answer again. */
export async function runWrite(
  scope: RequestScope,
  adapters: Adapters,
  write: RequestedWrite,
): Promise<HttpResponse> {
  const { requestId } = scope;
  const { declaration, request, input, rawInput, view, head } = write;
  const { environment } = scope.runtime;
  const shape = {
    kind: "write",
    head,
    development: environment === "development",
    status: declaration.status,
  } as const;
  let read:
    | { readonly response: Response; readonly result: ReturnType<typeof readResponse> }
    | undefined;
  /** A body is read once: a handler whose commit has failed may return the same `Response`. */
  const receive = (returned: unknown): unknown => {
    let result = returned;
    if (isWebResponse(returned)) {
      if (read?.response !== returned)
        read = { response: returned, result: readResponse(returned, "write") };
      result = read.result;
    }
    return declaration.output === undefined ? result : checkOutput(declaration, result, scope);
  };
  let made: WriteAnswer | undefined;
  /** The answer of a handler that came to its end; where its result is none, the 500 of that, since what was done is done. */
  const doneAnswer = (result: unknown): WriteAnswer => {
    if (made !== undefined) return made;
    try {
      made = toResponse(result, shape) as WriteAnswer; // Safe: a write's body is never a stream.
    } catch (error) {
      const facts = { requestId, environment, accept: request.headers["accept"], head };
      const { response, log } = errorResponse(error, facts);
      scope.log[log.level]("request.failed", log.data);
      made = { ...(response as WriteAnswer), isDone: true };
    }
    return made;
  };
  const hooked = scope.runtime.server.registry.hooks.get(declaration.name);
  const hooks =
    hooked === undefined
      ? undefined
      : (hooking.value ?? (await hooking.open())).createWriteHooks(
          scope,
          declaration,
          hooked,
          rawInput,
        );
  let accepted = input;
  const isClaimable = declaration.isClaimable?.(input) ?? true;
  const { headers, assertFits } = request;
  const ended = await run(scope, adapters, {
    logPrefix: "once",
    claim: isClaimable
      ? await writeClaim(scope, { declaration, headers, input, rawInput, assertFits })
      : undefined,
    cause: causeOf(scope),
    request: view,
    hooks: hooks && {
      before: async (ctx) => {
        accepted = await hooks.before(ctx, input);
      },
      itemsOf: hooks.itemsOf,
    },
    handle: (ctx) => declaration.run(ctx, accepted),
    receive,
    answerOf: doneAnswer,
    committedAnswer: (result) => toResponse(result, shape) as WriteAnswer, // safe: as above
  });
  const outcome = ended.kind === "done" ? { ...ended, answer: doneAnswer(ended.result) } : ended;
  const isNoted =
    outcome.kind === "committed" ||
    (outcome.kind === "done" && outcome.isNoted && !saysNotDone(outcome.answer));
  if (isNoted && hooks !== undefined) await hooks.after();
  return responseOf(outcome);
}

/** What events and jobs of a request say of it. */
export function causeOf({
  requestId,
  user: { id, tenantId },
}: RequestScope): Omit<Cause, "originator"> {
  return { causedBy: requestId, origRequestId: requestId, tenantId, userId: id };
}

/** A write that is to happen once, as its handler and its host know it. */
export interface WantedClaim extends Pick<HttpRequest, "headers" | "assertFits"> {
  readonly declaration: Pick<HandlerDeclaration, "name" | "once" | "replay" | "replayHeaders">;
  readonly input: unknown;
  readonly rawInput?: RequestedWrite["rawInput"];
  /** Tells callers apart whom keelson does not know. */
  readonly anonymousAs?: string;
}

/**
 * Who asks for what, by which ID; `undefined` where nothing says that a repeat is one. With `Idempotency-Key` the same key for another request is an error, with
 * `X-Request-ID`, mostly a correlation ID, another request is another write. A caller who is not signed in never gets the
 * answer of another by its key alone.
 */
export async function writeClaim(
  scope: RequestScope,
  wanted: WantedClaim,
): Promise<OnceClaim | undefined> {
  const { declaration, headers, input, rawInput, assertFits, anonymousAs = "" } = wanted;
  const { runtime, requestId, user, deadlineMs } = scope;
  const isKnown = user.id !== undefined;
  const once = declaration.once ?? runtime.server.options.once?.key ?? "either";
  const given = writeIdOf(headers, { requestId, once, isSignedIn: isKnown });
  if (given === undefined) return undefined;
  const { by, id } = given;
  const fingerprint = fingerprintOf(declaration.name, input, rawInput);
  const comparesFingerprint = by === "idempotency-key" && isKnown;
  const who = isKnown
    ? ["user", String(user.tenantId), String(user.id)]
    : ["anonymous", anonymousAs];
  const namespace = [
    "write",
    by,
    ...who,
    declaration.name,
    ...(comparesFingerprint ? [] : [fingerprint]),
  ];
  const key = claimKey(namespace, id, user.tenantId);
  const cipher =
    declaration.replay === "encrypted"
      ? answerCipher(runtime.secrets, [runtime.tableName(onceTable.name), key.partition, key.sort])
      : undefined;
  // Before anything is done: what cannot be sealed could not be stored.
  if (cipher !== undefined) await runtime.secrets.active();
  return {
    kind: "write",
    key,
    fingerprint,
    comparesFingerprint,
    replayedHeaders: declaration.replayHeaders ?? [],
    retentionMs: keptMs(once),
    cipher,
    deadlineMs,
    assertFits,
  };
}

/** The ID that a write is claimed by. */
export interface WriteId {
  /** Which header it came in; each has a namespace of its own. */
  readonly by: "idempotency-key" | "x-request-id";
  readonly id: string;
}

/** What decides which ID counts, beside the headers. */
interface AskedOnce {
  readonly requestId: string;
  readonly once: OnceBy | RequiredKey;
  readonly isSignedIn: boolean;
}

/** The parameters of an item in RFC 8941. None has a meaning for this header, and unknown ones are ignored. */
const parameters =
  /(?:; *[a-z*][a-z0-9_.*-]*(?:=(?:"(?:[ !#-[\]-~]|\\["\\])*"|[!#-+\-./0-9:<-[\]-~]+))?)*/;
/** Visible ASCII without what separates in a structured field; several joined by `, ` are none. */
const bare = /^[!#-+\-./0-9:<-[\]-~]{1,255}$/;
/** A string of RFC 8941: quoted, `"` and `\` after a `\`. */
const quoted = new RegExp(`^"((?:[ !#-[\\]-~]|\\\\["\\\\]){1,255})"${parameters.source}$`);

/** What an `Idempotency-Key` may be, as one pattern. */
export const idempotencyKeyPattern = `${bare.source}|${quoted.source}`;

/**
 * The ID that counts (specification 6.6): `Idempotency-Key` before `X-Request-ID`; `undefined` where
 * the client sent none. A request ID that was replaced in the log still counts, by its hash.
 *
 * @param isSignedIn - a request ID without a signed-in caller claims nothing.
 * @throws FrameworkError `malformed_request` for an `Idempotency-Key` that is none, `idempotency_key_required` where the write
 * asks for one.
 */
export function writeIdOf(
  headers: Readonly<Record<string, string>>,
  { requestId, once, isSignedIn }: AskedOnce,
): WriteId | undefined {
  if (once === false) return undefined;
  const key = headers["idempotency-key"];
  if (key !== undefined) return { by: "idempotency-key", id: parseKey(key) };
  if (typeof once === "object") {
    const message =
      "This request needs an Idempotency-Key; send a new UUID with it, and the same one with each retry";
    throw new FrameworkError("idempotency_key_required", message);
  }
  const given = headers["x-request-id"];
  if (given === undefined || once === "idempotency-key" || !isSignedIn) return undefined;
  const id = given === requestId ? given : `sha256:${hash("sha256", given, "base64url")}`;
  return { by: "x-request-id", id };
}

/** For how long a retry gets the answer, in milliseconds, where the write says so. */
function keptMs(once: OnceBy | RequiredKey): number | undefined {
  return typeof once === "object" && once.keepSeconds !== undefined
    ? once.keepSeconds * 1000
    : undefined;
}

function parseKey(header: string): string {
  const text = header.trim();
  const [, inner] = quoted.exec(text) ?? [];
  if (inner !== undefined) return inner.replaceAll(/\\(["\\])/g, "$1");
  if (bare.test(text)) return text; // without parameters: `a;b` and `a;c` may be meant as two keys
  throw new FrameworkError(
    "malformed_request",
    "The Idempotency-Key is not valid; send 1 to 255 visible ASCII characters, such as a UUID, or a quoted string of as many, which may have spaces",
  );
}

/** The response of a write that came to its end; one of before says so. */
export function responseOf(ended: RunOutcome<unknown>): HttpResponse {
  // Safe: of a write that is claimed, or has committed, there is an answer.
  const { status, headers, cookies, body } = (ended as { readonly answer: WriteAnswer }).answer;
  if (ended.kind !== "replayed") return { status, headers: { ...headers }, cookies, body };
  const length = body === undefined ? {} : { "content-length": String(Buffer.byteLength(body)) };
  return {
    status,
    headers: { ...headers, ...length, "idempotent-replayed": "true" },
    cookies: [],
    body,
  };
}
