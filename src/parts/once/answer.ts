import { promisify } from "node:util";
import { FrameworkError } from "../../base/errors/errors.ts";
import { isRecord } from "../../base/errors/option-table.ts";
import type { Place } from "../../base/secrets/sealed.ts";
import type { Secrets } from "../../base/secrets/secrets.ts";
import type { ClaimKey, CompletedClaim, StoredResult } from "./claim.ts";
import type { ClaimStore } from "./claim-store.ts";

export interface WriteAnswer {
  readonly status: number;
  /** Names are in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  /** Values of `set-cookie` headers. An answer with cookies is not stored. */
  readonly cookies: readonly string[];
  readonly body: string | Uint8Array | undefined;
  /** Whether the work was done, although no answer could express the success. */
  readonly isDone?: boolean;
}

/** Answer of a run without a waiting caller. */
export const noAnswer: WriteAnswer = Object.freeze({
  status: 204,
  headers: {},
  cookies: [],
  body: undefined,
});

/** Whether an answer reports that nothing was done, in which case a repeat must try again. */
export function saysNotDone({ status, isDone = false }: WriteAnswer): boolean {
  return status >= 400 && !isDone;
}

/** Whether nothing was done, or the answer sets cookies. */
export function isNeverReplayed(answer: WriteAnswer): boolean {
  return saysNotDone(answer) || answer.cookies.length > 0;
}

interface Replayed {
  readonly replayedHeaders: readonly string[];
  readonly assertFits?: ((answer: WriteAnswer) => void) | undefined;
}

/** Returns the part of an answer to store. @throws if the transport cannot send the answer. */
export function storedAnswer(
  { replayedHeaders, assertFits }: Replayed,
  answer: WriteAnswer,
): WriteAnswer {
  const stored = replayOf(answer, replayedHeaders);
  assertFits?.(answer);
  return stored;
}

/** Headers of every replay. Others are replayed only if the write declares them. */
const alwaysReplayed = ["content-type", "location", "etag", "link", "cache-control"];

/** Returns the part of an answer that a repeat receives. */
export function replayOf(
  { status, headers, body }: WriteAnswer,
  declared: readonly string[],
): WriteAnswer {
  const replayed = Object.entries(headers).filter(
    ([name]) => alwaysReplayed.includes(name) || declared.includes(name),
  );
  return { status, headers: Object.fromEntries(replayed), cookies: [], body };
}

/** First byte of a stored answer: the encoding of the rest, or the `{` of an encrypted answer. */
const [plain, gzipped, sealed] = [0, 1, "{".charCodeAt(0)];
/** Below this length, in characters, compression gains nothing. */
const compressFrom = 1_024;

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
  const read: unknown = JSON.parse(Buffer.from(text).toString("utf8"));
  if (!isStored(read)) throw new Error("the stored answer is not in a form that keelson writes");
  const { status, headers, bytes } = read;
  const body = bytes === undefined ? read.body : Buffer.from(bytes, "base64");
  return { status, headers, cookies: [], body };
}

type Stored = Pick<WriteAnswer, "status" | "headers"> &
  Partial<Readonly<Record<"body" | "bytes", string>>>;

function isStored(read: unknown): read is Stored {
  const { status, headers, body, bytes } = Object(read);
  const texts: unknown[] = [body, bytes, ...Object.values(Object(headers))];
  return (
    Number.isInteger(status) &&
    status >= 100 &&
    status <= 599 &&
    isRecord(headers) &&
    texts.every((text) => text === undefined || typeof text === "string")
  );
}

/** In bytes. DynamoDB limits an item, with its other attributes, to 400 KB. */
const largestPart = 350_000;

export interface AnswerCipher {
  seal(data: Uint8Array): Promise<Uint8Array>;
  open(data: Uint8Array): Promise<Uint8Array>;
}

export interface AnswerToStore {
  readonly answer: WriteAnswer;
  readonly key: ClaimKey;
  readonly owner: string;
  /** In epoch seconds. */
  readonly expiresAt: number;
  readonly cipher: AnswerCipher | undefined;
}

/** Returns the result to put into the claim's record. Stores a large answer in separate parts. */
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
 * Loads an answer in the form that it was stored in, regardless of the write's declaration: a
 * deployment may have added or removed its encryption since.
 *
 * @throws Error if a part is missing, or the answer cannot be decrypted.
 */
export async function loadAnswer(
  store: ClaimStore,
  key: ClaimKey,
  { owner, result = {} }: CompletedClaim,
  cipher: Pick<AnswerCipher, "open"> | undefined,
): Promise<WriteAnswer> {
  const parts =
    result.parts === undefined ? undefined : await store.readParts(key, owner, result.parts);
  const data = parts === undefined ? result.data : Buffer.concat(parts);
  if (data === undefined) throw new Error(`the stored answer of ${key.sort} is not complete`);
  return decodeAnswer(cipher === undefined || data[0] !== sealed ? data : await cipher.open(data));
}

/** Encrypts stored answers with the key ring. An answer decrypts only in the row of its claim. */
export function answerCipher(secrets: Secrets, place: Place): AnswerCipher {
  return {
    seal: async (data) => {
      const sealed = await secrets.seal(Buffer.from(data).toString("base64"), place);
      return Buffer.from(
        JSON.stringify({ key: sealed.key, data: Buffer.from(sealed.data).toString("base64") }),
      );
    },
    open: async (data) => {
      // Safe cast: only `seal` writes this data.
      const { key, data: sealed } = JSON.parse(Buffer.from(data).toString("utf8")) as {
        readonly key: string;
        readonly data: string;
      };
      await secrets.prepare(key);
      const opened = secrets.open({ sealed: 1, key, data: Buffer.from(sealed, "base64") }, place);
      if ("text" in opened) return Buffer.from(opened.text, "base64");
      throw new FrameworkError(
        "config_unavailable",
        "The answer of before cannot be opened at the moment",
        {
          cause: new Error(opened.locked),
        },
      );
    },
  };
}

/** @throws TypeError for an answer that cannot be stored for repeats. */
export function assertRepeatable(answer: WriteAnswer): void {
  if (answer.cookies.length > 0)
    throw new TypeError(
      "ctx.commit: an answer with cookies is never stored; set them in another request",
    );
  if (saysNotDone(answer))
    throw new TypeError(
      `ctx.commit: an answer of ${answer.status} says that nothing was done; throw instead`,
    );
}
