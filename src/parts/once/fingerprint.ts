import { hash } from "node:crypto";

/**
 * A fingerprint of what is asked for: equal for equal input whatever the order of its members.
 * It begins with its version, since one that is computed otherwise must not be compared.
 *
 * @param input - what a schema gave. Plain data, dates, bytes, maps, sets and bigints are compared by their content.
 * @param before - gives what the schema was given. It is asked for only where the schema made something else of it, such
 * as a `URL` or an instance of a class, whose content cannot be read from outside.
 * @throws TypeError where neither can be compared, or is nested more than 200 levels deep.
 */
export function fingerprintOf(route: string, input: unknown, before?: () => unknown): string {
  // The letter keeps what a schema was given apart from all that one gives.
  const text =
    comparable(input) ?? (before === undefined ? undefined : prefixed("r", comparable(before())));
  if (text !== undefined)
    return `v1:${hash("sha256", `${Buffer.byteLength(route)}:${route}${text}`, "base64url")}`;
  throw new TypeError(
    "the input has a value whose content cannot be compared with that of a repeat; take plain data, or turn `once` off for this write",
  );
}

/** Deeper than any body that was accepted; what a schema makes may be a circle. */
const maxDepth = 200;

/** A value whose content cannot be read from outside. */
class OpaqueValue extends Error {}

/** The text of a value; `undefined` where it holds one that is opaque. */
function comparable(value: unknown): string | undefined {
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

/** What was written so far: one text that grows, since joining many small ones takes three times as long. */
interface Written {
  text: string;
}

/** Appends the text of a value: every kind tagged, members in order of their names, absent ones left out. */
function write(to: Written, value: unknown, depth: number): void {
  if (typeof value === "string")
    to.text += plain.test(value) ? `"${value}"` : JSON.stringify(value);
  else if (typeof value === "number")
    to.text += value === 0 ? "0" : value; // -0 is 0
  else if (typeof value === "boolean" || value === null) to.text += value;
  else if (typeof value === "bigint") to.text += `n${value}`;
  else if (value === undefined) to.text += "u";
  else if (typeof value !== "object") throw new OpaqueValue();
  else if (depth > maxDepth)
    throw new TypeError("the input is nested too deeply to be compared with a repeat of it");
  else writeObject(to, value, depth);
}

/** Printable ASCII without `"` and `\`: nearly all strings, which are JSON as they are. */
const plain = /^[ !#-[\]-~]*$/;

function writeObject(to: Written, value: object, depth: number): void {
  const prototype: object | null = Object.getPrototypeOf(value);
  if (prototype === Object.prototype || prototype === null) writeMembers(to, value, depth);
  else if (prototype === Array.prototype)
    writeList(to, value as readonly unknown[], depth); // safe: an array's prototype
  else if (isPlain(prototype)) writeMembers(to, value, depth);
  else to.text += special(value, prototype, depth);
}

/** Whether a prototype is that of plain objects of another realm, or empty as that of keelson's own maps. */
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
  // By code unit, and never by locale: a fingerprint is compared across machines.
  if (names.length > 1) sort(names);
  let separator = "{";
  for (const name of names) {
    const part: unknown = (value as Readonly<Record<string, unknown>>)[name]; // safe: any name of an object may be read
    if (part === undefined) continue;
    to.text += plain.test(name) ? `${separator}"${name}":` : `${separator}${JSON.stringify(name)}:`;
    separator = ",";
    write(to, part, depth + 1);
  }
  to.text += separator === "{" ? "{}" : "}";
}

/** Longer lists are left to `sort`, which copies what it sorts: for the few members of most objects that takes longer than sorting. */
const fewNames = 16;

function sort(names: string[]): void {
  if (names.length > fewNames) {
    names.sort();
    return;
  }
  for (let end = 1; end < names.length; end += 1) {
    const name = names[end] as string; // safe, here and below: the index is of the list
    let at = end;
    for (; at > 0 && (names[at - 1] as string) > name; at -= 1) names[at] = names[at - 1] as string;
    names[at] = name;
  }
}

const isIndex = /^(0|[1-9]\d*)$/;

function writeList(to: Written, values: readonly unknown[], depth: number): void {
  // Named members, such as the text of a match, come last.
  const last = Object.keys(values).at(-1);
  if (last !== undefined && !isIndex.test(last)) throw new OpaqueValue();
  to.text += "[";
  for (let index = 0; index < values.length; index += 1) {
    if (index > 0) to.text += ",";
    write(to, values[index], depth + 1);
  }
  to.text += "]";
}

/** Those of a class that was derived may hold more than can be seen: hence the prototypes, and no `instanceof`. */
function special(value: object, prototype: unknown, depth: number): string {
  if (
    value instanceof Uint8Array &&
    (prototype === Uint8Array.prototype || prototype === Buffer.prototype)
  ) {
    return `b${hash("sha256", value, "base64url")}`;
  }
  if (Reflect.ownKeys(value).length > 0) throw new OpaqueValue();
  const inner = (part: unknown) => canonical(part, depth + 1);
  // Safe, each: the value is what it inherits from.
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

function prefixed(letter: string, text: string | undefined): string | undefined {
  return text === undefined ? undefined : letter + text;
}
