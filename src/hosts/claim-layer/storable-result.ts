import type { AttributeValue } from "@aws-sdk/client-dynamodb";
import { type AnswerToStore, loadAnswer, storeAnswer } from "../../parts/once/answer.ts";
import type { ClaimKey, CompletedClaim, StoredResult } from "../../parts/once/claim.ts";
import type { ClaimStore } from "../../parts/once/claim-store.ts";
import { type StorableValue, storableValue } from "./storable-value.ts";

/** Function result, prepared for a record that Powertools' own layer also reads. */
export type StorableResult =
  | {
      readonly kind: "storable";
      /** Content of the record, if the result can be a DynamoDB value. */
      readonly inRecord: StoredResult | undefined;
      /** Stores the result as a string that only keelson can read, in parts if it is large. */
      asText(
        store: ClaimStore,
        claim: Omit<AnswerToStore, "answer" | "cipher">,
      ): Promise<StoredResult>;
    }
  | { readonly kind: "unstorable"; readonly reason: string };

/**
 * Largest value stored in the record, in bytes. DynamoDB limits an item to 409,600, including its
 * key and all other attributes.
 */
const largestValue = 400_000;
/**
 * Prefix of a string that contains a DynamoDB value instead of plain JSON. Versions that do not
 * know the prefix fail to read the string.
 */
const nativeText = "dynamodb:";

/**
 * Prepares a result for storage. Never throws, because the function has run: returns the reason why
 * a result cannot be stored.
 */
export async function storableResult(result: unknown): Promise<StorableResult> {
  let storable: StorableValue;
  let native: AttributeValue | undefined;
  try {
    storable = storableValue(result);
    native = storable.isNative || !storable.isJson ? await marshalled(storable.value) : undefined;
  } catch (error) {
    return { kind: "unstorable", reason: describe(error) };
  }
  const isInRecord = native !== undefined && storable.isNative && sizeOf(native) <= largestValue;
  return {
    kind: "storable",
    inRecord: isInRecord ? { value: native } : undefined,
    asText: (store, claim) => {
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

/** Creates the error that the caller whose function ran and all later callers receive. */
export function unstorableError(reason: string): TypeError {
  return new TypeError(
    `ClaimLayer: the function has run, and its result could not be stored: ${reason}; it is not run again. Return plain data`,
  );
}

async function marshalled(value: unknown): Promise<AttributeValue> {
  const { marshall } = await import("../../aws/clients/dynamodb-sdk.ts");
  const { value: native } = marshall({ value });
  return native as AttributeValue; // safe: `value` is not undefined
}

async function unmarshalled(value: AttributeValue): Promise<unknown> {
  const { unmarshall } = await import("../../aws/clients/dynamodb-sdk.ts");
  return unmarshall({ value })["value"];
}

/**
 * Returns the size of a value as DynamoDB calculates it: strings in UTF-8, numbers by two digits, 3
 * bytes for a list or map and 1 for each element.
 */
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

function describe(error: unknown): string {
  return (error instanceof Error ? error.message : String(error)).slice(0, 300);
}
