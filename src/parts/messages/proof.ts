import { createHmac, type KeyObject, timingSafeEqual } from "node:crypto";
import { isKeyName } from "../../base/secrets/key-ring.ts";
import type { Cause, Fields, Proof } from "./envelope.ts";

/**
 * Mode of message proofs: `off`; `sign` signs outgoing messages; `require` also requires a proof on
 * received messages.
 */
export type MessageProof = "off" | "sign" | "require";

export function proofMode(proof: MessageProof | undefined, hasRing: boolean): MessageProof {
  return proof ?? (hasRing ? "sign" : "off");
}

/** Content covered by a proof: every field that a consumer relies on. */
export interface ProvenMessage extends Cause {
  readonly kind: "event" | "job";
  readonly source: string;
  /** Type of an event, or name of a job. */
  readonly name: string;
  readonly id: string;
  readonly payload: unknown;
}

/** @throws RangeError if the payload is nested too deeply. */
export function proofOf(message: ProvenMessage, key: string, signingKey: KeyObject): Proof {
  return { key, mac: macOf(message, signingKey).toString("base64url") };
}

export function isProven(message: ProvenMessage, { mac }: Proof, signingKey: KeyObject): boolean {
  let expected: Buffer;
  try {
    expected = macOf(message, signingKey);
  } catch {
    return false; // keelson never writes such a number or depth
  }
  return timingSafeEqual(Buffer.from(mac, "base64url"), expected);
}

export function readProof(value: unknown): Proof | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  const { key, mac } = value as Fields; // safe: any member of an object may be read
  if (typeof key !== "string" || !isKeyName(key)) return undefined;
  return typeof mac === "string" && /^[A-Za-z0-9_-]{43}$/.test(mac) ? { key, mac } : undefined;
}

/**
 * Computes the MAC over the fields with their lengths, not over the message text, because
 * EventBridge reformats an event's JSON. The order of the fields is fixed, and an absent field
 * differs from an empty one.
 */
function macOf(message: ProvenMessage, signingKey: KeyObject): Buffer {
  const { kind, source, name, id, causedBy, origRequestId, tenantId, userId, originator } = message;
  const cause = [causedBy, origRequestId, tenantId, userId];
  const fields = ["1", kind, source, name, id, ...cause, sortedJson(message.payload)];
  // Added only if present, so that older versions compute the same proof for other messages.
  if (originator !== undefined) fields.push(originator);
  const mac = createHmac("sha256", signingKey);
  for (const field of fields)
    mac.update(field === undefined ? "-" : `${Buffer.byteLength(field)}:${field}`);
  return mac.digest();
}

/** @throws RangeError if nested too deeply; TypeError for infinite numbers and -0. */
function sortedJson(value: unknown): string {
  return JSON.stringify(value, (_name, part: unknown) => {
    // `JSON.parse` reads 1e999 as Infinity and keeps -0; JSON would have null and 0 for them.
    if (typeof part === "number" && (!Number.isFinite(part) || Object.is(part, -0)))
      throw new TypeError("JSON would change it");
    if (typeof part !== "object" || part === null || Array.isArray(part)) return part;
    return Object.fromEntries(
      Object.entries(part).sort(([one], [other]) => (one < other ? -1 : 1)),
    );
  });
}
