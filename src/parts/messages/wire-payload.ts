/**
 * Converts a payload to its wire format by a round trip through JSON.
 *
 * @param what - name of the payload in error messages
 * @throws TypeError if it cannot be written as JSON, or its JSON is not an object.
 */
export function wirePayload(payload: unknown, what: string): Readonly<Record<string, unknown>> {
  let text: string | undefined;
  try {
    text = JSON.stringify(payload);
  } catch (cause) {
    throw new TypeError(`${what} cannot be written as JSON: ${String(cause)}`, { cause });
  }
  if (!text?.startsWith("{")) throw new TypeError(`${what} is not an object`);
  return JSON.parse(text) as Readonly<Record<string, unknown>>; // safe: it starts as an object
}
