import { hash } from "node:crypto";
import { describeError } from "../../base/errors/describe.ts";
import { AccessDeniedError, FrameworkError, isTypedError } from "../../base/errors/errors.ts";
import { anonymous, isIdentifier, type User } from "../../base/identity/access.ts";
import { type ReceivedBody, readInput, validateInput } from "../../parts/http/input.ts";
import { type HttpRequest, type HttpResponse, requestView } from "../../parts/http/message.ts";
import { toResponse } from "../../parts/http/response.ts";
import { claimKey } from "../../parts/once/claim.ts";
import type { OnceClaim } from "../../parts/once/claims.ts";
import { isScheme, type WebhookScheme, type WebhookVerifier } from "../../parts/webhooks/scheme.ts";
import { formatOf } from "../../parts/webhooks/signatures.ts";
import {
  type Refused,
  readSignature,
  type Verdict,
  verifySignature,
} from "../../parts/webhooks/verify.ts";
import { createContext } from "../ctx/context.ts";
import type { HandlerDeclaration, WebhookDeclaration } from "../handlers/handler.ts";
import type { Adapters } from "../runtime/adapters.ts";
import type { RequestScope } from "../runtime/scope.ts";
import { assertActive } from "./active-tenant.ts";
import { eventId, eventTenant } from "./event-facts.ts";
import { warnOfUndeclaredStatus } from "./failed-request.ts";
import { readParts } from "./multipart-form.ts";
import { runWrite } from "./write.ts";

/** Retention of the claim of a webhook, in milliseconds: 30 days. */
const retentionMs = 30 * 24 * 3_600_000;

interface ReceivedWebhook {
  readonly declaration: HandlerDeclaration;
  readonly webhook: WebhookDeclaration;
  readonly request: HttpRequest;
  readonly params: Record<string, unknown>;
}

/**
 * Answers a webhook: checks signature, body and tenant, and runs the handler as a write that the
 * event claims.
 *
 * @throws FrameworkError `signature_invalid`; the errors of a body and a schema; the errors of
 * {@link runWrite}, from 500 up if `tenant`, `id` or the handler threw them, so that the sender
 * tries again.
 */
export async function receiveWebhook(
  scope: RequestScope,
  received: ReceivedWebhook,
): Promise<HttpResponse> {
  const { runtime } = scope;
  const { declaration, webhook, request } = received;
  const bytes = await request.readBody(declaration.bodyBytes ?? runtime.bodyLimitBytes);
  const adapters = runtime.adapters.all.value ?? (await runtime.adapters.openFor(declaration));
  const verdict = await verified(scope, adapters, received, bytes);
  if (verdict.kind === "refused") throw refused(scope, verdict);
  const greeting = isScheme(webhook.verify)
    ? formatOf(webhook.verify).greeting?.(bytes)
    : undefined;
  if (greeting !== undefined) return plain(greeting);
  const form = declaration.body === "multipart" ? await readParts(request, bytes) : undefined;
  const rawInput = () => bodyOf(received, { bytes, form });
  const input = await validateInput(declaration.input, rawInput());
  const tenantId = await resendably(() => tenantOf(received, input));
  if (tenantId === undefined) return plain(undefined);
  await enter(scope, tenantId);
  await runtime.tenantsInFlight?.enter(scope, declaration);
  if (runtime.isLimited) {
    const limits = await runtime.limits.open();
    await limits.admit(scope, request, declaration, true);
  }
  const view = () => requestView(request, bytes);
  return await resendably(async () => {
    const claim = claimOf(scope, received, idOf(received, input, verdict.id, bytes));
    const write = { declaration, request, input, rawInput, view, head: false, claim };
    const response = await runWrite(scope, adapters, write);
    warnOfUndeclaredStatus(scope, declaration.status, response.status);
    return response;
  });
}

async function verified(
  scope: RequestScope,
  adapters: Adapters,
  { webhook: { verify, tenant }, request, params }: ReceivedWebhook,
  bytes: Uint8Array,
): Promise<VerdictWithCause> {
  const named = typeof tenant === "object" ? params[tenant.param] : undefined;
  if (typeof tenant === "object" && !isIdentifier(named))
    return { kind: "refused", reason: "malformed_tenant" };
  if (!isScheme(verify)) return byFunction(scope, verify, request, params, bytes);
  const signature = readSignature(verify, request.headers, scope.runtime.clock.now());
  if (signature.kind === "refused") return signature;
  const secrets = await secretsOf(scope, adapters, verify, named as string | undefined); // safe: checked above
  return verifySignature(verify, signature, bytes, secrets);
}

/** `cause`: the error of a function that verifies. */
type VerdictWithCause = Verdict & { readonly cause?: unknown };

