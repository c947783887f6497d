import { expect, test, vi } from "vitest";
import { recordedMetrics } from "../../../test/support/recorded-metrics.ts";
import { FrameworkError, NotFoundError, UnknownOutcomeError } from "../../base/errors/errors.ts";
import type { Logger } from "../../base/log/logger.ts";
import { developmentKeyRing } from "../../base/secrets/key-ring.ts";
import { createSecrets, type Secrets } from "../../base/secrets/secrets.ts";
import { answerCipher } from "./answer.ts";
import { type ClaimKey, claimKey } from "./claim.ts";
import { derivedId } from "./derived-id.ts";
import {
  type DoneStep,
  defaultKeepMs,
  type Started,
  type StepRecord,
  type StepStore,
  startedStep,
  stepPlace,
  undoneStep,
} from "./step.ts";
import { Steps, type StepsOptions } from "./steps.ts";

const nowMs = 1_763_812_800_000;
/** The steps of a run over a store that answers what the test says. */
function stepsOf(
  answers: Started[],
  store: Partial<StepStore> = {},
  signal?: AbortSignal,
  own: Partial<StepsOptions> = {},
) {
  const pauses: number[] = [];
  const lines: [msg: string, data: unknown][] = [];
  const say = (msg: string, data?: unknown) => void lines.push([msg, data]);
  const log: Logger = { info: say, warn: say, error: say, debug: say, child: () => log };
  let isLost = false;
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
    claim: {
      key: claimKey(["a"], "b"),
      owner: "me",
      seed: () => "seed",
      lose: () => {
        isLost = true;
      },
    },
    clock: { now: () => nowMs },
    log,
    metrics: measured.metrics,
    pause: async (attempt) => void pauses.push(attempt),
    signal,
    facts: { handler: "a.b.c", requestId: "r1" },
    keepMs: undefined,
    cipherOf: () => answerCipher({} as Secrets, ["once"]), // it encrypts nothing
    isSealed: false,
    ...own,
  });
  return { steps: opened, pauses, lines, measured, isLost: () => isLost };
}

