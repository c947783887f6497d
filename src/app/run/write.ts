import { hash } from "node:crypto";
import { FrameworkError } from "../../base/errors/errors.ts";
import { lazy } from "../../base/process/lazy.ts";
import type { RequestView } from "../../base/request/request-view.ts";
import { errorResponse } from "../../parts/http/error-response.ts";
import type { HttpRequest, HttpResponse } from "../../parts/http/message.ts";
import { isWebResponse, toResponse } from "../../parts/http/response.ts";
import type { Cause } from "../../parts/messages/envelope.ts";
import { answerCipher, saysNotDone, type WriteAnswer } from "../../parts/once/answer.ts";
import { claimKey } from "../../parts/once/claim.ts";
import type { RunOutcome } from "../../parts/once/claimed-run.ts";
import type { OnceClaim } from "../../parts/once/claims.ts";
import { fingerprintOf } from "../../parts/once/fingerprint.ts";
import { type OnceRule, onceRule } from "../../parts/once/once-by.ts";
import { reader, receiveResult } from "../ctx/check-output.ts";
import { run } from "../ctx/run.ts";
import type { HandlerDeclaration } from "../handlers/handler.ts";
import { onceTable } from "../handlers/table.ts";
import type { Adapters } from "../runtime/adapters.ts";
import type { RequestScope } from "../runtime/scope.ts";
import type { WriteHooks } from "./write-hooks.ts";

const hooking = lazy(() => import("./write-hooks.ts"));

/** Its caller is authorized, and its input is valid. */
export interface RequestedWrite {
  readonly declaration: HandlerDeclaration;
  readonly request: Pick<HttpRequest, "headers" | "assertFits">;
  readonly input: unknown;
  /** Reads the input as it was before its validation. */
  readonly rawInput: () => unknown;
  /** Absent if there is no request. */
  readonly view?: () => RequestView;
  readonly head: boolean;
  /** Default: the claim of the request's headers. */
  readonly claim?: OnceClaim;
}

/** Runs a write. A repeat gets the stored answer. */
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
  let read: ReturnType<typeof reader> | undefined;
  const receive = (returned: unknown) => {
    if (declaration.output === undefined && !isWebResponse(returned)) return returned;
    read ??= reader(declaration, scope);
    return receiveResult(declaration, returned, scope, { read });
  };
  let made: WriteAnswer | undefined;
  let committed: unknown;
  /** An invalid result gets a 500 that is marked as done, because the effects have happened. */
  const doneAnswer = (result: unknown): WriteAnswer => {
    if (made !== undefined) return made;
    try {
      made = toResponse(result, shape) as WriteAnswer; // safe: a write's body is never a stream
    } catch (error) {
      const facts = { requestId, environment, accept: request.headers["accept"], head };
      const { response, log } = errorResponse(error, facts);
      scope.log[log.level]("request.failed", log.data);
      made = { ...(response as WriteAnswer), isDone: true };
    }
    return made;
  };
  const hooked = scope.runtime.server.registry.hooks.get(declaration.name);
  let hooks: WriteHooks | undefined;
  if (hooked !== undefined) {
    const { createWriteHooks } = hooking.value ?? (await hooking.open());
    hooks = createWriteHooks(scope, declaration, hooked, rawInput);
  }
  const isClaimable = declaration.isClaimable?.(input) ?? true;
  const { headers, assertFits } = request;
  const cause = causeOf(scope);
  const ended = await run(scope, adapters, {
    logPrefix: "once",
    claim:
      write.claim ??
      (isClaimable
        ? await writeClaim(scope, { declaration, headers, input, rawInput, assertFits })
        : undefined),
    cause,
    request: view,
    hooks,
    input,
    handle: declaration.run,
    receive,
    answerOf: doneAnswer,
    committing: async (returned) => {
      const result = await receive(returned);
      committed = result;
      return { result, answer: toResponse(result, shape) as WriteAnswer }; // safe: a write's body is never a stream
    },
  });
  const outcome = ended.kind === "done" ? { ...ended, answer: doneAnswer(ended.result) } : ended;
  const isNoted =
    outcome.kind === "committed" ||
    (outcome.kind === "done" && outcome.isNoted && !saysNotDone(outcome.answer));
  if (isNoted && hooks !== undefined) await hooks.after();
  return declaration.revealed === undefined || outcome.kind === "replayed"
    ? responseOf(outcome)
    : toResponse(declaration.revealed(committed), shape);
}

export function causeOf({
  requestId,
  user: { id, tenantId },
}: RequestScope): Omit<Cause, "originator"> {
  return { causedBy: requestId, origRequestId: requestId, tenantId, userId: id };
}

export interface WantedClaim extends Pick<HttpRequest, "headers" | "assertFits"> {
  readonly declaration: Pick<
    HandlerDeclaration,
    "name" | "once" | "onceRule" | "replay" | "replayHeaders"
  >;
  readonly input: unknown;
  readonly rawInput?: RequestedWrite["rawInput"];
  /** Distinguishes callers who are not signed in. */
  readonly anonymousAs?: string;
}

