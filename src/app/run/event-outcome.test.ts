import { expect, test } from "vitest";
import { PermanentError } from "../../base/errors/errors.ts";
import type { Waited } from "../../parts/messages/waited.ts";
import type { TaskOutcome } from "../schedules/schedules.ts";
import { consumeBy, waitingOf } from "./event-outcome.ts";

const waits = (afterMs: number) => ({ kind: "handed-back", afterMs, mustWait: true }) as const;
const failed = { kind: "failed", error: new Error("not yet") } as const;
const torn = { kind: "failed", error: new PermanentError("torn") } as const;
const processed = { kind: "processed" } as const;

/** Consumes an event by consumers with these outcomes. */
function consumed(outcomes: readonly TaskOutcome[], waited?: Waited) {
  const consumers = outcomes.map((outcome, index) => ({ name: `shop.c${index}`, outcome }));
  return consumeBy(consumers, waited, async ({ outcome }) => outcome);
}

test("an event waits for as long as the consumer that waits the shortest", async () => {
  const [day, slot] = [waits(86_400_000), waits(0)];
  expect(waitingOf(await consumed([day, slot, processed]))).toBe(slot);
  expect(waitingOf(await consumed([failed, slot, day]))).toBe(slot);
  expect(waitingOf(await consumed([failed, processed]))).toBeUndefined();
  expect(waitingOf(day)).toEqual(day);
});

test.each([processed, failed, torn])(
  "an event that names a failed consumer has its reason, whatever the others do",
  async (outcome) => {
    const waited = { times: 1, attempts: 0, failed: ["shop.failed"] };
    const named = await consumed([outcome], { ...waited, reason: "no paper" });
    expect(named).toMatchObject({ kind: "failed", reason: "no paper" });
    expect(await consumed([outcome], waited)).toMatchObject({ reason: "a consumer has failed" });
    expect(await consumed([outcome])).not.toHaveProperty("reason");
  },
);

test("an event without consumers is skipped", async () => {
  expect(await consumed([])).toEqual({ kind: "skipped" });
});
