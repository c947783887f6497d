import { hash } from "node:crypto";

/**
 * Returns the fingerprint of a request, regardless of the order of members. It starts with a
 * version, because fingerprints of different algorithms must not be compared.
 *
 * @param input - output of a schema. Plain data, dates, bytes, maps, sets and bigints are compared
 * by content.
 * @param before - returns the input of the schema. Called only if the output has content that
 * cannot be read from outside, such as a `URL` or an instance of a class.
 * @throws TypeError if neither the output nor the input can be compared, or if one is nested more
 * than 200 levels deep.
 */
export function fingerprintOf(route: string, input: unknown, before?: () => unknown): string {
  let text = comparable(input);
  if (text === undefined && before !== undefined) {
    const raw = comparable(before());
    // The prefix `r` distinguishes the input of a schema from any output.
    if (raw !== undefined) text = `r${raw}`;
  }
  if (text !== undefined)
    return `v1:${hash("sha256", `${Buffer.byteLength(route)}:${route}${text}`, "base64url")}`;
  throw new TypeError(
    "the input has a value that cannot be compared with the input of a retry; take plain data, or turn `once` off for this write",
  );
}

/** Digest of an object whose content cannot be read synchronously, such as a file. */
export const comparedAs = Symbol("keelson.comparedAs");

/** Deeper than any accepted body. The output of a schema may be circular. */
const maxDepth = 200;

class OpaqueValue extends Error {}

/**
 * Returns the same text for the same content, or `undefined` for a value that contains an opaque one.
 *
 * @throws TypeError for a value that is nested more than 200 levels deep.
 */
export function comparable(value: unknown): string | undefined {
  try {
    return canonical(value, 0);
  } catch (error) {
    if (error instanceof OpaqueValue) return undefined;
    throw error;
  }
}

function canonical(value: unknown, depth: number): string {
  const written = { text: "" };
  write(written, value, depth);
  return written.text;
}

/** Appending to one string is three times as fast as joining many small ones. */
interface Written {
  text: string;
}

/** Appends a value: types have tags, members are sorted, `undefined` members are omitted. */
function write(to: Written, value: unknown, depth: number): void {
  if (typeof value === "string")
    to.text += plain.test(value) ? `"${value}"` : JSON.stringify(value);
  else if (typeof value === "number")
    to.text += value === 0 ? "0" : value; // -0 becomes 0
  else if (typeof value === "boolean" || value === null) to.text += value;
  else if (typeof value === "bigint") to.text += `n${value}`;
  else if (value === undefined) to.text += "u";
  else if (typeof value !== "object") throw new OpaqueValue();
  else if (depth > maxDepth)
    throw new TypeError("the input is nested too deeply to be compared with the input of a retry");
  else writeObject(to, value, depth);
}

/** Printable ASCII that JSON writes without escapes. Nearly all strings match. */
const plain = /^[ !#-[\]-~]*$/;

function writeObject(to: Written, value: object, depth: number): void {
  const prototype: object | null = Object.getPrototypeOf(value);
  if (prototype === Object.prototype || prototype === null) writeMembers(to, value, depth);
  else if (prototype === Array.prototype)
    writeList(to, value as readonly unknown[], depth); // safe: the prototype is an array's
  else if (isPlain(prototype)) writeMembers(to, value, depth);
  else to.text += special(value, prototype, depth);
}

/** Whether a prototype is of another realm's plain objects, or empty, as in keelson's maps. */
function isPlain(prototype: object): boolean {
  const isLast = Object.getPrototypeOf(prototype) === null;
  return (
    isLast && (Object.hasOwn(prototype, "isPrototypeOf") || Reflect.ownKeys(prototype).length === 0)
  );
}

function writeMembers(to: Written, value: object, depth: number): void {
  const names = Object.keys(value);
  const isHiding =
    Object.getOwnPropertyNames(value).length > names.length ||
    Object.getOwnPropertySymbols(value).length > 0;
  if (isHiding) throw new OpaqueValue();
  // Sorts by code unit, not by locale, because fingerprints are compared across machines.
  if (names.length > 1) sort(names);
  let separator = "{";
  for (const name of names) {
    // Safe cast: any member of an object may be read.
    const part: unknown = (value as Readonly<Record<string, unknown>>)[name];
    if (part === undefined) continue;
    to.text += plain.test(name) ? `${separator}"${name}":` : `${separator}${JSON.stringify(name)}:`;
    separator = ",";
    write(to, part, depth + 1);
  }
  to.text += separator === "{" ? "{}" : "}";
}

/** Up to this many, insertion is faster than `Array.prototype.sort`, which copies its input. */
const fewNames = 16;

function sort(names: string[]): void {
  if (names.length > fewNames) {
    names.sort();
    return;
  }
  for (let end = 1; end < names.length; end += 1) {
    const name = names[end] as string; // these casts are safe: the indexes are within the list
    let at = end;
    for (; at > 0 && (names[at - 1] as string) > name; at -= 1) names[at] = names[at - 1] as string;
    names[at] = name;
  }
}

const isIndex = /^(0|[1-9]\d*)$/;

function writeList(to: Written, values: readonly unknown[], depth: number): void {
  // `Object.keys` returns named members, such as `index` of a regular expression match, last.
  const last = Object.keys(values).at(-1);
  if (last !== undefined && !isIndex.test(last)) throw new OpaqueValue();
  to.text += "[";
  for (let index = 0; index < values.length; index += 1) {
    if (index > 0) to.text += ",";
    write(to, values[index], depth + 1);
  }
  to.text += "]";
}

/** Compares prototypes instead of using `instanceof`, because subclasses may have hidden state. */
function special(value: object, prototype: unknown, depth: number): string {
  if (
    value instanceof Uint8Array &&
    (prototype === Uint8Array.prototype || prototype === Buffer.prototype)
  ) {
    return `b${hash("sha256", value, "base64url")}`;
  }
  if (comparedAs in value) return `f:${String(value[comparedAs])}`;
  if (Reflect.ownKeys(value).length > 0) throw new OpaqueValue();
  const inner = (part: unknown) => canonical(part, depth + 1);
  // Safe casts: the prototype identifies the class.
  if (prototype === Date.prototype) return `d${(value as Date).getTime()}`;
  if (prototype === Set.prototype)
    return `s[${Array.from(value as Set<unknown>, inner)
      .sort()
      .join()}]`;
  if (prototype === Map.prototype) {
    const entries = Array.from(
      value as Map<unknown, unknown>,
      ([name, part]) => `${inner(name)}:${inner(part)}`,
    );
    return `m[${entries.sort().join()}]`;
  }
  throw new OpaqueValue();
}
