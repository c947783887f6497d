import fc from "fast-check";
import { expect, test } from "vitest";
import type { Logger } from "../../src/base/log/logger.ts";
import type { WriteAnswer } from "../../src/parts/once/answer.ts";
import { claimKey } from "../../src/parts/once/claim.ts";
import type { RunParts } from "../../src/parts/once/claimed-run.ts";
import type { OnceClaim } from "../../src/parts/once/claims.ts";
import { createOnce } from "../../src/parts/once/once.ts";
import { type Fate, startProcess, storeOf, timersOf, World } from "./world.ts";

const runs = 2_000;
/** Printed with the result: `SEED=…` repeats it. */
const seed = Number(process.env["SEED"] ?? Date.now() % 2 ** 31);
const fates: readonly Fate[] = [
  "fine",
  "fails",
  "answer lost",
  "process dies before",
  "process dies after",
  "conflict",
];

/** What the handler of one request does. */
type Deed = "commits" | "answers" | "throws" | "stands still" | "commits, then throws";
const deeds: readonly Deed[] = [
  "commits",
  "answers",
  "throws",
  "stands still",
  "commits, then throws",
];

const scenario = fc.record({
  // Which process each request comes to: 3 processes, up to 5 requests of one write.
  requests: fc.array(fc.record({ process: fc.nat(2), deed: fc.constantFrom(...deeds) }), {
    minLength: 1,
    maxLength: 5,
  }),
  fates: fc.array(
    fc.oneof({ weight: 3, arbitrary: fc.constant<Fate>("fine") }, fc.constantFrom(...fates)),
    { maxLength: 25 },
  ),
  // How far the clock jumps at each turn, in milliseconds: mostly not, sometimes over a lease, sometimes over the 300 s.
  jumps: fc.array(
    fc.oneof(
      { weight: 6, arbitrary: fc.nat(2_000) },
      fc.constantFrom(11_000, 33_000, -5_000, 301_000),
    ),
    {
      maxLength: 20,
    },
  ),
});

test(`${runs} interleavings commit and record one run per claim, keep its answer and its owner, and answer every caller`, async () => {
  const seen = new Set<string>();
  let expired = 0;
  await fc.assert(
    fc.asyncProperty(
      fc.scheduler(),
      scenario,
      async (scheduler, { requests, fates: plan, jumps }) => {
        const world = new World();
        const left = { fates: [...plan], jumps: [...jumps] };
        const turn = async (call: string): Promise<Fate> => {
          await scheduler.schedule(Promise.resolve(), call);
          const jump = left.jumps.shift() ?? 0;
          world.nowMs += jump;
          if (jump > 300_000) world.seen.add("expiry");
          for (const { timers } of processes) if (Math.abs(jump) > 10_000) timers.tick();
          return left.fates.shift() ?? "fine";
        };
        const processes = [0, 1, 2].map((n) => {
          const process = startProcess(`p${n}`);
          const timers = timersOf(world, process, turn);
          let owners = 0;
          const once = createOnce({
            store: storeOf(world, process, turn),
            clock: { now: () => world.nowMs },
            schedule: timers,
            waitMs: 10_000,
            draining: new AbortController().signal,
            newOwner: () => `p${n}-${++owners}`,
          });
          return { process, timers, once };
        });
        const answers: string[] = [];
        let noted = 0;
        const settled = requests.map(async ({ process: n, deed }, request) => {
          const { process, once } = processes[n] as (typeof processes)[number]; // safe: there are three
          const work = async ({ commit }: RunParts) => {
            const answer: WriteAnswer = {
              status: 200,
              headers: {},
              cookies: [],
              body: `${request} ${world.nowMs}`,
            };
            if (deed === "throws") throw new Error("the handler failed");
            if (deed === "stands still") await turn("handler");
            if (deed.startsWith("commits") || deed === "stands still")
              await commit([{ Put: { request } }], answer);
            if (deed === "commits, then throws") throw new Error("too late");
            return answer;
          };
          const outcome = once.run({
            claim: write,
            logPrefix: "once",
            log,
            signal: undefined,
            work,
            answerOf: (given) => given,
          });
          const ended = await Promise.race([
            outcome.then(
              (ended) => {
                // What follows a write runs here, if its process is still there.
                if (ended.kind === "committed" || (ended.kind === "done" && ended.isNoted))
                  noted += 1;
                return String((ended as { readonly answer: WriteAnswer }).answer.body); // safe: a write that did not fail has one
              },
              (error: Error) => error,
            ),
            process.end,
          ]);
          if (typeof ended === "string") answers.push(ended);
          world.seen.add(
            `${deed}: ${typeof ended === "string" ? "answered" : ended instanceof Error ? ended.name : "dead"}`,
          );
        });
        await scheduler.waitFor(Promise.all(settled));

        for (const state of world.seen) seen.add(state);
        expect(world.violations).toEqual([]);
        if (world.seen.has("expiry")) {
          expired += 1; // after 300 s a write may be done again
          return;
        }
        expect(world.effects.length).toBeLessThanOrEqual(1);
        expect(noted).toBeLessThanOrEqual(1);
      },
    ),
    { numRuns: runs, endOnFailure: true, seed },
  );
  console.log(
    `once: seed ${seed}, ${runs} interleavings, ${expired} of them over an expiry; states met: ${[...seen].sort().join("; ")}`,
  );
  for (const call of ["take", "complete", "release", "commit"]) {
    for (const fate of fates.slice(0, 5)) expect([...seen]).toContain(`${call}: ${fate}`);
  }
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
