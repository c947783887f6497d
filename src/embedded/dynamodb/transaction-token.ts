import { createHash } from "node:crypto";
import { isRecord } from "../../base/errors/option-table.ts";
import { type Change, rangeOf, type Store } from "../service/dynalite.ts";
import { dynamoDbError } from "../service/service.ts";

export const tokenPrefix = "keelson-token~";
const validMs = 10 * 60_000;

export type TransactionToken = ReturnType<typeof transactionToken>;

interface StoredToken {
  readonly payload: string;
  readonly at: number;
}

/** The order of members has no effect. */
export function transactionToken(token: string, items: unknown) {
  return { key: tokenPrefix + sha256(token), payload: sha256(canonical(items)) };
}

/** @throws ServiceError if the token belongs to another transaction. */
export async function isCommitted(store: Store, { key, payload }: TransactionToken, nowMs: number) {
  const stored = (await store.db.get(key)) as StoredToken | undefined; // only tokenRecord writes it
  if (stored === undefined || nowMs - stored.at >= validMs) return false;
  if (stored.payload === payload) return true;
  throw dynamoDbError(
    "IdempotentParameterMismatchException",
    "The request uses the same client token as a previous, but non-identical request",
  );
}

/** For the transaction's own batch, so that both are stored or neither. */
export function tokenRecord({ key, payload }: TransactionToken, nowMs: number): Change {
  return { type: "put", key, value: { payload, at: nowMs } satisfies StoredToken };
}

/** Checks `limit` tokens. Returns the next cursor; `""` is the start. */
export async function dropOldTokens(store: Store, nowMs: number, limit: number, cursor: string) {
  const old: Change[] = [];
  const range = { ...rangeOf(tokenPrefix), ...(cursor === "" ? {} : { gte: cursor }), limit };
  let last = "";
  let seen = 0;
  for await (const [key, value] of store.db.iterator(range)) {
    if (nowMs - (value as StoredToken).at >= validMs) old.push({ type: "del", key });
    last = key;
    seen += 1;
  }
  await store.db.batch(old);
  return seen === limit ? last : "";
}

function sha256(text: string) {
  return createHash("sha256").update(text).digest("base64url");
}

function canonical(value: unknown) {
  return JSON.stringify(value, (_name, member: unknown) =>
    isRecord(member)
      ? Object.fromEntries(Object.entries(member).sort(([one], [other]) => (one < other ? -1 : 1)))
      : member,
  );
}
