import { type Answer, decodeAnswer, encodeAnswer } from "./answer.ts";
import type { CompletedClaim, StoredResult } from "./claim.ts";
import type { ClaimKey, ClaimStore } from "./claim-store.ts";

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
  readonly answer: Answer;
  readonly key: ClaimKey;
  readonly owner: string;
  /** In seconds since the epoch. */
  readonly expiresAt: number;
  readonly cipher: AnswerCipher | undefined;
}

/** Writes an answer beside the record, where it is too large for it, and returns what the record holds of it. */
export async function storeAnswer(store: ClaimStore, toStore: AnswerToStore): Promise<StoredResult> {
  const { answer, cipher } = toStore;
  const encoded = await encodeAnswer(answer);
  const data = cipher === undefined ? encoded : await cipher.seal(encoded);
  return data.byteLength <= largestPart ? { data } : storeParts(store, toStore, data);
}

async function storeParts(store: ClaimStore, { key, owner, expiresAt }: AnswerToStore, data: Uint8Array): Promise<StoredResult> {
  const parts: Uint8Array[] = [];
  for (let start = 0; start < data.byteLength; start += largestPart) parts.push(data.subarray(start, start + largestPart));
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
): Promise<Answer> {
  const parts = result.parts === undefined ? undefined : await store.readParts(key, owner, result.parts);
  const data = parts === undefined ? result.data : Buffer.concat(parts);
  if (data === undefined) throw new Error(`the stored answer of ${key.sort} is not complete`);
  return decodeAnswer(cipher === undefined ? data : await cipher.open(data));
}
