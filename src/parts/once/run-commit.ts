import { CommitConditionError, FrameworkError } from "../../base/errors/errors.ts";
import type { Clock } from "../../base/process/clock.ts";
import { type AnswerCipher, assertRepeatable, storeAnswer, type WriteAnswer } from "./answer.ts";
import { expiry } from "./claim.ts";
import {
  type CancellationReason,
  type ClaimCommit,
  type ClaimStore,
  isRefusal,
  type TransactionItem,
} from "./claim-store.ts";
import { type Contested, maxContests, renewed } from "./contested.ts";
import type { Claim } from "./held-claim.ts";

export interface RunCommitOptions {
  readonly store: ClaimStore;
  readonly clock: Clock;
  readonly pause: (attempt: number) => Promise<void>;
  readonly claim: Claim | undefined;
  /** If not, the run must still hold its claim. */
  readonly completes: boolean;
  readonly tenantId?: string | undefined;
  readonly cipher: AnswerCipher | undefined;
  /**
   * Returns the part of an answer to store. Absent if no answer is stored.
   * @throws if the answer cannot be sent.
   */
  readonly toStored: ((answer: WriteAnswer) => WriteAnswer) | undefined;
  /** No commit starts after it aborts. */
  readonly signal: AbortSignal | undefined;
}

export interface Committed {
  readonly answer: WriteAnswer;
  /** Part of the answer that repeats get. */
  readonly stored: WriteAnswer | undefined;
  /** In epoch seconds. */
  readonly expiresAt: number;
}

/** Cancellation codes that allow a retry. */
const passing = ["None", "TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded"];
const [maxConflicts, maxFailures] = [10, 3];
const recordBytes = 1_024;
const actionNames = ["Put", "Update", "Delete", "ConditionCheck"];
/** DynamoDB's limits for a transaction (items, bytes) and for an item (bytes). */
const [maxItems, maxBytes, maxItemBytes] = [100, 4 * 1_048_576, 409_600];
/** Above DynamoDB's 32 levels of an attribute, which are below those of the item. */
const maxLevels = 40;

export class RunCommit {
  readonly #options: RunCommitOptions;
  #committed: Committed | undefined;
  #isUncertain = false;
  #pending: Promise<void> | undefined;
  /** Behind the other items of the transaction. */
  #contested: readonly Contested[] = [];

  constructor(options: RunCommitOptions) {
    this.#options = options;
  }

