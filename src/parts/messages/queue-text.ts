/**
 * Characters that JSON does not escape and SQS refuses. JSON escapes the others that SQS refuses:
 * control characters and lone surrogates.
 */
const unfit = /[\uFFFE\uFFFF]/g;

/** Escapes the characters in a JSON string that SQS refuses. */
export function queueText(json: string): string {
  return json.replace(unfit, (character) => `\\u${character.charCodeAt(0).toString(16)}`);
}

/**
 * Checks whether EventBridge could turn this JSON into a message that SQS refuses. The bus parses
 * an event's JSON and writes it again, so characters escaped for SQS may become plain. Also returns
 * true for a string that contains the escape of a lone surrogate literally, which is harmless.
 */
export function mayBeUnescaped(json: string): boolean {
  return /[\uFFFE\uFFFF]|\\ud[89a-f]/.test(json);
}
