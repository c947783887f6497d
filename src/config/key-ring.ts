import { createSecretKey, hkdfSync, type KeyObject, randomBytes } from "node:crypto";

/** The keys that open sealed values, and the one that seals new ones. */
export interface KeyRing {
  /** The name of the key that seals. */
  readonly active: string;
  readonly keys: ReadonlyMap<string, KeyObject>;
}

/** A ring as its parameter holds it: names, and 32 bytes each in Base64. */
export interface KeyRingText {
  readonly active: string;
  readonly keys: Readonly<Record<string, string>>;
}

const keyBytes = 32;
const keyName = /^[A-Za-z0-9._-]{1,64}$/;
const shape = '{ "active": "<name>", "keys": { "<name>": "<32 bytes in Base64>" } }';

/**
 * Reads a ring: `{ "active": "2026", "keys": { "2025": "…", "2026": "…" } }`.
 *
 * @throws TypeError saying what is wrong; nothing of the text is in its message.
 */
export function parseKeyRing(text: string): KeyRing {
  const { active, keys } = parseKeyRingText(text);
  return {
    active,
    keys: new Map(Object.entries(keys).map(([name, secret]) => [name, createSecretKey(Buffer.from(secret, "base64"))])),
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
  const { active, keys } = ring;
  for (const [name, secret] of Object.entries(keys)) {
    // A name that is none may be a secret in the wrong place.
    if (!keyName.test(name)) throw new TypeError("a name in the key ring is not 1 to 64 letters, digits, `.`, `_` or `-`");
    if (!isKey(secret)) throw new TypeError(`the key ${name} of the key ring is not ${keyBytes} bytes in Base64`);
  }
  if (!Object.hasOwn(keys, active)) throw new TypeError("the active key of the key ring is none of its keys");
  // Safe: each was checked above.
  return { active, keys: keys as Record<string, string> };
}

/** Makes a key as a ring holds it. */
export function newRingKey(): string {
  return randomBytes(keyBytes).toString("base64");
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

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