  /**
   * Writes the items together with the completed claim and its answer, atomically, once per run.
   *
   * @param own - items that keelson adds to the transaction.
   * @param contested - more of these, whose conditions depend on other commits.
   * @throws the errors of `contested`; CommitConditionError if a condition of an item did not hold; FrameworkError
   * `request_in_progress` if another run has taken over; RangeError and TypeError for items or
   * answers that cannot be committed; any error of the store if the outcome remains unknown.
   */
  async commit(
    items: readonly TransactionItem[],
    answer: WriteAnswer,
    own: readonly TransactionItem[] = [],
    contested: readonly Contested[] = [],
  ): Promise<void> {
    const { signal, toStored, claim, clock } = this.#options;
    signal?.throwIfAborted();
    if (this.#pending !== undefined || this.#committed !== undefined || this.#isUncertain)
      throw new Error("ctx.commit: a run commits once; put all items into one call");
    if (toStored !== undefined) assertRepeatable(answer);
    const added = [...own, ...contested.map(({ item }) => item)];
    const reserved = added.length + (claim === undefined ? 0 : 1);
    assertCommittable(items, reserved, recordBytes + sizeOf(added));
    this.#contested = contested;
    const sent = [...items.map(withoutNote), ...added];
    this.#pending = this.#write(sent, answer, toStored?.(answer), clock.now());
    try {
      await this.#pending;
    } finally {
      this.#pending = undefined;
    }
  }

  /** Never rejects: the caller of `commit` gets the error. */
  async settled(): Promise<void> {
    await this.#pending?.catch(() => undefined);
  }

  committed(): Committed | undefined {
    return this.#committed;
  }

  isUncertain(): boolean {
    return this.#isUncertain;
  }

  async #write(
    items: readonly TransactionItem[],
    answer: WriteAnswer,
    stored: Committed["stored"],
    nowMs: number,
  ): Promise<void> {
    const { claim, completes, tenantId } = this.#options;
    const expiresAt = expiry(nowMs, claim?.retentionMs());
    const completed =
      claim && completes ? await this.#completion(claim, stored, expiresAt) : undefined;
    const held = claim && !completes ? { key: claim.key, owner: claim.owner } : undefined;
    if (items.length > 0 || completed !== undefined) {
      const transaction = { items, completed, held, tenantId, token: crypto.randomUUID() };
      await (claim === undefined
        ? this.#transact(transaction)
        : claim.paused(() => this.#transact(transaction)));
    }
    this.#committed = { answer, stored, expiresAt };
  }

  async #completion(
    { key, owner, fingerprint, generation }: Claim,
    answer: Committed["stored"],
    expiresAt: number,
  ): Promise<ClaimCommit["completed"]> {
    const { store, cipher } = this.#options;
    const result =
      answer === undefined
        ? undefined
        : await storeAnswer(store, { answer, key, owner, expiresAt, cipher });
    return {
      key,
      claim: { status: "COMPLETED", owner, expiresAt, fingerprint, generation, result },
    };
  }

  /**
   * Retries the transaction. All attempts with the same items have the same token, so DynamoDB
   * writes at most one.
   */
  async #transact(first: ClaimCommit): Promise<void> {
    const { store, pause } = this.#options;
    const most = this.#contested.length === 0 ? maxConflicts : maxContests;
    let transaction = first;
    let [conflicts, failures] = [0, 0];
    for (;;) {
      let reasons: readonly CancellationReason[] | undefined;
      try {
        reasons = await store.commit(transaction);
      } catch (error) {
        if (isRefusal(error)) throw error;
        this.#isUncertain = true;
        if (await this.#hasLanded(transaction).catch(() => false)) break;
        failures += 1;
        if (failures === maxFailures) throw error;
        await pause(failures);
        continue;
      }
      if (reasons === undefined) break;
      if (await this.#isWrittenOrGone(transaction, reasons)) break;
      conflicts += 1;
      if (conflicts === most)
        throw new Error(`ctx.commit: ${describe(reasons)}, after ${conflicts} attempts`);
      const next = await renewed(transaction, this.#contested, reasons);
      // An attempt whose outcome is unknown may still be written. Only a claim refuses the second.
      if (next !== undefined && failures > 0 && first.completed === undefined) {
        this.#isUncertain = true;
        throw new Error(`ctx.commit: ${describe(reasons)}, after an attempt without an answer`);
      }
      if (next !== undefined) ({ transaction, contested: this.#contested } = next);
      await pause(conflicts);
    }
    this.#isUncertain = false;
  }

  /** Whether an earlier attempt wrote the transaction. @throws if it cannot be retried. */
  async #isWrittenOrGone(
    transaction: ClaimCommit,
    reasons: readonly CancellationReason[],
  ): Promise<boolean> {
    const { completed, held, items } = transaction;
    const own = (completed ?? held) && reasons[items.length];
    if (own?.code === "ConditionalCheckFailed") {
      if (await this.#hasLanded(transaction)) return true;
      this.#isUncertain = false;
      this.#options.claim?.lose();
      throw new FrameworkError("request_in_progress", "Another run of this request has taken over");
    }
    this.#isUncertain = false;
    const contestedFrom = items.length - this.#contested.length;
    const others = reasons.slice(0, contestedFrom);
    const index = others.findIndex(({ code }) => code === "ConditionalCheckFailed");
    const failed = others[index];
    if (failed !== undefined)
      throw new CommitConditionError(index, failed.message || "the condition did not hold");
    const ofContested = ["ConditionalCheckFailed", ...passing];
    const mayRetry = ({ code }: CancellationReason, at: number) =>
      (at < contestedFrom ? passing : ofContested).includes(code);
    if (reasons.some(({ code }) => code === "ValidationError"))
      throw new TypeError(`ctx.commit: ${describe(reasons)}`);
    if (!reasons.every(mayRetry)) throw new Error(`ctx.commit: ${describe(reasons)}`);
    return false;
  }

  async #hasLanded({ completed }: ClaimCommit): Promise<boolean> {
    if (completed === undefined) return false;
    const record = await this.#options.store.read(completed.key);
    return record?.status === "COMPLETED" && record.owner === completed.claim.owner;
  }
}

function describe(reasons: readonly CancellationReason[]): string {
  const codes = reasons.flatMap(({ code, message }, index) =>
    code === "None" ? [] : [`item ${index}: ${code} ${message}`.trim()],
  );
  return `DynamoDB cancelled the transaction (${codes.join(", ") || "without a reason"})`;
}

/**
 * @param reserved - number of items that keelson adds: one for a claim, one for each effect, one
 * more for a kept event, and up to three more for an effect above 384 KiB.
 * @throws RangeError with the limit and the actual number; TypeError for a malformed list or item.
 */
export function assertCommittable(
  items: readonly TransactionItem[],
  reserved: number,
  reservedBytes: number,
): void {
  assertActions(items);
  if (items.length + reserved > maxItems)
    throw new RangeError(
      `ctx.commit: ${items.length} items and ${reserved} of keelson's own are more than the ${maxItems} of a transaction; commit fewer items, or publish, enqueue and send with { afterCommit: false }`,
    );
  let total = reservedBytes;
  for (const [index, item] of items.entries()) {
    const bytes = sizeOf(item);
    if (bytes > maxItemBytes + 65_536)
      throw new RangeError(
        `ctx.commit: item ${index} has some ${bytes} bytes, and an item of DynamoDB at most ${maxItemBytes}`,
      );
    total += bytes;
  }
  if (total > maxBytes)
    throw new RangeError(
      `ctx.commit: the items have some ${total} bytes, and a transaction of DynamoDB at most ${maxBytes}; commit less`,
    );
}

/** @throws TypeError for a malformed list or item. */
export function assertActions(items: readonly TransactionItem[]): void {
  if (!Array.isArray(items))
    throw new TypeError("ctx.commit: the items are not a list; pass [] to commit only a result");
  for (const [index, item] of items.entries()) {
    const [action, ...others] = Object.keys(withoutNote(item ?? {})).filter(
      (name) => item[name] !== undefined,
    );
    if (others.length > 0 || !actionNames.includes(String(action)))
      throw new TypeError(
        `ctx.commit: item ${index} is not one of Put, Update, Delete and ConditionCheck`,
      );
  }
}

/**
 * Estimates the size of a value in bytes, as DynamoDB counts it.
 * @throws TypeError if it has too many levels, or a member that the SDK would lose.
 */
function sizeOf(value: unknown, level = 0): number {
  if (typeof value === "string") return Buffer.byteLength(value);
  if (typeof value === "number" || typeof value === "bigint")
    return Math.ceil(String(value).length / 2) + 1;
  if (value instanceof Uint8Array || value instanceof ArrayBuffer) return value.byteLength;
  if (value instanceof Set) return sizeOf([...value], level);
  if (typeof value !== "object" || value === null) return 1;
  if (level === maxLevels)
    throw new TypeError(
      "ctx.commit: an item has more than DynamoDB's 32 levels, or contains itself",
    );
  let bytes = 3;
  for (const [name, part] of Object.entries(value)) {
    if (name === "__proto__")
      throw new TypeError('ctx.commit: the SDK loses a member named "__proto__"; rename it');
    bytes += (Array.isArray(value) ? 0 : Buffer.byteLength(name)) + 1 + sizeOf(part, level + 1);
  }
  return bytes;
}

/** DynamoDB-Toolbox adds `ToolboxItem` to its items, for itself. */
function withoutNote({ ToolboxItem: _note, ...item }: TransactionItem): TransactionItem {
  return item;
}
