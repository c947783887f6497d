import { hash } from "node:crypto";

/**
 * A fingerprint of what is asked for: equal for equal input whatever the order of its members.
 * It begins with its version, since one that is computed otherwise must not be compared.
 *
 * @param input - what a schema gave: plain data, dates, bytes, maps, sets, bigints.
 */
export function fingerprintOf(route: string, input: unknown): string {
  return `v1:${hash("sha256", `${Buffer.byteLength(route)}:${route}${canonical(input, 0)}`, "base64url")}`;
}

/** Deeper than any body that was accepted; what a schema makes may be a circle. */
const maxDepth = 200;

/** A text of a value: every kind tagged, members in order of their names, absent ones left out. */
function canonical(value: unknown, depth: number): string {
  if (depth > maxDepth) throw new TypeError("the input is nested too deeply to be compared with a repeat of it");
  const inner = (part: unknown) => canonical(part, depth + 1);
  if (typeof value === "string") return text(value);
  if (value === null || typeof value === "boolean") return String(value);
  if (typeof value === "number") return Object.is(value, -0) ? "0" : String(value);
  if (typeof value === "bigint") return `n${value}`;
  if (typeof value !== "object") return "u";
  if (Array.isArray(value)) return `[${Array.from(value, inner).join()}]`;
  if (value instanceof Date) return `d${value.getTime()}`;
  if (value instanceof Uint8Array) return `b${hash("sha256", value, "base64url")}`;
  if (value instanceof Map)
    return `m[${Array.from(value, ([name, part]) => `${inner(name)}:${inner(part)}`)
      .sort()
      .join()}]`;
  if (value instanceof Set) return `s[${Array.from(value, inner).sort().join()}]`;
  let members = "";
  // Sorted by code unit, and never by locale: a fingerprint is compared across machines.
  for (const name of Object.keys(value).sort()) {
    const part: unknown = (value as Readonly<Record<string, unknown>>)[name]; // safe: any name of an object may be read
    if (part !== undefined) members += `${members === "" ? "" : ","}${text(name)}:${inner(part)}`;
  }
  return `{${members}}`;
}

/** Printable ASCII without `"` and `\`: nearly all strings, which are JSON as they are. */
const plain = /^[ !#-[\]-~]*$/;

function text(value: string): string {
  return plain.test(value) ? `"${value}"` : JSON.stringify(value);
}
