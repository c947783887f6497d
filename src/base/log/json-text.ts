import { types } from "node:util";
import { cut, endsPath, type PathPosition, quoted, type Redaction, stepInto } from "./redaction.ts";

/** Limits on the size of a written value. A mark replaces the rest. */
export const textLimits = Object.freeze({
  depth: 10,
  /** Members, items, or entries of a Map or Set. */
  entries: 200,
  stringLength: 8_192,
});

export interface Walk {
  readonly redaction: Redaction;
  /** Characters still available. */
  left: number;
  /** Objects that enclose the current position, to detect cycles. */
  readonly within: object[];
}

export function startWalk(redaction: Redaction, characters: number): Walk {
  return { redaction, left: characters, within: [] };
}

/**
 * Writes any value as bounded, redacted JSON. Never throws: an unreadable value becomes
 * `"[unreadable]"`, a cycle `"[circular]"`. Unlike `JSON.stringify`, also writes bigints in decimal,
 * `"NaN"` and `"Infinity"`, errors with stack and causes, Map, Set, functions and symbols by name,
 * and the byte count of binary data.
 */
export function jsonText(value: unknown, walk: Walk, position: PathPosition): string {
  switch (typeof value) {
    case "number":
      return spent(Number.isFinite(value) ? `${value}` : `"${value}"`, walk);
    case "boolean":
      return spent(`${value}`, walk);
    case "object":
      return value === null ? spent("null", walk) : objectText(value, walk, position);
    case "undefined":
      return spent("null", walk);
    case "function":
      return stringText(functionName(value), walk);
    default: // string, bigint, symbol
      return stringText(String(value), walk);
  }
}

/**
 * Writes members as `"name":value`, separated by commas, without `undefined`. `shownName` returns
 * the written name; redaction uses the original name.
 */
export function membersText(
  source: object,
  names: readonly string[],
  walk: Walk,
  position: PathPosition,
  shownName?: (name: string) => string,
): string {
  const { redaction } = walk;
  let text = "";
  let separator = "";
  let rest = names.length;
  const beyond = names.length - textLimits.entries;
  for (const name of names) {
    if (rest === beyond || walk.left <= 0) return `${text}${separator}"[cut]":${rest}`;
    rest -= 1;
    walk.left -= 1;
    const value = readMember(source, name);
    if (value === undefined) continue;
    const member = redaction.member(name);
    const shown = shownName === undefined ? name : shownName(name);
    const { json } = shown === name ? member : redaction.member(shown);
    walk.left -= json.length;
    const next = stepInto(position, name);
    const isSecret =
      (member.secret && !isNumberOfCookies(name, value)) ||
      endsPath(next) ||
      ((name === "value" || name === "Value") && isNamedSecret(source, redaction));
    text += separator + json + (isSecret ? spent(redacted, walk) : valueText(value, walk, next));
    separator = ",";
  }
  return text;
}

/** Returns the symbol `unreadable` if a getter or a Proxy throws. */
export function readMember(source: object, name: string | number): unknown {
  try {
    return (source as Readonly<Record<string | number, unknown>>)[name]; // safe: only read
  } catch {
    return unreadable;
  }
}

const redacted = '"[redacted]"';
const unreadable = Symbol("unreadable");

function valueText(value: unknown, walk: Walk, position: PathPosition): string {
  return value === unreadable ? spent('"[unreadable]"', walk) : jsonText(value, walk, position);
}

function spent(text: string, walk: Walk): string {
  walk.left -= text.length;
  return text;
}

function stringText(value: string, walk: Walk): string {
  const room = Math.max(0, Math.min(textLimits.stringLength, walk.left));
  const text = quoted(cut(value, room));
  // An escape takes up to six characters. A second cut limits many escapes to twice the room.
  return spent(
    text.length <= 2 * room + 100 ? text : quoted(cut(value, Math.floor(room / 3))),
    walk,
  );
}

function functionName(value: object): string {
  const name = readMember(value, "name");
  return typeof name === "string" && name !== "" ? `[function ${name}]` : "[function]";
}

function objectText(value: object, walk: Walk, position: PathPosition): string {
  if (walk.within.includes(value)) return spent('"[circular]"', walk);
  if (walk.within.length >= textLimits.depth) return spent('"[too deep]"', walk);
  walk.within.push(value);
  try {
    return shapeText(value, walk, position);
  } catch {
    // A Proxy trap, `toJSON` or an iterator threw.
    return spent('"[unreadable]"', walk);
  } finally {
    walk.within.pop();
  }
}

