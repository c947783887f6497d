import { type AnswerToStore, storeAnswer } from "./answer.ts";
import type { ClaimKey, StoredResult } from "./claim.ts";
import type { ClaimStore } from "./claim-store.ts";

interface ResultToStore extends Omit<AnswerToStore, "answer" | "key"> {
  /** Result as JSON, if any. */
  readonly text: string | undefined;
  readonly place: ClaimKey;
}

/** Stores the result of a step in the format of a write's answer. */
export function storeResult(
  claims: Pick<ClaimStore, "putParts">,
  { text, place: key, ...facts }: ResultToStore,
): Promise<StoredResult> {
  const answer = { status: 200, headers: {}, cookies: [], body: text };
  // Safe cast: `storeAnswer` only calls `putParts`.
  return storeAnswer(claims as ClaimStore, { answer, key, ...facts });
}

const maxResultBytes = 1_048_576;

/** Serializes a result as JSON, or returns the reason why it cannot be stored. */
export function textOf(
  result: unknown,
): { readonly text: string | undefined } | { readonly unkept: string } {
  let text: string | undefined;
  try {
    text = JSON.stringify(result);
  } catch (error) {
    return { unkept: String(error) };
  }
  const bytes = text === undefined ? 0 : Buffer.byteLength(text);
  return bytes > maxResultBytes
    ? { unkept: `it has ${bytes} bytes, and ${maxResultBytes} are the most` }
    : { text };
}

export function parsed(text: string | undefined): unknown {
  return text === undefined ? undefined : JSON.parse(text);
}

export function unkept({ step }: Readonly<Record<string, string>>, reason: string): TypeError {
  return new TypeError(
    `ctx.step: the step ${step} is done, but its result cannot be kept (${reason}); return less data, as JSON`,
  );
}