async function byFunction(
  { signal }: RequestScope,
  verify: WebhookVerifier,
  { headers }: HttpRequest,
  params: Record<string, unknown>,
  rawBody: Uint8Array,
): Promise<VerdictWithCause> {
  const ofPath = Object.freeze({ ...params }) as Readonly<Record<string, string>>; // safe: parameters of a path are strings
  try {
    // In plain JavaScript, a function may return anything.
    const isValid: unknown = await verify({
      headers: Object.freeze({ ...headers }),
      rawBody,
      params: ofPath,
      signal,
    });
    if (isValid === true) return { kind: "valid", id: undefined };
    return { kind: "refused", reason: "verify_returned_false" };
  } catch (cause) {
    if (isTypedError(cause) && cause.status >= 500) throw cause;
    return { kind: "refused", reason: "verify_threw", cause };
  }
}

/**
 * Reads the secrets, perhaps of the tenant that the path names. Anyone who sends headers of the right
 * form causes this read.
 */
async function secretsOf(
  scope: RequestScope,
  adapters: Adapters,
  { secrets }: WebhookScheme,
  tenantId: string | undefined,
): Promise<readonly (string | undefined)[]> {
  const keys = secrets.filter((secret) => typeof secret !== "string");
  if (keys.length === 0) return secrets as readonly string[]; // safe: none is a key
  scope.user = userOf(tenantId);
  try {
    const ctx = createContext(scope, adapters, {});
    return await Promise.all(
      secrets.map((secret) =>
        typeof secret === "string" ? secret : ctx.config<string | undefined>(secret),
      ),
    );
  } finally {
    scope.user = anonymous;
  }
}

/** The same for every reason, which a stranger must not learn. */
function refused(
  scope: RequestScope,
  { reason, cause }: Refused & { readonly cause?: unknown },
): FrameworkError {
  const { environment } = scope.runtime;
  const error =
    cause === undefined ? {} : describeError(cause, { requestId: "", environment }).log.data;
  scope.log.warn("webhook.refused", { reason, ...error });
  const headers = { "www-authenticate": "Signature" };
  return new FrameworkError("signature_invalid", "The signature is not valid", { headers });
}

function bodyOf(
  { declaration, request: { headers, method } }: ReceivedWebhook,
  body: ReceivedBody,
): Record<string, unknown> {
  const request = { headers, method, query: "" };
  return readInput(request, declaration, Object.create(null), body);
}

function plain(result: unknown): HttpResponse {
  return toResponse(result, { kind: "write", head: false, development: false });
}

/** @throws Error if the value is not a tenant. */
async function tenantOf(
  { declaration, webhook: { tenant }, params }: ReceivedWebhook,
  event: unknown,
): Promise<string | undefined> {
  if (typeof tenant === "object") return String(params[tenant.param]);
  return eventTenant(declaration.name, await tenant(event), Error);
}

/**
 * @throws AccessDeniedError in a process that is isolated to another tenant; the errors of
 * {@link assertActive}.
 */
async function enter(scope: RequestScope, tenantId: string): Promise<void> {
  const { isolatedTo } = scope;
  scope.user = userOf(tenantId);
  if (isolatedTo !== undefined && isolatedTo !== tenantId)
    throw new AccessDeniedError("tenant.isolation");
  await assertActive(scope);
}

function userOf(tenantId: string | undefined): User {
  return Object.freeze({ ...anonymous, tenantId });
}

interface EventId {
  /** The same ID from another place is another event. */
  readonly by: "id" | "signed" | "body";
  readonly id: string;
}

/** @throws Error if the ID is not a string. */
function idOf(
  { declaration, webhook }: ReceivedWebhook,
  event: unknown,
  signed: string | undefined,
  bytes: Uint8Array,
): EventId {
  if (webhook.id !== undefined)
    return { by: "id", id: eventId(declaration.name, webhook.id(event), Error) };
  if (signed !== undefined) return { by: "signed", id: signed };
  return { by: "body", id: hash("sha256", bytes, "base64url") };
}

function claimOf(
  { user: { tenantId }, deadlineMs }: RequestScope,
  { declaration, request: { assertFits } }: ReceivedWebhook,
  { by, id }: EventId,
): OnceClaim {
  return {
    kind: "write",
    key: claimKey(["webhook", declaration.name, String(tenantId), by], id, tenantId),
    replayedHeaders: [],
    retentionMs,
    deadlineMs,
    assertFits,
  };
}

/** Runs code of the application. @throws its error, from 500 up: see {@link resendable}. */
async function resendably<Result>(run: () => Promise<Result>): Promise<Result> {
  try {
    return await run();
  } catch (error) {
    throw resendable(error);
  }
}

/** Senders take an error below 500 as final, or switch the webhook off. */
function resendable(error: unknown): unknown {
  const isFinal = isTypedError(error) && error.status < 500;
  if (!isFinal || error.code === "request_in_progress") return error;
  const message = "The webhook was not handled; send it again";
  return new FrameworkError("internal_error", message, { cause: error });
}
