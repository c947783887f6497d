import { expect, test } from "vitest";
import { claimKey, completedClaim } from "./claim.ts";
import type { CancellationReason, ClaimCommit, ClaimStore } from "./claim-store.ts";
import type { Contested } from "./contested.ts";
import type { Claim } from "./held-claim.ts";
import { RunCommit } from "./run-commit.ts";

const key = claimKey(["n"], "r1");
const answer = { status: 200, headers: {}, cookies: [], body: "done" };
const put = { Put: { n: 1 } };
type Said = readonly CancellationReason[] | undefined | Error | string;

/** A commit over a store that says one thing after the other, the last for ever. */
function committing(said: readonly Said[], { isClaimed = true, hasLanded = false } = {}) {
  const sent: ClaimCommit[] = [];
  const store = {
    commit: async (commit: ClaimCommit) => {
      sent.push(commit);
      const next = said[Math.min(sent.length, said.length) - 1];
      if (next instanceof Error || typeof next === "string") throw next;
      return next;
    },
    read: async () => (hasLanded ? completedClaim("ann", 0) : undefined),
  } as unknown as ClaimStore; // nothing else is asked of it
  let isLost = false;
  const claim = {
    key,
    owner: "ann",
    fingerprint: undefined,
    retentionMs: () => 300_000,
    lose: () => {
      isLost = true;
    },
    paused: (work: () => Promise<unknown>) => work(),
  } as unknown as Claim; // the parts that a commit uses
  const run = new RunCommit({
    store,
    clock: { now: () => 0 },
    pause: async () => {},
    claim: isClaimed ? claim : undefined,
    completes: true,
    cipher: undefined,
    toStored: (given) => given,
    signal: undefined,
  });
  return { run, sent, isLost: () => isLost };
}
const reason = (code: string, message = "") => ({ code, message });
const named = (name: string) => Object.assign(new Error(name), { name });

test("does not retry a transaction that DynamoDB refuses outright, and leaves no uncertainty", async () => {
  for (const name of ["ValidationException", "ResourceNotFoundException", "TypeError"]) {
    const { run, sent } = committing([named(name)]);
    await expect(run.commit([put], answer)).rejects.toThrow(name);
    expect([sent.length, run.isUncertain()]).toEqual([1, false]);
  }
});

test("an item that DynamoDB cancels as invalid is a TypeError with its reason", async () => {
  const { run, sent } = committing([[reason("ValidationError", "empty key"), reason("None")]]);
  const failed = run.commit([put], answer);
  await expect(failed).rejects.toThrow(TypeError);
  await expect(failed).rejects.toThrow("(item 0: ValidationError empty key)");
  expect([sent.length, run.isUncertain()]).toEqual([1, false]);
});

test("without a claim, settles a lost answer by sending the same transaction again", async () => {
  const { run, sent } = committing([named("TimeoutError"), "socket hang up", undefined], {
    isClaimed: false,
  });
  await run.commit([put], answer);
  expect(new Set(sent.map(({ token }) => token)).size).toBe(1);
  expect([sent.length, sent[0]?.completed, run.isUncertain()]).toEqual([3, undefined, false]);
});

test("sends nothing for an empty commit without a claim", async () => {
  const { run, sent } = committing([undefined], { isClaimed: false });
  await run.commit([], answer);
  expect([sent.length, run.committed()?.answer]).toEqual([0, answer]);
});

test("treats a failed claim condition as committed if an earlier attempt has landed", async () => {
  const { run, isLost } = committing([[reason("None"), reason("ConditionalCheckFailed")]], {
    hasLanded: true,
  });
  await run.commit([put], answer);
  expect([run.committed()?.answer, isLost()]).toEqual([answer, false]);
});

test("reports a claim lost to another run, with nothing written", async () => {
  const { run, isLost } = committing([[reason("None"), reason("ConditionalCheckFailed")]]);
  await expect(run.commit([put], answer)).rejects.toMatchObject({ code: "request_in_progress" });
  expect([isLost(), run.isUncertain(), run.committed()]).toEqual([true, false, undefined]);
});

