import { quoted } from "./quoted.ts";

/**
 * Checks that options are an object without unknown members. Otherwise, a misspelled option would
 * be ignored.
 *
 * @param call Name of the call for the message, such as `ctx.enqueue`.
 * @throws TypeError that names the wrong option and lists the known ones.
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
