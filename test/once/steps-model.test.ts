import fc from "fast-check";
import { expect, test } from "vitest";
import { NotFoundError } from "../../src/base/errors/errors.ts";
import type { Logger } from "../../src/base/log/logger.ts";
import type { Secrets } from "../../src/base/secrets/secrets.ts";
import { answerCipher } from "../../src/parts/once/answer.ts";
import { claimKey, keyText } from "../../src/parts/once/claim.ts";
import type { RunParts } from "../../src/parts/once/claimed-run.ts";
import type { OnceClaim } from "../../src/parts/once/claims.ts";
import { createOnce } from "../../src/parts/once/once.ts";
import {
  type IfUnknown,
  type StepRecord,
  type StepStore,
  stepVerdict,
} from "../../src/parts/once/step.ts";
import { Steps } from "../../src/parts/once/steps.ts";
import { type Fate, type Process, startProcess, storeOf, timersOf, World } from "./world.ts";

const runs = 1_500;
const seed = Number(process.env["SEED"] ?? Date.now() % 2 ** 31);
const fates: readonly Fate[] = [
  "fine",
  "fails",
  "answer lost",
  "process dies before",
  "process dies after",
  "conflict",
];
/** What the provider does, and what its caller hears of it. */
const deeds = [
  "charges",
  "refuses",
  "charges, and fails",
  "fails, and has not charged",
  "charges, and the process dies",
  "stands still",
] as const;

const scenario = fc.record({
  ifUnknown: fc.constantFrom<IfUnknown>("refuse", "retry"),
  requests: fc.array(fc.record({ process: fc.nat(2), deed: fc.constantFrom(...deeds) }), {
    minLength: 1,
    maxLength: 5,
  }),
  fates: fc.array(
    fc.oneof({ weight: 4, arbitrary: fc.constant<Fate>("fine") }, fc.constantFrom(...fates)),
    { maxLength: 30 },
  ),
  jumps: fc.array(
    fc.oneof({ weight: 6, arbitrary: fc.nat(2_000) }, fc.constantFrom(11_000, 33_000)),
    { maxLength: 20 },
  ),
});

/** The steps of a world, as one process sees them: what DynamoDB's conditions say. */
function stepsOf(
  world: World,
  records: Map<string, StepRecord>,
  process: Process,
  turn: (call: string) => Promise<Fate>,
): StepStore {
  const call = async <Result>(
    name: string,
    work: () => Result,
    conflict?: () => Result,
  ): Promise<Result> => {
    const assertAlive = () => {
      if (!process.isAlive) throw new Error(`${process.name} is dead`);
    };
    assertAlive();
    const fate = await turn(name);
    world.seen.add(`${name}: ${fate}`);
    if (fate === "process dies before") process.isAlive = false;
    assertAlive();
    if (fate === "fails") throw new Error("refused");
    const result = fate === "conflict" && conflict !== undefined ? conflict() : work();
    if (fate === "process dies after") process.isAlive = false;
    assertAlive();
    if (fate === "answer lost") throw new Error("socket hang up");
    return result;
  };
  return {
    start: ({ partition }, step, facts, ifUnknown, nowMs) =>
      call(
        "start",
        () => {
          const claim = world.records.get(keyText(facts.claim));
          if (claim?.status !== "INPROGRESS" || claim.owner !== step.owner) return "fenced";
          if (stepVerdict(records.get(partition), step.owner, ifUnknown, nowMs) !== "call")
            return "taken";
          records.set(partition, step);
          return "started";
        },
        () => "conflict",
      ),
    read: ({ partition }) => call("readStep", () => records.get(partition)),
    end: ({ partition }, step, from) =>
      call("end", () => {
        const before = records.get(partition);
        const isSame = before?.owner === step.owner && before.status === step.status;
        if (!isSame && !(before?.owner === from && before.status === "STARTED")) return false;
        if (before.status === "DONE" && !isSame)
          world.violations.push("a step that was done has changed");
        records.set(partition, step);
        return true;
      }),
    find: async () => undefined,
    list: async function* () {},
  };
}

