import { expect, test } from "vitest";
import { recordedMetrics } from "../../../test/support/recorded-metrics.ts";
import type { Logger } from "../../base/log/logger.ts";
import { claimKey } from "./claim.ts";
import { type Started, type StepStore, startedStep, undoneStep } from "./step.ts";
import { Steps } from "./steps.ts";

const nowMs = 1_763_812_800_000;
const log: Logger = {
  info: () => {},
  warn: () => {},
  error: () => {},
  debug: () => {},
  child: () => log,
};

/** The steps of a run over a store that answers what the test says. */
function stepsOf(answers: Started[], store: Partial<StepStore> = {}, signal?: AbortSignal) {
  const pauses: number[] = [];
  const measured = recordedMetrics();
  const opened = new Steps({
    store: {
      start: async () => answers.shift() ?? "started",
      read: async () => undefined,
      end: async () => true,
      find: async () => undefined,
      list: async function* () {},
      ...store,
    },
    claims: { putParts: async () => undefined, readParts: async () => undefined },
    claim: { key: claimKey(["a"], "b"), owner: "me", seed: () => "seed", lose: () => undefined },
    clock: { now: () => nowMs },
    log,
    metrics: measured.metrics,
    pause: async (attempt) => void pauses.push(attempt),
    signal,
    facts: { handler: "a.b.c", requestId: "r1" },
    keepMs: undefined,
    cipherOf: undefined,
  });
  return { steps: opened, pauses };
}

test("retries beginning a step after a conflict, up to ten attempts", async () => {
  const { steps, pauses } = stepsOf(["conflict", "conflict", "conflict"]);
  expect(await steps.step("a", {}, () => 1)).toBe(1);
  expect(pauses).toEqual([1, 2, 3]);

  const never = stepsOf(Array.from({ length: 20 }, () => "conflict" as const));
  await expect(never.steps.step("a", {}, () => 1)).rejects.toThrow(
    "the step a could not be begun after 10 attempts",
  );
  expect(never.pauses).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9]);
});

test("retries beginning a step that changes before it is read", async () => {
  const records = [undoneStep("them", nowMs, 1_000), undefined];
  const { steps } = stepsOf(["taken", "taken"], { read: async () => records.shift() });
  expect(await steps.step("a", {}, () => 1)).toBe(1);

  const refused = stepsOf(["taken"], { read: async () => startedStep("them", nowMs, 1_000) });
  await expect(refused.steps.step("a", {}, () => 1)).rejects.toMatchObject({
    code: "unknown_outcome",
    status: 409,
    step: "a",
  });
});

test("begins no step after the caller disconnects, and leaves a step aborted by its signal unknown", async () => {
  const gone = stepsOf([], {}, AbortSignal.abort(new Error("gone")));
  await expect(gone.steps.step("a", {}, () => 1)).rejects.toThrow("gone");

  const { PipelineError } = await import("../../base/errors/errors.ts");
  const controller = new AbortController();
  const ended: string[] = [];
  const { steps } = stepsOf(
    [],
    { end: async (_place, { status }) => ended.push(status) > 0 },
    controller.signal,
  );
  const aborting = steps.step("a", {}, () => {
    controller.abort(new PipelineError("The client has closed the connection", 499));
    controller.signal.throwIfAborted();
  });
  await expect(aborting).rejects.toThrow("closed the connection");
  expect(ended).toEqual([]);
});
