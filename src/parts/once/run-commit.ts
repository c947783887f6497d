import { CommitConditionError, FrameworkError } from "../../base/errors/errors.ts";
import type { Clock } from "../../base/process/clock.ts";
import { type AnswerCipher, saysNotDone, storeAnswer, type WriteAnswer } from "./answer.ts";
import { expiry } from "./claim.ts";
import type {
  CancellationReason,
  ClaimCommit,
  ClaimStore,
  TransactionItem,
} from "./claim-store.ts";
import { assertCommittable, sizeOf, withoutNote } from "./committable.ts";
import type { Claim } from "./held-claim.ts";

/** An item of keelson's own that tries again if its condition fails. */
export interface Contested {
  readonly item: TransactionItem;
  /** Returns the item for the next attempt. @throws why the commit fails. */
  again(): Promise<Contested>;
}

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
/** Other commits change contested items as well. */
const maxContests = 25;
/** Errors with which DynamoDB, or the SDK before sending, refuses a request. */
const refusals = [
  "ValidationException",
  "AccessDeniedException",
  "ResourceNotFoundException",
  "IdempotentParameterMismatchException",
  "TypeError",
];
const recordBytes = 1_024;

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
      const next = await this.#renewed(transaction, reasons);
      // An attempt whose outcome is unknown may still be written. Only a claim refuses the second.
      if (next !== transaction && failures > 0 && first.completed === undefined) {
        this.#isUncertain = true;
        throw new Error(`ctx.commit: ${describe(reasons)}, after an attempt without an answer`);
      }
      transaction = next;
      await pause(conflicts);
    }
    this.#isUncertain = false;
  }

  /** Replaces the contested items whose conditions failed. */
  async #renewed(
    transaction: ClaimCommit,
    reasons: readonly CancellationReason[],
  ): Promise<ClaimCommit> {
    const { items } = transaction;
    const from = items.length - this.#contested.length;
    const failed = (index: number) => reasons[from + index]?.code === "ConditionalCheckFailed";
    if (!this.#contested.some((_, index) => failed(index))) return transaction;
    this.#contested = await Promise.all(
      this.#contested.map((one, index) => (failed(index) ? one.again() : one)),
    );
    const renewed = [...items.slice(0, from), ...this.#contested.map(({ item }) => item)];
    return { ...transaction, items: renewed, token: crypto.randomUUID() };
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
    if (!reasons.every(mayRetry)) throw new Error(`ctx.commit: ${describe(reasons)}`);
    return false;
  }

  async #hasLanded({ completed }: ClaimCommit): Promise<boolean> {
    if (completed === undefined) return false;
    const record = await this.#options.store.read(completed.key);
    return record?.status === "COMPLETED" && record.owner === completed.claim.owner;
  }
}

function assertRepeatable(answer: WriteAnswer): void {
  if (answer.cookies.length > 0)
    throw new TypeError(
      "ctx.commit: an answer with cookies is never stored; set them in another request",
    );
  if (saysNotDone(answer))
    throw new TypeError(
      `ctx.commit: an answer of ${answer.status} says that nothing was done; throw instead`,
    );
}

/** Whether DynamoDB, the SDK or keelson refused the request, so that nothing was written. */
function isRefusal(error: unknown): boolean {
  return (
    error instanceof FrameworkError || (error instanceof Error && refusals.includes(error.name))
  );
}

function describe(reasons: readonly CancellationReason[]): string {
  const codes = reasons.flatMap(({ code }, index) =>
    code === "None" ? [] : [`item ${index}: ${code}`],
  );
  return `DynamoDB cancelled the transaction (${codes.join(", ") || "without a reason"})`;
}