test("retries beginning a step after a conflict, up to ten attempts", async () => {
  const { steps, pauses } = stepsOf(["conflict", "conflict", "conflict"]);
  expect(await steps.step("a", {}, () => 1)).toBe(1);
  expect(pauses).toEqual([1, 2, 3]);

  const never = stepsOf(Array.from({ length: 20 }, () => "conflict" as const));
  await expect(never.steps.step("a", {}, () => 1)).rejects.toThrow(
    "the step a could not be started after 10 attempts",
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

const key = derivedId("step", "seed", "a");
const line = { step: "a", stepKey: key };
const unknownOutcome = { code: "unknown_outcome", status: 409, step: "a" };

test("calls a step with a key of its own, describes it, and records what it gave", async () => {
  const started: unknown[] = [];
  const ended: unknown[] = [];
  const { steps, measured } = stepsOf([], {
    start: async (...given) => {
      started.push(given);
      return "started";
    },
    end: async (...given) => ended.push(given) > 0,
  });
  expect(await steps.step("a", {}, (given) => ({ given }))).toEqual({ given: key });

  const place = stepPlace(key, undefined);
  const claim = claimKey(["a"], "b");
  const facts = { handler: "a.b.c", requestId: "r1", claim, isSealed: false };
  const startedAt = new Date(nowMs).toISOString();
  const described = { name: "a", startedAt, keepMs: defaultKeepMs, ...facts };
  const record = startedStep("me", nowMs, defaultKeepMs);
  expect(started).toEqual([[place, record, described, "refuse", nowMs]]);
  expect(ended).toEqual([[place, expect.objectContaining({ status: "DONE", owner: "me" }), "me"]]);
  expect(measured.values).toEqual([["keelson.steps called", 1]]);
});

test("gives what an earlier call gave, without a call", async () => {
  const ended: DoneStep[] = [];
  const first = stepsOf([], { end: async (_place, step) => ended.push(step as DoneStep) > 0 });
  await first.steps.step("a", {}, () => ({ id: "c1" }));
  const { steps, lines, measured } = stepsOf(["taken"], { read: async () => ended[0] });
  const call = vi.fn();
  expect(await steps.step("a", {}, call)).toEqual({ id: "c1" });
  expect(call).not.toHaveBeenCalled();
  expect(lines).toEqual([["step.given", line]]);
  expect(measured.values).toEqual([["keelson.steps given", 1]]);
});

test("an unknown outcome is counted and logged, and ends the step", async () => {
  const read = async () => startedStep("them", nowMs, 1_000);
  const { steps, lines, measured } = stepsOf(["taken"], { read });
  await expect(steps.step("a", {}, () => 1)).rejects.toMatchObject(unknownOutcome);
  expect(lines).toEqual([["step.unknown", line]]);
  expect(measured.values).toEqual([["keelson.steps unknown", 1]]);
});

test.each([
  ["", /is not 1 to 64 letters/],
  [".a", /is not 1 to 64 letters/],
  ["a b", /is not 1 to 64 letters/],
  ["-a-", /is not 1 to 64 letters/],
  ["_a", /starting with a letter or digit/],
  ["a".repeat(65), /is not 1 to 64 letters/],
  ["a!", /is not 1 to 64 letters/],
])("refuses the name %j", async (name, message) => {
  await expect(stepsOf([]).steps.step(name, {}, () => 1)).rejects.toThrow(message);
});

test.each<[name: string, options: unknown, call: unknown, message: string]>([
  ["a call in place of the options", () => 1, undefined, "the options are a function"],
  ["an unknown option", { ifunknown: "retry" }, () => 1, "did you mean `ifUnknown`"],
  ["no call", {}, undefined, "undefined is not a function"],
  ["the result of a call", {}, 1, "1 is not a function"],
])("refuses %s before it starts the step", async (_, options, call, message) => {
  const start = vi.fn<StepStore["start"]>(async () => "started");
  const { steps } = stepsOf([], { start });
  const refused = steps.step("charge", options as never, call as never);
  await expect(refused).rejects.toThrow(TypeError);
  await expect(refused).rejects.toThrow(message);
  expect(start).not.toHaveBeenCalled();
});

test("refuses a name that the run already has, and another way for an unknown outcome", async () => {
  const { steps } = stepsOf([]);
  expect(await steps.step("charge.1_a:b-c", {}, () => 1)).toBe(1);
  await expect(steps.step("charge.1_a:b-c", {}, () => 1)).rejects.toThrow("twice");
  const wrong = steps.step("b", { ifUnknown: "ask" as never }, () => 1);
  await expect(wrong).rejects.toThrow('"ask" is neither "refuse" nor "retry"');
});

test("a hook that joins the next attempt to commit gets the outcome of its step, but not twice in one attempt", async () => {
  const { steps } = stepsOf([]);
  let calls = 0;
  const stamp = (attempt: number) => steps.step("stamp", {}, () => (calls += 1), attempt);
  expect([await stamp(1), await stamp(2), calls]).toEqual([1, 1, 1]);
  await expect(stamp(2)).rejects.toThrow("twice");
  await expect(stamp(0)).rejects.toThrow("twice");
  await steps.step("before", {}, () => 1);
  await expect(steps.step("before", {}, () => 1, 1)).rejects.toThrow("twice");
});

test("a run that another has replaced loses its claim, when it begins a step and when it ends one", async () => {
  const fenced = stepsOf(["fenced"]);
  await expect(fenced.steps.step("a", {}, () => 1)).rejects.toMatchObject({
    code: "request_in_progress",
  });
  expect(fenced.isLost()).toBe(true);
  const late = stepsOf([], { end: async () => false });
  await expect(late.steps.step("a", {}, () => 1)).rejects.toMatchObject({
    code: "request_in_progress",
  });
  expect(late.isLost()).toBe(true);
});

test.each([
  ["a typed error", new NotFoundError("card", "1"), ["NOT_DONE"]],
  ["another error", new Error("broken"), []],
  ["a timeout", new FrameworkError("timeout", "too late"), []],
  ["an unknown outcome", new UnknownOutcomeError("b", "k"), []],
])(
  "%s of the call is recorded only where it says that nothing was done",
  async (_what, error, statuses) => {
    const ended: string[] = [];
    const { steps } = stepsOf([], { end: async (_place, { status }) => ended.push(status) > 0 });
    const failing = steps.step("a", {}, () => {
      throw error;
    });
    await expect(failing).rejects.toBe(error);
    expect(ended).toEqual(statuses);
  },
);

test("a step that cannot be recorded keeps its result, and is logged", async () => {
  const down = async () => {
    throw new Error("down");
  };
  const { steps, lines, pauses } = stepsOf([], { end: down });
  expect(await steps.step("a", {}, () => 1)).toBe(1);
  expect(lines).toEqual([["step.unrecorded", { ...line, reason: "Error: down" }]]);
  expect(pauses).toEqual([1, 2]);
});

test("a result that is not JSON is refused in every run, although the step is done", async () => {
  const ended: DoneStep[] = [];
  const end: StepStore["end"] = async (_place, step) => ended.push(step as DoneStep) > 0;
  const first = stepsOf([], { end });
  await expect(first.steps.step("a", {}, () => 7n)).rejects.toThrow(TypeError);
  const again = stepsOf(["taken"], { read: async () => ended[0] });
  await expect(again.steps.step("a", {}, () => 1)).rejects.toThrow(TypeError);
});

test("knows whether its caller is inside a step", async () => {
  const { steps } = stepsOf([]);
  expect(steps.isInside()).toBe(false);
  expect(await steps.step("a", {}, () => steps.isInside())).toBe(true);
});

test.each([true, false])(
  "gives the result of a step that a deployment stored otherwise: encrypted now: %s",
  async (isSealed) => {
    const secrets = createSecrets({ clock: { now: () => nowMs } });
    secrets.begin(developmentKeyRing("secret"), nowMs);
    const cipherOf = ({ partition, sort }: ClaimKey) =>
      answerCipher(secrets, ["once", partition, sort]);
    let record: StepRecord | undefined;
    const store: Partial<StepStore> = {
      start: async () => (record === undefined ? "started" : "taken"),
      read: async () => record,
      end: async (_place, ended) => {
        record = ended as StepRecord; // safe: the step is done
        return true;
      },
    };
    const before = stepsOf([], store, undefined, { cipherOf, isSealed: !isSealed });
    await before.steps.step("a", {}, () => ({ cents: 5 }));
    const after = stepsOf([], store, undefined, { cipherOf, isSealed });
    const call = vi.fn();
    expect(await after.steps.step("a", {}, call)).toEqual({ cents: 5 });
    expect(call).not.toHaveBeenCalled();
  },
);
