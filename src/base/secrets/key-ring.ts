import { createSecretKey, hkdfSync, type KeyObject, randomBytes } from "node:crypto";
import { isRecord } from "../errors/option-table.ts";

export interface KeyRing {
  readonly active: string;
  readonly keys: ReadonlyMap<string, KeyObject>;
  /** Removed keys, which verify messages that they signed but decrypt no values. */
  readonly retired?: ReadonlyMap<string, { readonly proof: KeyObject; readonly untilMs: number }>;
}

/** Key ring as stored in SSM. Each key is 32 bytes in Base64. */
export interface KeyRingText {
  readonly active: string;
  readonly keys: Readonly<Record<string, string>>;
  readonly retired?: Readonly<Record<string, RetiredKeyText>> | undefined;
}

interface RetiredKeyText {
  readonly proof: string;
  readonly until: string;
}

/** Longest life of a message: a year until a job is due, then 14 days in a queue. */
const retiredMs = (365 + 14) * 24 * 60 * 60 * 1000;

const keyBytes = 32;
const shape = '{ "active": "<name>", "keys": { "<name>": "<32 bytes in Base64>" } }';

/**
 * Parses a key ring: `{ "active": "2026", "keys": { "2025": "…", "2026": "…" } }`.
 * @throws TypeError if it is invalid; the message never contains the text.
 */
export function parseKeyRing(text: string): KeyRing {
  const { active, keys, retired = {} } = parseKeyRingText(text);
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

/** Like {@link parseKeyRing}, for tools that edit the ring. */
export function parseKeyRingText(text: string): KeyRingText {
  let ring: unknown;
  try {
    ring = JSON.parse(text);
  } catch {
    // The original error would quote the secret.
    throw new TypeError(`the key ring is not JSON; it has to be ${shape}`);
  }
  if (!isRecord(ring) || !isRecord(ring["keys"]) || typeof ring["active"] !== "string") {
    throw new TypeError(`the key ring has another shape than ${shape}`);
  }
  const { active, keys, retired = {} } = ring;
  if (!isRecord(retired)) throw new TypeError("`retired` of the key ring is not an object");
  // The message omits the name, which may be a misplaced secret.
  if (![...Object.keys(keys), ...Object.keys(retired)].every(isKeyName))
    throw new TypeError("a name in the key ring is not 1 to 64 letters, digits, `.`, `_` or `-`");
  for (const [name, secret] of Object.entries(keys)) {
    if (!isKey(secret))
      throw new TypeError(`the key ${name} of the key ring is not ${keyBytes} bytes in Base64`);
  }
  if (!Object.hasOwn(keys, active))
    throw new TypeError("the active key of the key ring is not in its keys");
  for (const [name, key] of Object.entries(retired)) {
    if (!isRetiredKey(key)) {
      throw new TypeError(
        `the retired key ${name} of the key ring is not { "proof": "<${keyBytes} bytes in Base64>", "until": "<time>" }`,
      );
    }
  }
  // The casts are safe: the loops above have checked all keys.
  const read = { active, keys: keys as Record<string, string> };
  return ring["retired"] === undefined
    ? read
    : { ...read, retired: retired as Record<string, RetiredKeyText> };
}

export function newRingKey(): string {
  return randomBytes(keyBytes).toString("base64");
}

/** Derives the key that signs messages. Must never change, because rings store retired ones. */
export function proofKey(ringKey: KeyObject): KeyObject {
  return derived(ringKey, "keelson message proof 1");
}

export function retiredKey(secret: string, nowMs: number): RetiredKeyText {
  const proof = proofKey(secretKey(secret)).export().toString("base64");
  return { proof, until: new Date(nowMs + retiredMs).toISOString() };
}

export function pruned(ring: KeyRingText, nowMs: number): KeyRingText {
  const { retired = {}, ...rest } = ring;
  const left = Object.entries(retired).filter(([, { until }]) => Date.parse(until) > nowMs);
  return left.length === 0 ? rest : { ...rest, retired: Object.fromEntries(left) };
}

function secretKey(base64: string): KeyObject {
  return createSecretKey(Buffer.from(base64, "base64"));
}

export function isKeyName(name: string): boolean {
  return /^[A-Za-z0-9._-]{1,64}$/.test(name);
}

/** Processes with the same secret share the ring. */
export function developmentKeyRing(secret: string): KeyRing {
  const key = derived(secret, "keelson development key ring");
  return { active: "development", keys: new Map([["development", key]]) };
}

function derived(from: KeyObject | string, purpose: string): KeyObject {
  return createSecretKey(Buffer.from(hkdfSync("sha256", from, "", purpose, keyBytes)));
}

function isKey(value: unknown): boolean {
  if (typeof value !== "string") return false;
  const bytes = Buffer.from(value, "base64");
  // The bytes are encoded again, because Buffer skips characters that are not Base64.
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
