import type { AttributeValue } from "@aws-sdk/client-dynamodb";
import { type AnswerToStore, loadAnswer, storeAnswer } from "../../parts/once/answer.ts";
import type { ClaimKey, CompletedClaim, StoredResult } from "../../parts/once/claim.ts";
import type { ClaimStore } from "../../parts/once/claim-store.ts";

/** Largest value stored in the record, in bytes. DynamoDB limits the whole item to 409,600. */
const largestValue = 400_000;
/** Prefix of a string with a DynamoDB value instead of plain JSON. Older versions fail to read it. */
const nativeText = "dynamodb:";

/** Never throws, because the function has run: returns why a result cannot be stored. */
export async function storableResult(result: unknown) {
  let storable: ReturnType<typeof storableValue>;
  let native: AttributeValue | undefined;
  try {
    storable = storableValue(result);
    native = storable.isNative || !storable.isJson ? await marshalled(storable.value) : undefined;
  } catch (error) {
    const reason = (error instanceof Error ? error.message : String(error)).slice(0, 300);
    return { kind: "unstorable" as const, reason };
  }
  const isInRecord = native !== undefined && storable.isNative && sizeOf(native) <= largestValue;
  return {
    kind: "storable" as const,
    /** Content of the record, if the result can be a DynamoDB value. */
    inRecord: isInRecord ? { value: native } : undefined,
    /** Returns what {@link resultOf} will read, as a copy. */
    restored: async () => (native === undefined ? storable.value : unmarshalled(native)),
    /** Stores a string that only keelson can read, in parts if it is large. */
    asText: (
      store: ClaimStore,
      claim: Omit<AnswerToStore, "answer" | "cipher">,
    ): Promise<StoredResult> => {
      const body = storable.isJson
        ? JSON.stringify(storable.value)
        : nativeText + JSON.stringify(native, bytesAsText);
      return storeAnswer(store, {
        ...claim,
        answer: { status: 200, headers: {}, cookies: [], body },
        cipher: undefined,
      });
    },
  };
}

/**
 * Returns the result of a completed claim; `null` if it is absent, because Middy treats `undefined`
 * as no response and would run the function again.
 *
 * @throws TypeError if the result could not be stored; Error if one of its parts is missing.
 */
export async function resultOf(
  store: ClaimStore,
  key: ClaimKey,
  claim: CompletedClaim,
): Promise<unknown> {
  const { unkept, value, parts, data } = { ...claim.result };
  if (unkept !== undefined) throw unstorableError(unkept);
  if (value !== undefined) return unmarshalled(value as AttributeValue); // safe: read from an item
  if (parts === undefined && data === undefined) return null;
  const text = (await loadAnswer(store, key, claim, undefined)).body;
  if (text === undefined) return null;
  const body = String(text);
  return body.startsWith(nativeText)
    ? unmarshalled(JSON.parse(body.slice(nativeText.length), textAsBytes))
    : JSON.parse(body);
}

/** Error for the caller whose function ran, and for all later callers. */
export function unstorableError(reason: string): TypeError {
  return new TypeError(
    `ClaimLayer: the function has run, and its result could not be stored: ${reason}; it is not run again. Return plain data`,
  );
}

async function marshalled(value: unknown): Promise<AttributeValue> {
  const { marshall } = await import("../../aws/clients/dynamodb-sdk.ts");
  return marshall({ value })["value"] as AttributeValue; // safe: `value` is not undefined
}

async function unmarshalled(value: AttributeValue): Promise<unknown> {
  const { unmarshall } = await import("../../aws/clients/dynamodb-sdk.ts");
  return unmarshall({ value })["value"];
}

/** Returns a value's size as DynamoDB calculates it. */
function sizeOf(value: AttributeValue): number {
  if (value.S !== undefined) return Buffer.byteLength(value.S);
  if (value.N !== undefined) return numberSize(value.N);
  if (value.B !== undefined) return value.B.byteLength;
  if (value.SS !== undefined) return sum(value.SS.map((text) => Buffer.byteLength(text)));
  if (value.NS !== undefined) return sum(value.NS.map(numberSize));
  if (value.BS !== undefined) return sum(value.BS.map(({ byteLength }) => byteLength));
  if (value.L !== undefined) return 3 + sum(value.L.map((item) => 1 + sizeOf(item)));
  const members = Object.entries(value.M ?? {});
  return 3 + sum(members.map(([name, member]) => 1 + Buffer.byteLength(name) + sizeOf(member)));
}

function numberSize(text: string): number {
  return Math.ceil(text.length / 2) + 2;
}

function sum(sizes: readonly number[]): number {
  return sizes.reduce((total, size) => total + size, 0);
}

const bytesName = "\u0000bytes";

function bytesAsText(this: Record<string, unknown>, name: string, value: unknown): unknown {
  // `value` is already the JSON form of a Buffer, unlike `this[name]`.
  const given = this[name];
  return given instanceof Uint8Array
    ? { [bytesName]: Buffer.from(given).toString("base64") }
    : value;
}

function textAsBytes(_name: string, value: unknown): unknown {
  // Safe: only `null` has no members, and JSON contains no `undefined`.
  const text = (value as { readonly [bytesName]?: unknown } | null)?.[bytesName];
  return typeof text === "string" ? new Uint8Array(Buffer.from(text, "base64")) : value;
}

/** DynamoDB's nesting limit, minus the levels of the attribute itself. */
const deepest = 30;

/**
 * Returns a function's result as plain data, and whether it has JSON's types only and whether it can
 * be a DynamoDB value. Maps become objects, as in Powertools' own layer. Dates and other class
 * instances become their JSON form. Undefined members, functions and symbols are left out.
 *
 * @throws TypeError that names the first value that could not be restored: NaN, an infinity, a
 * cycle, an empty or mixed set.
 */
function storableValue(result: unknown) {
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
        refuse(path, "is a Set with other values than only strings, only numbers or only bytes");
      isJson = false;
      return new Set(items);
    }
    const isMap = value instanceof Map;
    const members = isMap ? value : Object.entries(value);
    const kind = Object.prototype.toString.call(value).slice("[object ".length, -1);
    if (!isMap && kind !== "Object") refuse(path, `is a ${kind}`);
    const copy: [string, unknown][] = [];
    for (const [key, member] of members) {
      if (isMap && typeof key !== "string" && typeof key !== "number")
        refuse(path, "is a Map with keys other than strings");
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

function refuse(path: string, problem: string): never {
  throw new TypeError(`${path} ${problem}`);
}
