import { createHash } from "node:crypto";

/**
 * A fingerprint of what is asked for: equal for equal input whatever the order of its members.
 * It begins with its version, since one that is computed otherwise must not be compared.
 *
 * @param input - what a schema gave: plain data, dates, bytes, maps, sets, bigints.
 */
export function fingerprintOf(route: string, input: unknown): string {
  const hash = createHash("sha256");
  hash.update(`${Buffer.byteLength(route)}:${route}`);
  hash.update(canonical(input, 0));
  return `v1:${hash.digest("base64url")}`;
}

/** Deeper than any body that was accepted; what a schema makes may be a circle. */
const maxDepth = 200;

/** A text of a value: every kind tagged, members in order of their names, absent ones left out. */
function canonical(value: unknown, depth: number): string {
  if (depth > maxDepth) throw new TypeError("the input is nested too deeply to be compared with a repeat of it");
  const inner = (part: unknown) => canonical(part, depth + 1);
  if (value === null || typeof value === "boolean" || typeof value === "string") return JSON.stringify(value);
  if (typeof value === "number") return Object.is(value, -0) ? "0" : String(value);
  if (typeof value === "bigint") return `n${value}`;
  if (typeof value !== "object") return "u";
  if (Array.isArray(value)) return `[${Array.from(value, inner).join()}]`;
  if (value instanceof Date) return `d${value.getTime()}`;
  if (value instanceof Uint8Array) return `b${createHash("sha256").update(value).digest("base64url")}`;
  if (value instanceof Map)
    return `m[${Array.from(value, ([name, part]) => `${inner(name)}:${inner(part)}`)
      .sort()
      .join()}]`;
  if (value instanceof Set) return `s[${Array.from(value, inner).sort().join()}]`;
  const members = Object.entries(value).filter(([, part]) => part !== undefined);
  // By code unit, and never by locale: a fingerprint is compared across machines.
  members.sort(([one], [other]) => (one < other ? -1 : 1));
  return `{${members.map(([name, part]) => `${JSON.stringify(name)}:${inner(part)}`).join()}}`;
}