test("a failed item condition names the item, and allows another commit", async () => {
  const failed = [
    reason("None"),
    reason("ConditionalCheckFailed", "The conditional request failed"),
    reason("None"),
  ];
  const { run } = committing([
    failed,
    [reason("ConditionalCheckFailed"), reason("None")],
    undefined,
  ]);
  await expect(run.commit([put, put], answer)).rejects.toMatchObject({
    index: 1,
    reason: "The conditional request failed",
  });
  await expect(run.commit([put], answer)).rejects.toMatchObject({
    index: 0,
    reason: "the condition did not hold",
  });
  await run.commit([put], answer);
  expect(run.committed()?.answer).toBe(answer);
});

test.each([
  [
    [reason("ItemCollectionSizeLimitExceeded"), reason("None")],
    "item 0: ItemCollectionSizeLimitExceeded",
  ],
  [[], "without a reason"],
])("a transaction cancelled with %j gives the reason", async (reasons, message) => {
  const { run } = committing([reasons]);
  await expect(run.commit([put], answer)).rejects.toThrow(message);
});

/** An item that is tried with growing numbers, until `refuse` throws. */
function contestedItem(number = 1, refuse = (_number: number): void => undefined): Contested {
  const again = async () => {
    refuse(number);
    return contestedItem(number + 1, refuse);
  };
  return { item: { Update: { number } }, again };
}
const failed = reason("ConditionalCheckFailed");
const none = reason("None");

test("replaces a contested item whose condition failed, with a new token, and no other", async () => {
  const { run, sent } = committing([[none, failed, none, none], undefined]);
  await run.commit([put], answer, [], [contestedItem(), contestedItem(7)]);
  expect(sent.map(({ items }) => items)).toEqual([
    [put, { Update: { number: 1 } }, { Update: { number: 7 } }],
    [put, { Update: { number: 2 } }, { Update: { number: 7 } }],
  ]);
  expect(new Set(sent.map(({ token }) => token)).size).toBe(2);
  expect(run.committed()?.answer).toEqual(answer);
});

test("a contested item ends the commit by its own error, and an item of the handler comes first", async () => {
  const refuse = () => {
    throw new Error("no room");
  };
  const one = committing([[none, failed, none]]);
  await expect(one.run.commit([put], answer, [], [contestedItem(1, refuse)])).rejects.toThrow(
    "no room",
  );
  expect([one.run.isUncertain(), one.run.committed()]).toEqual([false, undefined]);
  const both = committing([[failed, failed, none]]);
  await expect(
    both.run.commit([put], answer, [], [contestedItem(1, refuse)]),
  ).rejects.toMatchObject({ code: "condition_failed", index: 0 });
});

test("tries a contested item 25 times, and the same transaction again after a conflict", async () => {
  const { run, sent } = committing([[none, failed, none]]);
  await expect(run.commit([put], answer, [], [contestedItem()])).rejects.toThrow(
    "item 1: ConditionalCheckFailed), after 25 attempts",
  );
  expect(sent).toHaveLength(25);
  const conflict = [none, reason("TransactionConflict"), none];
  const other = committing([conflict, undefined]);
  await other.run.commit([put], answer, [], [contestedItem()]);
  expect(new Set(other.sent.map(({ token }) => token)).size).toBe(1);
});

test("without a claim, does not replace an item after an attempt whose outcome is unknown", async () => {
  const said = [named("TimeoutError"), [none, failed]];
  const alone = committing(said, { isClaimed: false });
  await expect(alone.run.commit([put], answer, [], [contestedItem()])).rejects.toThrow(
    "after an attempt without an answer",
  );
  expect([alone.sent.length, alone.run.isUncertain()]).toEqual([2, true]);
  const claimed = committing([...said.slice(0, 1), [none, failed, none], undefined]);
  await claimed.run.commit([put], answer, [], [contestedItem()]);
  expect(claimed.sent).toHaveLength(3);
});
