import { createSecretKey, hkdfSync, type KeyObject, randomBytes } from "node:crypto";

/** The keys that open sealed values, and the one that seals new ones. */
export interface KeyRing {
  /** The name of the key that seals. */
  readonly active: string;
  readonly keys: ReadonlyMap<string, KeyObject>;
  /** Keys that were removed, for the messages that they have signed. */
  readonly retired?: ReadonlyMap<string, RetiredKey>;
}

/** What is left of a key that was removed: it verifies proofs, and opens nothing. */
export interface RetiredKey {
  /** As {@link proofKey} has derived it. */
  readonly proof: KeyObject;
  /** From when on it verifies nothing any more, in milliseconds since the epoch. */
  readonly untilMs: number;
}

/** A ring as its parameter holds it: names, and 32 bytes each in Base64. */
export interface KeyRingText {
  readonly active: string;
  readonly keys: Readonly<Record<string, string>>;
  readonly retired?: Readonly<Record<string, RetiredKeyText>> | undefined;
}

/** A retired key as the parameter holds it. */
export interface RetiredKeyText {
  /** The derived key, 32 bytes in Base64. */
  readonly proof: string;
  /** ISO 8601. */
  readonly until: string;
}

/** A job waits for a year at the most until it is due, and then for 14 days in a queue: for so long a retired key verifies. */
const retiredMs = (365 + 14) * 24 * 60 * 60 * 1000;

const keyBytes = 32;
const keyName = /^[A-Za-z0-9._-]{1,64}$/;
const shape = '{ "active": "<name>", "keys": { "<name>": "<32 bytes in Base64>" } }';

/**
 * Reads a ring: `{ "active": "2026", "keys": { "2025": "…", "2026": "…" } }`.
 *
 * @throws TypeError saying what is wrong; nothing of the text is in its message.
 */
export function parseKeyRing(text: string): KeyRing {
  const { active, keys, retired = {} } = parseKeyRingText(text);
  const secretKey = (base64: string) => createSecretKey(Buffer.from(base64, "base64"));
  return {
    active,
    keys: new Map(Object.entries(keys).map(([name, secret]) => [name, secretKey(secret)])),
    retired: new Map(
      Object.entries(retired).map(([name, { proof, until }]) => [
        name,
        { proof: secretKey(proof), untilMs: Date.parse(until) },
      ]),
    ),
  };
}

/** The same, left as text: for the tools that change a ring. */
export function parseKeyRingText(text: string): KeyRingText {
  let ring: unknown;
  try {
    ring = JSON.parse(text);
  } catch {
    // The error's own message would quote the text, which is secret.
    throw new TypeError(`the key ring is not JSON; it has to be ${shape}`);
  }
  if (!isRecord(ring) || !isRecord(ring["keys"]) || typeof ring["active"] !== "string") {
    throw new TypeError(`the key ring has another shape than ${shape}`);
  }
  const { active, keys, retired = {} } = ring;
  if (!isRecord(retired)) throw new TypeError("`retired` of the key ring is not an object");
  for (const name of [...Object.keys(keys), ...Object.keys(retired)]) {
    // A name that is none may be a secret in the wrong place.
    if (!isKeyName(name))
      throw new TypeError("a name in the key ring is not 1 to 64 letters, digits, `.`, `_` or `-`");
  }
  for (const [name, secret] of Object.entries(keys)) {
    if (!isKey(secret))
      throw new TypeError(`the key ${name} of the key ring is not ${keyBytes} bytes in Base64`);
  }
  if (!Object.hasOwn(keys, active))
    throw new TypeError("the active key of the key ring is none of its keys");
  for (const [name, key] of Object.entries(retired)) {
    if (!isRetiredKey(key)) {
      throw new TypeError(
        `the retired key ${name} of the key ring is not { "proof": "<${keyBytes} bytes in Base64>", "until": "<time>" }`,
      );
    }
  }
  // Safe: each was checked above.
  const read = { active, keys: keys as Record<string, string> };
  return ring["retired"] === undefined
    ? read
    : { ...read, retired: retired as Record<string, RetiredKeyText> };
}

/** Makes a key as a ring holds it. */
export function newRingKey(): string {
  return randomBytes(keyBytes).toString("base64");
}

/**
 * The key that signs messages, derived from a key of the ring: whoever has it opens nothing that the ring has sealed. It is
 * stored for retired keys, so what it is derived with never changes.
 */
export function proofKey(ringKey: KeyObject): KeyObject {
  return createSecretKey(
    Buffer.from(hkdfSync("sha256", ringKey, "", "keelson message proof 1", keyBytes)),
  );
}

/** What is left of a key that is removed at `nowMs`. */
export function retiredKey(secret: string, nowMs: number): RetiredKeyText {
  const proof = proofKey(createSecretKey(Buffer.from(secret, "base64")))
    .export()
    .toString("base64");
  return { proof, until: new Date(nowMs + retiredMs).toISOString() };
}

/** The ring without the retired keys that verify nothing any more. */
export function pruned(ring: KeyRingText, nowMs: number): KeyRingText {
  const { retired = {}, ...rest } = ring;
  const left = Object.entries(retired).filter(([, { until }]) => Date.parse(until) > nowMs);
  return left.length === 0 ? rest : { ...rest, retired: Object.fromEntries(left) };
}

/** Whether `name` can be that of a key. */
export function isKeyName(name: string): boolean {
  return keyName.test(name);
}

/** The ring of development, made from its secret: all processes that share the secret share the ring. */
export function developmentKeyRing(secret: string): KeyRing {
  const key = Buffer.from(hkdfSync("sha256", secret, "", "keelson development key ring", keyBytes));
  return { active: "development", keys: new Map([["development", createSecretKey(key)]]) };
}

function isKey(value: unknown): boolean {
  if (typeof value !== "string") return false;
  const bytes = Buffer.from(value, "base64");
  // Written again, since Buffer skips what is not Base64.
  return bytes.byteLength === keyBytes && bytes.toString("base64") === value.trim();
}

function isRetiredKey(value: unknown): boolean {
  return (
    isRecord(value) &&
    isKey(value["proof"]) &&
    typeof value["until"] === "string" &&
    !Number.isNaN(Date.parse(value["until"]))
  );
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
