import { quoted } from "./quoted.ts";

/** @throws TypeError that names `call`, if `options` is no object or has an unknown option. */
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
