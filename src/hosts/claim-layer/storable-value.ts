/** A result in the shape that is stored, and what it needs. */
export interface StorableValue {
  /** Plain data: no undefined members, no class instances, no cycles. */
  readonly value: unknown;
  /** Whether JSON has it: no sets, bytes or BigInts. */
  readonly isJson: boolean;
  /** Whether it can be a value of DynamoDB's. */
  readonly isNative: boolean;
}

/** As deep as DynamoDB nests, less what the attribute itself takes. */
const deepest = 30;

/**
 * The shape in which a function's result is stored: maps are objects, as Powertools' own layer stores them; dates and
 * other class instances are what JSON makes of them; undefined members, functions and symbols are left out, as in JSON.
 *
 * @throws TypeError naming the first value that would not come back: NaN, an infinity, a cycle, an empty or mixed set.
 */
export function storableValue(result: unknown): StorableValue {
  let [isJson, isNative] = [true, true];

  const walk = (given: unknown, path: string, above: readonly unknown[]): unknown => {
    const value = isBytes(given) ? given : plain(given, path);
    if (above.length > deepest) isNative = false;
    if (typeof value === "string") {
      if (!value.isWellFormed()) isNative = false;
      return value;
    }
    if (typeof value === "number") {
      if (!Number.isFinite(value)) refuse(path, `is ${value}`);
      if (Math.abs(value) > Number.MAX_SAFE_INTEGER) isNative = false;
      return value;
    }
    if (typeof value === "bigint" || isBytes(value)) {
      isJson = false;
      return isBytes(value) ? bytesOf(value) : value;
    }
    if (typeof value !== "object" || value === null) return value;
    if (above.includes(value)) refuse(path, "refers to itself");
    const within = [...above, value];
    if (Array.isArray(value)) {
      return Array.from(
        value,
        (item: unknown, index) => walk(item, `${path}[${index}]`, within) ?? null,
      );
    }
    if (value instanceof Set) {
      const items = [...value].map((item) => walk(item, `${path} (a Set)`, within));
      const kinds = new Set(items.map(kindOf));
      if (kinds.size !== 1 || kinds.has(undefined))
        refuse(path, "is a Set of other than only texts, only numbers or only bytes");
      isJson = false;
      return new Set(items);
    }
    const isMap = value instanceof Map;
    const members = isMap ? value : Object.entries(value);
    if (!isMap && Object.prototype.toString.call(value) !== "[object Object]")
      refuse(path, `is a ${nameOf(value)}`);
    const copy: [string, unknown][] = [];
    for (const [key, member] of members) {
      if (isMap && typeof key !== "string" && typeof key !== "number")
        refuse(path, "is a Map with keys other than texts");
      const name = String(key);
      // The SDK sets the prototype where a member has this name.
      if (!name.isWellFormed() || name === "__proto__") isNative = false;
      const stored = walk(member, `${path}.${name}`, within);
      if (stored !== undefined) copy.push([name, stored]);
    }
    return Object.fromEntries(copy);
  };

  if (typeof result === "function" || typeof result === "symbol")
    refuse("result", `is a ${typeof result}`);
  const value = walk(result, "result", []) ?? null;
  return { value, isJson, isNative };
}

/** What JSON makes of it, where it has a say. */
function plain(value: unknown, path: string): unknown {
  if (typeof value === "function" || typeof value === "symbol") return undefined;
  if (typeof value !== "object" || value === null) return value;
  if (value instanceof Date && Number.isNaN(value.getTime())) refuse(path, "is an invalid date");
  if ("toJSON" in value && typeof value.toJSON === "function") return value.toJSON("");
  if (value instanceof String || value instanceof Number || value instanceof Boolean)
    return value.valueOf();
  return value;
}

function isBytes(value: unknown): value is ArrayBufferView | ArrayBuffer {
  return ArrayBuffer.isView(value) || value instanceof ArrayBuffer;
}

function bytesOf(value: ArrayBufferView | ArrayBuffer): Uint8Array {
  return ArrayBuffer.isView(value)
    ? new Uint8Array(value.buffer, value.byteOffset, value.byteLength)
    : new Uint8Array(value);
}

/** What sets of DynamoDB's are made of. */
function kindOf(value: unknown): string | undefined {
  if (typeof value === "string") return "text";
  if (typeof value === "number" || typeof value === "bigint") return "number";
  return value instanceof Uint8Array ? "bytes" : undefined;
}

function nameOf(value: object): string {
  return Object.prototype.toString.call(value).slice("[object ".length, -1);
}

function refuse(path: string, problem: string): never {
  throw new TypeError(`${path} ${problem}`);
}
