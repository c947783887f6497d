import { createHmac, timingSafeEqual } from "node:crypto";
import type { WebhookEncoding, WebhookScheme } from "./scheme.ts";
import { formatOf, type Headers, type Refusal, type Sent } from "./signatures.ts";

/** Longest time between a signature and its receipt, in seconds, either way. */
const toleranceSeconds = 300;

export interface Refused {
  readonly kind: "refused";
  readonly reason: Refusal;
}

/** The signature of a delivery that has yet to be compared. */
export interface ReadSignature {
  readonly kind: "read";
  readonly signatures: readonly Buffer[];
  /** The signed part before the body. */
  readonly before: string;
  /** The ID that the scheme signs, if any. */
  readonly id: string | undefined;
}

/** Checks the form of the headers and the time, before any secret is read. */
export function readSignature(
  scheme: WebhookScheme,
  headers: Headers,
  nowMs: number,
): ReadSignature | Refused {
  const { read, encoding } = formatOf(scheme);
  const claimed = read(headers);
  if (typeof claimed === "string") return refused(claimed);
  const { before, timestamp, id } = claimed;
  const wrongTime = timestamp === undefined ? undefined : timeProblem(timestamp, nowMs);
  if (wrongTime !== undefined) return refused(wrongTime);
  const signatures = claimed.signatures.flatMap((text) => bytesOf(text, encoding) ?? []);
  return signatures.length === 0
    ? refused("malformed_signature")
    : { kind: "read", signatures, before, id };
}

export type Verdict = { readonly kind: "valid"; readonly id: string | undefined } | Refused;

/** @param secrets - values of the scheme's secrets. Empty ones verify nothing. */
export function verifySignature(
  scheme: WebhookScheme,
  { signatures, before, id }: ReadSignature,
  body: Uint8Array,
  secrets: readonly (string | undefined)[],
): Verdict {
  const format = formatOf(scheme);
  const keys = secrets.map((secret) => format.key(secret ?? "")).filter(({ length }) => length > 0);
  if (keys.length === 0) return refused("no_secret");
  const isSigned = keys.some((key) => {
    const expected = createHmac("sha256", key).update(before).update(body).digest();
    return signatures.some((signature) => timingSafeEqual(signature, expected));
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

function refused(reason: Refusal): Refused {
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