test(`${runs} interleavings: without keys charges at most once if unknown is refused, with keys once; all runs agree`, async () => {
  const seen = new Set<string>();
  await fc.assert(
    fc.asyncProperty(
      fc.scheduler(),
      scenario,
      async (scheduler, { ifUnknown, requests, fates: plan, jumps }) => {
        const world = new World();
        const records = new Map<string, StepRecord>();
        const left = { fates: [...plan], jumps: [...jumps] };
        /** What the provider has done: the key of each charge, and what each key has got. */
        const charges: string[] = [];
        const byKey = new Map<string, number>();
        const given = new Set<unknown>();
        const turn = async (call: string): Promise<Fate> => {
          await scheduler.schedule(Promise.resolve(), call);
          const jump = left.jumps.shift() ?? 0;
          world.nowMs += jump;
          for (const { timers } of processes) if (jump > 10_000) timers.tick();
          return left.fates.shift() ?? "fine";
        };
        const processes = [0, 1, 2].map((n) => {
          const process = startProcess(`p${n}`);
          const timers = timersOf(world, process, turn);
          let owners = 0;
          const store = storeOf(world, process, turn);
          const clock = { now: () => world.nowMs };
          const once = createOnce({
            ...{
              store,
              clock,
              schedule: timers,
              waitMs: 10_000,
              draining: new AbortController().signal,
            },
            newOwner: () => `p${n}-${++owners}`,
          });
          return {
            process,
            timers,
            once,
            store,
            clock,
            steps: stepsOf(world, records, process, turn),
          };
        });
        const settled = requests.map(async ({ process: n, deed }) => {
          const { process, once, store, clock, steps } = processes[n] as (typeof processes)[number]; // safe: there are three
          const charge = async (key: string) => {
            if (!process.isAlive) throw new Error("the process is dead");
            if (deed === "refuses") throw new NotFoundError("card", "1");
            if (deed === "stands still") await turn("provider");
            if (!process.isAlive) throw new Error("the process is dead");
            if (deed !== "fails, and has not charged") {
              charges.push(key);
              if (!byKey.has(key)) byKey.set(key, charges.length);
            }
            if (deed === "charges, and the process dies") process.isAlive = false;
            if (deed !== "charges" && deed !== "stands still") throw new Error("socket hang up");
            return { charge: byKey.get(key) };
          };
          const work = async (parts: RunParts) => {
            const run = parts.held() as NonNullable<ReturnType<RunParts["held"]>>; // safe: it is claimed
            const options = {
              store: steps,
              claims: store,
              claim: run.claim,
              clock,
              log,
              pause: once.pause,
              signal: undefined,
            };
            const opened = new Steps({
              ...options,
              facts: { handler: "h", requestId: "r" },
              keepMs: undefined,
              cipherOf: () => answerCipher({} as Secrets, ["once"]), // it encrypts nothing
              isSealed: false,
            });
            const result = await opened.step("charge", { ifUnknown }, charge);
            given.add(JSON.stringify(result));
            const answer = { status: 200, headers: {}, cookies: [], body: JSON.stringify(result) };
            await parts.commit([{ Put: result }], answer);
            return answer;
          };
          const outcome = once.run({
            claim: write,
            logPrefix: "once",
            log,
            signal: undefined,
            work,
            answerOf: (answer) => answer,
          });
          const ended = await Promise.race([
            outcome.then(
              () => "answered",
              (error: { code?: string }) => error.code ?? "error",
            ),
            process.end,
          ]);
          world.seen.add(`${ifUnknown}, ${deed}: ${ended}`);
        });
        await scheduler.waitFor(Promise.all(settled));

        for (const state of world.seen) seen.add(state);
        expect(world.violations).toEqual([]);
        expect(new Set(charges).size).toBeLessThanOrEqual(1);
        expect(byKey.size).toBeLessThanOrEqual(1);
        if (ifUnknown === "refuse") expect(charges.length).toBeLessThanOrEqual(1);
        expect(given.size).toBeLessThanOrEqual(1);
        expect(world.effects.length).toBeLessThanOrEqual(1);
      },
    ),
    { numRuns: runs, endOnFailure: true, seed },
  );
  console.log(
    `steps: seed ${seed}, ${runs} interleavings; states met: ${[...seen].sort().join("; ")}`,
  );
  for (const call of ["start", "end"]) {
    for (const fate of fates.slice(0, 5)) expect([...seen]).toContain(`${call}: ${fate}`);
  }
  expect([...seen]).toContain("refuse, charges: unknown_outcome");
});

const log: Logger = {
  info: () => {},
  warn: () => {},
  error: () => {},
  debug: () => {},
  child: () => log,
};
const write: OnceClaim = {
  kind: "write",
  key: claimKey(["test"], "r1"),
  fingerprint: "f",
  comparesFingerprint: false,
  replayedHeaders: [],
  cipher: undefined,
  deadlineMs: undefined,
  assertFits: () => {},
};
