import { replayOf, saysNotDone, type WriteAnswer } from "./answer.ts";
import type { OnceClaim } from "./claimed-run.ts";

/**
 * Checks whether an answer is never replayed because nothing was done or because it sets cookies.
 */
export function isRefusal(answer: WriteAnswer): boolean {
  return saysNotDone(answer) || answer.cookies.length > 0;
}

/**
 * Returns the part of an answer that is stored and replayed.
 * @throws if it is too large for the transport.
 */
export function storedAnswer(claim: OnceClaim, answer: WriteAnswer): WriteAnswer {
  const stored = replayOf(answer, claim.replayedHeaders);
  claim.assertFits?.(answer);
  return stored;
}
