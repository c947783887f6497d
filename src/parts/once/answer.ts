import { promisify } from "node:util";
import type { ClaimKey, CompletedClaim, StoredResult } from "./claim.ts";
import type { ClaimStore } from "./claim-store.ts";

/** Answer of a write, in the form its caller receives. */
export interface WriteAnswer {
  readonly status: number;
  /** Names are in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  /** Values of `set-cookie`. An answer with cookies is not stored. */
  readonly cookies: readonly string[];
  readonly body: string | Uint8Array | undefined;
  /** The work was done despite the error status: no answer could express the success. */
  readonly isDone?: boolean;
}

/** Answer of a run that nobody waits for. It only records that the work is done. */
export const noAnswer: WriteAnswer = Object.freeze({
  status: 204,
  headers: {},
  cookies: [],
  body: undefined,
});

/**
 * Checks whether an answer reports that nothing was done, in which case a repeat must try again.
 */
export function saysNotDone({ status, isDone = false }: WriteAnswer): boolean {
  return status >= 400 && !isDone;
}

/**
 * Checks whether an answer is never replayed because nothing was done or because it sets cookies.
 */
export function isNeverReplayed(answer: WriteAnswer): boolean {
  return saysNotDone(answer) || answer.cookies.length > 0;
}

/**
 * Returns the part of an answer that is stored and replayed.
 * @throws if it is too large for the transport.
 */
export function storedAnswer(
  {
    replayedHeaders,
    assertFits,
  }: {
    readonly replayedHeaders: readonly string[];
    readonly assertFits?: ((answer: WriteAnswer) => void) | undefined;
  },
  answer: WriteAnswer,
): WriteAnswer {
  const stored = replayOf(answer, replayedHeaders);
  assertFits?.(answer);
  return stored;
}

/**
 * Headers that a replay contains in addition to those the write declares. All others are created
 * per response.
 */
const alwaysReplayed: readonly string[] = Object.freeze([
  "content-type",
  "location",
  "etag",
  "link",
  "cache-control",
]);

/**
 * Reduces an answer to the part that a repeat receives: status, body, and the headers that belong
 * to the answer.
 */
export function replayOf(
  { status, headers, body }: WriteAnswer,
  declared: readonly string[],
): WriteAnswer {
  const replayed: Record<string, string> = {};
  for (const name of Object.keys(headers)) {
    // Safe: `name` is a key of `headers`.
    if (alwaysReplayed.includes(name) || declared.includes(name))
      replayed[name] = headers[name] as string;
  }
  return { status, headers: replayed, cookies: [], body };
}

/** First byte of a stored answer: the encoding of the rest. */
const [plain, gzipped] = [0, 1];
/** Size below which compression gains nothing. */
const compressFrom = 1_024;

/** Encodes an answer as bytes. Compresses large answers. */
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

/** @throws Error if the bytes are not a stored answer. */
export async function decodeAnswer(data: Uint8Array): Promise<WriteAnswer> {
  let text = data.subarray(1);
  if (data[0] === gzipped) {
    const { gunzip } = await import("node:zlib");
    text = await promisify(gunzip)(text);
  }
  // Safe: only `encodeAnswer` writes this data, in a record that only its owner completes.
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

/** DynamoDB limits an item to 400 KB. The other attributes of a record are small. */
const largestPart = 350_000;

/** Seals and opens stored answers, for a write whose replays are encrypted. */
export interface AnswerCipher {
  seal(data: Uint8Array): Promise<Uint8Array>;
  /** @throws if the data cannot be opened. */
  open(data: Uint8Array): Promise<Uint8Array>;
}

export interface AnswerToStore {
  readonly answer: WriteAnswer;
  readonly key: ClaimKey;
  readonly owner: string;
  /** In seconds since the epoch. */
  readonly expiresAt: number;
  readonly cipher: AnswerCipher | undefined;
}

/**
 * Stores an answer that is too large for the record in separate parts. Returns the result to put
 * into the record.
 */
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
 * Loads the answer of a completed claim.
 *
 * @throws Error if a part is missing or the answer cannot be opened.
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
