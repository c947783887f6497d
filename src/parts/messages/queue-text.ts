/** Characters that JSON leaves as they are, and SQS refuses. JSON escapes the others that it refuses: control characters and half surrogates. */
const unfit = /[\uFFFE\uFFFF]/g;

/** The same JSON, with escapes for what SQS refuses. */
export function queueText(json: string): string {
  return json.replace(unfit, (character) => `\\u${character.charCodeAt(0).toString(16)}`);
}

/**
 * Whether a text of JSON could come out of EventBridge as one that SQS refuses: the bus reads an event's JSON and writes it again, and
 * what is escaped only for SQS may be plain then. Also true for a string that spells an escape of half a surrogate, which does no harm.
 */
export function mayBeUnescaped(json: string): boolean {
  return /[\uFFFE\uFFFF]|\\ud[89a-f]/.test(json);
}