function shapeText(value: object, walk: Walk, position: PathPosition): string {
  if (Array.isArray(value)) return itemsText(value, value.length, walk, position);
  const prototype: unknown = Object.getPrototypeOf(value);
  const isPlain = prototype === Object.prototype || prototype === null;
  const special = isPlain ? undefined : specialText(value, walk, position);
  if (special !== undefined) return special;
  const toJson = "toJSON" in value ? value.toJSON : undefined;
  if (typeof toJson === "function") {
    const json: unknown = toJson.call(value, "");
    if (json !== value) return jsonText(json, walk, position);
  }
  const names = Object.keys(value);
  if (!isPlain && names.length === 0) return stringText(`[${className(value)}]`, walk);
  return `{${membersText(value, names, walk, position)}}`;
}

function isNumberOfCookies(name: string, value: unknown): boolean {
  return typeof value === "number" && name.toLowerCase() === "cookies";
}

/** Detects `{ name: "authorization", value: ... }`, the form of header lists. */
function isNamedSecret(source: object, redaction: Redaction): boolean {
  // AWS capitalizes the member names.
  const namesOfNames = ["name", "key", "Name", "Key"];
  return namesOfNames.some((name) => redaction.isSecretName(readMember(source, name)));
}

/** Redacts the item after the name of a secret: raw headers and entries alternate names and values. */
function itemsText(
  items: ArrayLike<unknown>,
  size: number,
  walk: Walk,
  position: PathPosition,
): string {
  let text = "[";
  let separator = "";
  let afterSecret = false;
  for (let index = 0; index < size; index += 1) {
    if (index === textLimits.entries || walk.left <= 0)
      return `${text}${separator}"[${size - index} items cut]"]`;
    walk.left -= 1;
    const item = readMember(items, index);
    const next = stepInto(position, `${index}`);
    const isSecret = afterSecret || endsPath(next);
    text += separator + (isSecret ? spent(redacted, walk) : valueText(item, walk, next));
    separator = ",";
    afterSecret = walk.redaction.isSecretName(item);
  }
  return `${text}]`;
}

function specialText(value: object, walk: Walk, position: PathPosition): string | undefined {
  if (isError(value)) return errorText(value, walk, position);
  if (types.isDate(value)) return stringText(dateText(value), walk);
  if (types.isMap(value)) return mapText(value, walk, position);
  if (types.isSet(value)) return itemsText(firstOf(value), value.size, walk, position);
  if (ArrayBuffer.isView(value) || types.isAnyArrayBuffer(value)) {
    // Writes only the count, because bytes are unreadable in a log and are often a key.
    return stringText(`[${className(value)}, ${value.byteLength} bytes]`, walk);
  }
  return types.isBoxedPrimitive(value) ? jsonText(value.valueOf(), walk, position) : undefined;
}

export function isError(value: object): value is Error {
  try {
    return types.isNativeError(value) || value instanceof Error;
  } catch {
    return false;
  }
}

function errorText(error: Error, walk: Walk, position: PathPosition): string {
  const known = ["name", "message", "stack", "errors", "cause"];
  const own = Object.keys(error).filter((name) => !known.includes(name));
  const names = known.toSpliced(3, 0, ...own.slice(0, textLimits.entries - known.length));
  return `{${membersText(error, names, walk, position)}}`;
}

function dateText(date: Date): string {
  const time = Date.prototype.getTime.call(date);
  return Number.isNaN(time) ? "[invalid date]" : new Date(time).toISOString();
}

function mapText(map: ReadonlyMap<unknown, unknown>, walk: Walk, position: PathPosition): string {
  const entries = firstOf(map);
  if (!entries.every(([key]) => typeof key === "string"))
    return itemsText(entries, map.size, walk, position);
  const members = Object.fromEntries(entries);
  const names = Object.keys(members);
  // The length of the map makes `membersText` count the entries that it leaves out.
  names.length = map.size;
  return `{${membersText(members, names, walk, position)}}`;
}

function firstOf<Item>(items: Iterable<Item>): Item[] {
  const first: Item[] = [];
  for (const item of items) {
    if (first.push(item) >= textLimits.entries) break;
  }
  return first;
}

function className(value: object): string {
  const made = readMember(value, "constructor");
  const name = typeof made === "function" ? readMember(made, "name") : undefined;
  return typeof name === "string" && name !== "" ? name : "object";
}
