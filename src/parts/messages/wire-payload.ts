/**
 * A payload as it goes over the wire: what JSON makes of it.
 *
 * @param what - names it in errors
 * @throws TypeError where JSON cannot hold it, or makes no object of it.
 */
export function wirePayload(payload: unknown, what: string): Readonly<Record<string, unknown>> {
  let text: string | undefined;
  try {
    text = JSON.stringify(payload);
  } catch (cause) {
    throw new TypeError(`${what} cannot be written as JSON: ${String(cause)}`, { cause });
  }
  if (!text?.startsWith("{")) throw new TypeError(`${what} is not an object`);
  return JSON.parse(text) as Readonly<Record<string, unknown>>; // safe: it begins as an object
}
