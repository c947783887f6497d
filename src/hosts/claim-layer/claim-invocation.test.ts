import { describe, expect, test } from "vitest";
import type { ClaimRecord } from "../../parts/once/claim.ts";
import {
  type DurableInvocation,
  durableInvocation,
  type Invocation,
  isReplay,
  isUnanswered,
  mayTakeOver,
  settle,
} from "./claim-invocation.ts";

const data = { order: 7 };
const invocationOf = (more: Partial<Invocation> = {}): Invocation => ({
  data,
  hash: "hash",
  key: "hash",
  outer: undefined,
  deadlineMs: undefined,
  durable: undefined,
  responseHook: undefined,
  fingerprint: undefined,
  claim: undefined,
  found: undefined,
  isRefusalKnown: false,
  state: "refused",
  ...more,
});
const durableOf = (more: Partial<DurableInvocation> = {}): DurableInvocation => ({
  execution: "one",
  replayed: undefined,
  owners: new Set(),
  ...more,
});
const recordOf = (owner: string, execution?: string): ClaimRecord =>
  // Safe cast: only these members are read.
  ({ owner, ...(execution === undefined ? {} : { execution }) }) as ClaimRecord;

describe("a refused claim may be taken over", () => {
  test.each([
    ["its record is the one that refused", { found: recordOf("a") }, true],
    ["another record refused", { found: recordOf("b") }, false],
    ["the cache gave the answer", {}, false],
    ["the engine knows the refusal", { found: recordOf("a"), isRefusalKnown: true }, false],
    ["the invocation is not refused", { found: recordOf("a"), state: "running" }, false],
  ] as const)("outside a durable execution: %s", (_case, more, expected) => {
    expect(mayTakeOver(invocationOf(more), recordOf("a"))).toBe(expected);
  });

  const replayed = { replayed: { event: data } };
  test.each([
    ["the record is of the same execution", {}, recordOf("a", "one"), true],
    ["the record is of another execution", replayed, recordOf("a", "two"), false],
    ["the record has no execution, and the invocation is a replay", replayed, recordOf("a"), true],
    ["the record has no execution, and the invocation is the first", {}, recordOf("a"), false],
    [
      "the record has no execution, and the replay is of another event",
      { replayed: { event: { order: 7 } } },
      recordOf("a"),
      false,
    ],
    [
      "the owner is this invocation's own",
      { owners: new Set(["a"]), ...replayed },
      recordOf("a", "one"),
      false,
    ],
  ])("in a durable execution: %s", (_case, more, record, expected) => {
    expect(mayTakeOver(invocationOf({ durable: durableOf(more) }), record)).toBe(expected);
  });
});

test("an invocation is a replay if its execution continues with the same event", () => {
  const replayed = durableOf({ replayed: { event: data } });
  expect(
    [
      invocationOf(),
      invocationOf({ durable: durableOf() }),
      invocationOf({ durable: replayed }),
    ].map(isReplay),
  ).toEqual([false, false, true]);
});

test("a refusal is unanswered until the engine knows it", () => {
  expect(isUnanswered(invocationOf())).toBe(true);
  expect(isUnanswered(invocationOf({ isRefusalKnown: true }))).toBe(false);
  expect(isUnanswered(invocationOf({ state: "held" }))).toBe(false);
});

test("settling gives up the claim, once", () => {
  let abandoned = 0;
  // Safe cast: only this member is used.
  const claim = {
    abandon: () => {
      abandoned += 1;
    },
  } as unknown as Invocation["claim"];
  const invocation = invocationOf({ claim, state: "running" });
  settle(invocation);
  settle(invocation);

  expect([abandoned, invocation.claim, invocation.state]).toEqual([1, undefined, "settled"]);
});

describe("a durable invocation", () => {
  const context = (durableExecutionArn: unknown, durableExecutionMode?: string) => ({
    executionContext: { durableExecutionArn },
    durableExecutionMode,
  });

  test("is known by a hash of its execution, and has its event only in a replay", () => {
    const first = durableInvocation(data, context("arn:one"));
    const again = durableInvocation(data, context("arn:one", "ReplayMode"));
    const other = durableInvocation(data, context("arn:two"));

    expect(first.execution).toMatch(/^[\w-]{43}$/);
    expect([again.execution, other.execution === first.execution]).toEqual([
      first.execution,
      false,
    ]);
    expect([first.replayed, again.replayed?.event]).toEqual([undefined, data]);
    expect(first.owners.size).toBe(0);
  });

  test.each([undefined, null, {}, { executionContext: {} }, context(""), context(7)])(
    "refuses the context %j and says where durable() belongs",
    (given) => {
      expect(() => durableInvocation(data, given)).toThrow(
        /put durable\(\) between withDurableExecution and makeIdempotent/,
      );
    },
  );
});
