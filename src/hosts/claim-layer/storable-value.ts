export interface StorableValue {
  /** Plain data without undefined members, class instances or cycles. */
  readonly value: unknown;
  /** Whether JSON can represent the value: it has no sets, bytes or BigInts. */
  readonly isJson: boolean;
  /** Whether the value can be a DynamoDB value. */
  readonly isNative: boolean;
}

/** DynamoDB's nesting limit, minus the levels of the attribute itself. */
const deepest = 30;

/**
 * Returns a function's result in the form in which it is stored. Maps become objects, as in
 * Powertools' own layer. Dates and other class instances become their JSON form. Undefined members,
 * functions and symbols are left out, as in JSON.
 *
 * @throws TypeError that names the first value that could not be restored: NaN, an infinity, a
 * cycle, an empty or mixed set.
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
      // For a member named `__proto__`, the SDK would set the prototype.
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
