import { quoted } from "./quoted.ts";

/**
 * Checks that options are an object with known members only, since a misspelled option would be ignored.
 *
 * @param call - the call as the message names it, such as `ctx.enqueue`
 * @throws TypeError that names the wrong option, and the known ones.
 */
export function assertKnownOptions(call: string, options: unknown, known: readonly string[]): void {
  if (options === undefined) return;
  if (typeof options !== "object" || options === null || Array.isArray(options)) {
    throw new TypeError(
      `${call}: the options are ${quoted(options)}; pass an object with ${known.join(", ")}`,
    );
  }
  const unknown = Object.keys(options).find((name) => !known.includes(name));
  if (unknown !== undefined)
    throw new TypeError(
      `${call}: unknown option ${quoted(unknown)}; known are ${known.join(", ")}`,
    );
}
