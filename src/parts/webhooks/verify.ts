import { createHmac, timingSafeEqual } from "node:crypto";
import type { WebhookEncoding, WebhookScheme } from "./scheme.ts";
import { formatOf, type Headers, type Refusal, type Sent } from "./signatures.ts";

/** Longest time between a signature and its receipt, in seconds, either way. */
const toleranceSeconds = 300;

export interface Signed {
  readonly headers: Headers;
  readonly body: Uint8Array;
  readonly nowMs: number;
  /** Values of the scheme's secrets. Empty ones verify nothing. */
  readonly secrets: readonly (string | undefined)[];
}

/** `id`: the one that the scheme signs, if any. */
export type Verdict =
  | { readonly kind: "valid"; readonly id: string | undefined }
  | { readonly kind: "refused"; readonly reason: Refusal };

export function verifySignature(scheme: WebhookScheme, delivery: Signed): Verdict {
  const format = formatOf(scheme);
  const keys = delivery.secrets
    .map((secret) => format.key(secret ?? ""))
    .filter(({ length }) => length > 0);
  if (keys.length === 0) return refused("no_secret");
  const claimed = format.read(delivery.headers);
  if (typeof claimed === "string") return refused(claimed);
  const { signatures, before, timestamp, id } = claimed;
  const wrongTime = timestamp === undefined ? undefined : timeProblem(timestamp, delivery.nowMs);
  if (wrongTime !== undefined) return refused(wrongTime);
  const given = signatures.flatMap((text) => bytesOf(text, format.encoding) ?? []);
  if (given.length === 0) return refused("malformed_signature");
  const isSigned = keys.some((key) => {
    const expected = createHmac("sha256", key).update(before).update(delivery.body).digest();
    return given.some((signature) => timingSafeEqual(signature, expected));
  });
  return isSigned ? { kind: "valid", id } : refused("wrong_signature");
}

/**
 * Returns the headers with which a sender signs a body: for tests, and for senders of webhooks.
 * @param secret - the value of the scheme's first secret.
 */
export function writeSignature(
  scheme: WebhookScheme,
  secret: string,
  body: Uint8Array,
  sent: Sent,
): Record<string, string> {
  const format = formatOf(scheme);
  const signature = createHmac("sha256", format.key(secret))
    .update(format.before(sent))
    .update(body)
    .digest(format.encoding);
  return format.write(sent, signature);
}

function refused(reason: Refusal): Verdict {
  return { kind: "refused", reason };
}

function timeProblem(timestamp: string, nowMs: number): Refusal | undefined {
  if (!/^\d{1,12}$/.test(timestamp)) return "malformed_timestamp";
  const ageSeconds = nowMs / 1_000 - Number(timestamp);
  if (ageSeconds > toleranceSeconds) return "too_old";
  return ageSeconds < -toleranceSeconds ? "too_new" : undefined;
}

const forms = { hex: /^[0-9a-f]{64}$/i, base64: /^[A-Za-z0-9+/_-]{43}=?$/ };

/** Returns the 32 bytes of an HMAC-SHA256. */
function bytesOf(text: string, encoding: WebhookEncoding): Buffer | undefined {
  return forms[encoding].test(text) ? Buffer.from(text, encoding) : undefined;
}
