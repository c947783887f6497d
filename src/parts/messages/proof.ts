import { createHmac, type KeyObject, timingSafeEqual } from "node:crypto";
import { isKeyName } from "../../base/secrets/key-ring.ts";
import type { Cause } from "./cause.ts";

/** How messages prove their origin. */
export type MessageProof = "off" | "sign" | "require";

/** What a server does about them, with a key ring or without, where its options say so or nothing. */
export function proofMode(proof: MessageProof | undefined, hasRing: boolean): MessageProof {
  return proof ?? (hasRing ? "sign" : "off");
}

/** Proves that the sender of a message has a key of the ring. */
export interface Proof {
  /** The name of the key of the ring that the signing key is derived from. */
  readonly key: string;
  /** HMAC-SHA-256 in Base64url. */
  readonly mac: string;
}

/** What a proof is over: all that a consumer goes by. */
export interface ProvenMessage extends Cause {
  readonly kind: "event" | "job";
  /** Whose it is: the `source` on the bus of the server that made it. */
  readonly source: string;
  /** The type of an event, the name of a job. */
  readonly name: string;
  readonly id: string;
  /** As JSON gives it. */
  readonly payload: unknown;
}

/** @throws RangeError where the payload is nested too deeply. */
export function proofOf(message: ProvenMessage, key: string, signingKey: KeyObject): Proof {
  return { key, mac: macOf(message, signingKey).toString("base64url") };
}

/** Whether the MAC is the one of the message. */
export function isProven(message: ProvenMessage, { mac }: Proof, signingKey: KeyObject): boolean {
  let expected: Buffer;
  try {
    expected = macOf(message, signingKey);
  } catch {
    return false; // a number or a depth that nothing of ours has
  }
  return timingSafeEqual(Buffer.from(mac, "base64url"), expected);
}

/** The proof of a message as it came; `undefined` where it has another shape. */
export function readProof(value: unknown): Proof | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  const { key, mac } = value as Readonly<Record<string, unknown>>; // safe: any member of an object may be read
  if (typeof key !== "string" || !isKeyName(key)) return undefined;
  return typeof mac === "string" && /^[A-Za-z0-9_-]{43}$/.test(mac) ? { key, mac } : undefined;
}

/**
 * Over fields with their lengths, not over the text: EventBridge writes an event's JSON again in its own way.
 * Each has its place, and absent is another than empty.
 */
function macOf(message: ProvenMessage, signingKey: KeyObject): Buffer {
  const { kind, source, name, id, causedBy, origRequestId, tenantId, userId, payload, originator } =
    message;
  const fields = [
    "1",
    kind,
    source,
    name,
    id,
    causedBy,
    origRequestId,
    tenantId,
    userId,
    sortedJson(payload),
  ];
  // Only where it says something: all other messages keep the proof that every version makes.
  if (originator !== undefined) fields.push(originator);
  const mac = createHmac("sha256", signingKey);
  for (const field of fields)
    mac.update(field === undefined ? "-" : `${Buffer.byteLength(field)}:${field}`);
  return mac.digest();
}

/** JSON with members in order of their names. @throws RangeError where it is nested too deeply, TypeError for numbers that JSON has not. */
function sortedJson(value: unknown): string {
  return JSON.stringify(value, (_name, part: unknown) => {
    // 1e999 is read as Infinity, and -0 as it is: written, they would be null and 0.
    if (typeof part === "number" && (!Number.isFinite(part) || Object.is(part, -0)))
      throw new TypeError("not written as it is");
    if (typeof part !== "object" || part === null || Array.isArray(part)) return part;
    return Object.fromEntries(
      Object.entries(part).sort(([one], [other]) => (one < other ? -1 : 1)),
    );
  });
}
