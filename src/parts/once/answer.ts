import { promisify } from "node:util";
import type { ClaimKey, CompletedClaim, StoredResult } from "./claim.ts";
import type { ClaimStore } from "./claim-store.ts";

/** What came of a write, as its caller gets it. */
export interface WriteAnswer {
  readonly status: number;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  /** Values of `set-cookie`; an answer that has them is not stored. */
  readonly cookies: readonly string[];
  readonly body: string | Uint8Array | undefined;
  /** What was asked for was done, though the status says otherwise: there is no answer that could say so. */
  readonly isDone?: boolean;
}

/** Whether an answer says that nothing was done, so that a repeat has to try. */
export function saysNotDone({ status, isDone = false }: WriteAnswer): boolean {
  return status >= 400 && !isDone;
}

/** Headers that a repeat gets too, beside those a write declares; all others are made anew. */
const replayedHeaders: readonly string[] = Object.freeze([
  "content-type",
  "location",
  "etag",
  "link",
  "cache-control",
]);

/** The answer as a repeat gets it: status, body, and the headers that are part of what was answered. */
export function replayOf(
  { status, headers, body }: WriteAnswer,
  declared: readonly string[],
): WriteAnswer {
  const replayed: Record<string, string> = {};
  for (const name of Object.keys(headers)) {
    // Safe: it is one of the names.
    if (replayedHeaders.includes(name) || declared.includes(name))
      replayed[name] = headers[name] as string;
  }
  return { status, headers: replayed, cookies: [], body };
}

/** What the first byte of a stored answer says of the rest. */
const [plain, gzipped] = [0, 1];
/** Below this size compressing gains nothing. */
const compressFrom = 1_024;

/** Writes an answer as bytes, compressed where it is large. */
export async function encodeAnswer({ status, headers, body }: WriteAnswer): Promise<Uint8Array> {
  const isText = typeof body === "string" || body === undefined;
  const stored = isText
    ? { status, headers, body }
    : { status, headers, bytes: Buffer.from(body).toString("base64") };
  const text = JSON.stringify(stored);
  if (text.length < compressFrom) return Buffer.from(String.fromCharCode(plain) + text);
  const { gzip } = await import("node:zlib");
  return Buffer.concat([Buffer.of(gzipped), await promisify(gzip)(text, { level: 1 })]);
}

/** @throws Error where the bytes are no stored answer. */
export async function decodeAnswer(data: Uint8Array): Promise<WriteAnswer> {
  let text = data.subarray(1);
  if (data[0] === gzipped) {
    const { gunzip } = await import("node:zlib");
    text = await promisify(gunzip)(text);
  }
  // Safe: only `encodeAnswer` writes what is read here, in a record that only its owner completes.
  const stored = JSON.parse(Buffer.from(text).toString("utf8")) as Omit<WriteAnswer, "cookies"> & {
    readonly bytes?: string;
  };
  const { status, headers, body, bytes } = stored;
  return {
    status,
    headers,
    cookies: [],
    body: bytes === undefined ? body : Buffer.from(bytes, "base64"),
  };
}

/** DynamoDB's items end at 400 KB; what else a record has is small. */
const largestPart = 350_000;

/** Seals and opens the bytes of answers, for a write whose replays are encrypted. */
export interface AnswerCipher {
  seal(data: Uint8Array): Promise<Uint8Array>;
  /** @throws where they cannot be opened. */
  open(data: Uint8Array): Promise<Uint8Array>;
}

/** An answer on its way into a claim's record. */
export interface AnswerToStore {
  readonly answer: WriteAnswer;
  readonly key: ClaimKey;
  readonly owner: string;
  /** In seconds since the epoch. */
  readonly expiresAt: number;
  readonly cipher: AnswerCipher | undefined;
}

/** Writes an answer beside the record, where it is too large for it, and returns what the record holds of it. */
export async function storeAnswer(
  store: ClaimStore,
  toStore: AnswerToStore,
): Promise<StoredResult> {
  const { answer, cipher } = toStore;
  const encoded = await encodeAnswer(answer);
  const data = cipher === undefined ? encoded : await cipher.seal(encoded);
  return data.byteLength <= largestPart ? { data } : storeParts(store, toStore, data);
}

async function storeParts(
  store: ClaimStore,
  { key, owner, expiresAt }: AnswerToStore,
  data: Uint8Array,
): Promise<StoredResult> {
  const parts: Uint8Array[] = [];
  for (let start = 0; start < data.byteLength; start += largestPart)
    parts.push(data.subarray(start, start + largestPart));
  await store.putParts(key, owner, parts, expiresAt);
  return { parts: parts.length };
}

/**
 * The answer of a completed claim.
 *
 * @throws Error where a part of it is not there, or where it cannot be opened.
 */
export async function loadAnswer(
  store: ClaimStore,
  key: ClaimKey,
  { owner, result = {} }: CompletedClaim,
  cipher: AnswerCipher | undefined,
): Promise<WriteAnswer> {
  const parts =
    result.parts === undefined ? undefined : await store.readParts(key, owner, result.parts);
  const data = parts === undefined ? result.data : Buffer.concat(parts);
  if (data === undefined) throw new Error(`the stored answer of ${key.sort} is not complete`);
  return decodeAnswer(cipher === undefined ? data : await cipher.open(data));
}
