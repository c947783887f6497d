import { FrameworkError } from "../../base/errors/errors.ts";
import { type ClaimKey, keyText } from "./claim.ts";

/** The number of times in a row a claim may count as free, although it could not be taken. */
const maxFrees = 10;

/**
 * The store refuses to take what `judge` calls free while a transaction checks it, and for a row
 * that something else has written, for example with a status that keelson does not know.
 *
 * @throws Error after ten times, instead of asking the store forever.
 */
export function assertTakable(key: ClaimKey, frees: number): void {
  if (frees <= maxFrees) return;
  const problem = `the claim ${keyText(key)} is free, and could not be taken ${frees} times`;
  throw new Error(`${problem}; if that lasts, its row is not in a form that keelson writes`);
}

export function keyReused(): FrameworkError {
  const message = "The Idempotency-Key was used for another request; send a new one";
  return new FrameworkError("idempotency_key_reused", message);
}

export function inProgress(): FrameworkError {
  const message = "The same request is being processed; try again later";
  return new FrameworkError("request_in_progress", message, { headers: { "retry-after": "1" } });
}
