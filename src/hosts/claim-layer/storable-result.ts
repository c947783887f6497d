import type { AttributeValue } from "@aws-sdk/client-dynamodb";
import { type AnswerToStore, loadAnswer, storeAnswer } from "../../parts/once/answer.ts";
import type { ClaimKey, CompletedClaim, StoredResult } from "../../parts/once/claim.ts";
import type { ClaimStore } from "../../parts/once/claim-store.ts";
import { type StorableValue, storableValue } from "./storable-value.ts";

/** A function's result on its way into a record that Powertools' own layer reads too. */
export type StorableResult =
  | {
      readonly kind: "storable";
      /** What the record holds, where it can be a value of DynamoDB's. */
      readonly inRecord: StoredResult | undefined;
      /** Stores it as text, in parts if it is large. Only keelson can read it then. */
      asText(
        store: ClaimStore,
        claim: Omit<AnswerToStore, "answer" | "cipher">,
      ): Promise<StoredResult>;
    }
  | { readonly kind: "unstorable"; readonly reason: string };

/** An item ends at 409,600 bytes, its key and the other attributes included. */
const largestValue = 400_000;
/** What a text begins with that is a value of DynamoDB's and no JSON: other versions fail on it. */
const nativeText = "dynamodb:";

/** Prepares a result to be stored. Never throws, since the function has run: what cannot be stored gives the reason. */
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
 * The result of a completed claim: `null` for nothing at all, since Middy takes `undefined` for no answer and runs the
 * function again.
 *
 * @throws TypeError where it could not be stored; Error where a part of it is not there.
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

/** What the caller gets whose function ran, and everybody after it. */
export function unstorableError(reason: string): TypeError {
  return new TypeError(
    `ClaimLayer: the function has run, and its result could not be stored: ${reason}; it is not run again. Return plain data`,
  );
}

async function marshalled(value: unknown): Promise<AttributeValue> {
  const { marshall } = await import("../../aws/clients/dynamodb-sdk.ts");
  const { value: native } = marshall({ value });
  return native as AttributeValue; // safe: the value is not undefined
}

async function unmarshalled(value: AttributeValue): Promise<unknown> {
  const { unmarshall } = await import("../../aws/clients/dynamodb-sdk.ts");
  return unmarshall({ value })["value"];
}

/** How DynamoDB counts a value: texts in UTF-8, numbers by two digits, 3 bytes for a list or map and 1 for each element. */
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
  // A Buffer has a form of its own in JSON by the time it comes here.
  const given = this[name];
  return given instanceof Uint8Array
    ? { [bytesName]: Buffer.from(given).toString("base64") }
    : value;
}

function textAsBytes(_name: string, value: unknown): unknown {
  const text = (value as { readonly [bytesName]?: unknown } | null)?.[bytesName]; // safe: all but null and undefined have members
  return typeof text === "string" ? new Uint8Array(Buffer.from(text, "base64")) : value;
}

/** What was wrong, as far as a record should hold it. */
function describe(error: unknown): string {
  return (error instanceof Error ? error.message : String(error)).slice(0, 300);
}