/**
 * Builds the claim of a write; `undefined` if nothing identifies a repeat. A different request with
 * the same `Idempotency-Key` is refused. With the same `X-Request-ID`, usually a correlation ID, it
 * is a different write, as is any different request of a caller who is not signed in.
 */
export async function writeClaim(
  scope: RequestScope,
  wanted: WantedClaim,
): Promise<OnceClaim | undefined> {
  const { declaration, headers, input, rawInput, assertFits, anonymousAs = "" } = wanted;
  const { runtime, requestId, user, deadlineMs } = scope;
  const isKnown = user.id !== undefined;
  const once = declaration.onceRule ?? onceRule(declaration.once, runtime.server.options.once);
  if (once === false) return undefined;
  const given = writeIdOf(headers, requestId, once, isKnown);
  if (given === undefined) return undefined;
  const { by, id } = given;
  const retentionMs = once.keepSeconds && once.keepSeconds * 1000;
  const fingerprint = fingerprintOf(declaration.name, input, rawInput);
  const comparesFingerprint = by === "idempotency-key" && isKnown;
  const who = isKnown
    ? ["user", String(user.tenantId), String(user.id)]
    : ["anonymous", anonymousAs];
  const what = comparesFingerprint ? [declaration.name] : [declaration.name, fingerprint];
  const key = claimKey(["write", by, ...who, ...what], id, user.tenantId);
  const cipherOf = () =>
    answerCipher(runtime.secrets, [runtime.tableName(onceTable.name), key.partition, key.sort]);
  const cipher = declaration.replay === "encrypted" ? cipherOf() : undefined;
  const opener = { open: (data: Uint8Array) => cipherOf().open(data) };
  // Before the handler runs, because an answer that cannot be encrypted could not be stored.
  if (cipher !== undefined) await runtime.secrets.active();
  const replayedHeaders = declaration.replayHeaders ?? [];
  const claim = { key, fingerprint, comparesFingerprint, replayedHeaders, cipher, opener };
  return { kind: "write", ...claim, retentionMs, deadlineMs, assertFits };
}

export interface WriteId {
  /** The same ID in the other header is a different write. */
  readonly by: "idempotency-key" | "x-request-id";
  readonly id: string;
}

/** Parameters of an RFC 8941 item, which are ignored, because the header defines none. */
const parameters =
  /(?:; *[a-z*][a-z0-9_.*-]*(?:=(?:"(?:[ !#-[\]-~]|\\["\\])*"|[!#-+\-./0-9:<-[\]-~]+))?)*/;
/** Unquoted key: visible ASCII without separators, and so not several keys joined by `, `. */
const bare = /^[!#-+\-./0-9:<-[\]-~]{1,255}$/;
/** Key as a string of RFC 8941: quoted, with `"` and `\` escaped by a `\`. */
const quoted = new RegExp(`^"((?:[ !#-[\\]-~]|\\\\["\\\\]){1,255})"${parameters.source}$`);

export const idempotencyKeyPattern = `${bare.source}|${quoted.source}`;

/**
 * Returns the ID that claims a write (specification 6.6): `Idempotency-Key` before `X-Request-ID`.
 * An invalid request ID, which the log replaces, is hashed. Without a signed-in caller, a request
 * ID claims nothing.
 *
 * @throws FrameworkError `malformed_request` for an invalid `Idempotency-Key`,
 * `idempotency_key_required` if the write requires a key.
 */
export function writeIdOf(
  headers: Readonly<Record<string, string>>,
  requestId: string,
  once: Pick<OnceRule, "key">,
  isSignedIn: boolean,
): WriteId | undefined {
  const key = headers["idempotency-key"];
  if (key !== undefined) return { by: "idempotency-key", id: parseKey(key) };
  if (once.key === "required") {
    const message =
      "This request needs an Idempotency-Key; send a new UUID with it, and the same one with each retry";
    throw new FrameworkError("idempotency_key_required", message);
  }
  const given = headers["x-request-id"];
  if (given === undefined || once.key === "idempotency-key" || !isSignedIn) return undefined;
  const id = given === requestId ? given : `sha256:${hash("sha256", given, "base64url")}`;
  return { by: "x-request-id", id };
}

function parseKey(header: string): string {
  const text = header.trim();
  const [, inner] = quoted.exec(text) ?? [];
  if (inner !== undefined) return inner.replaceAll(/\\(["\\])/g, "$1");
  if (bare.test(text)) return text; // no parameters: `a;b` and `a;c` may be two different keys
  throw new FrameworkError(
    "malformed_request",
    "The Idempotency-Key is not valid; send 1 to 255 visible ASCII characters, such as a UUID, or a quoted string of as many, which may have spaces",
  );
}

export function responseOf(ended: RunOutcome<unknown>): HttpResponse {
  // The cast is safe: a claimed or committed write has an answer.
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
