import type { Logger } from "../../src/base/log/logger.ts";
import type { WriteAnswer } from "../../src/parts/once/answer.ts";
import { type ClaimKey, claimKey, completedClaim, takenClaim } from "../../src/parts/once/claim.ts";
import type { ClaimStore } from "../../src/parts/once/claim-store.ts";
import type { RunWork } from "../../src/parts/once/claimed-run.ts";
import type { OnceClaim, Taken, TakeOptions } from "../../src/parts/once/claims.ts";
import { Claim } from "../../src/parts/once/held-claim.ts";
import { performClaimed } from "../../src/parts/once/perform-claimed.ts";
import type { RunLog } from "../../src/parts/once/run-log.ts";
import { recordedMetrics } from "../support/recorded-metrics.ts";

/** The time on the stage, in epoch milliseconds. It does not advance. */
export const nowMs = 1_700_000_000_000;
export const key = claimKey(["test"], "r1", "t1");

export const answer = (body: string, more: Partial<WriteAnswer> = {}): WriteAnswer => ({
  status: 200,
  headers: { location: "/1", "x-more": "m", "x-anew": "n" },
  cookies: [],
  body,
  ...more,
});
/** The part of an answer that a repeat gets. */
export const kept = (body: string): WriteAnswer =>
  answer(body, { headers: { location: "/1", "x-more": "m" } });
/** The part of an answer that a repeat gets, in its stored form. */
export const dataOf = (body: string): Buffer => {
  const { status, headers } = kept(body);
  return Buffer.from(`\0${JSON.stringify({ status, headers, body })}`);
};

type Found = Exclude<Taken, { kind: "taken" }>;

/** Another run has done the work, with this answer. */
export const done = (body: string): Found => ({
  kind: "done",
  record: completedClaim("bob", nowMs, { result: { data: dataOf(body) } }),
  hasWaited: false,
});
/** Another run is still at work. */
export const running: Found = {
  kind: "running",
  record: takenClaim("bob", nowMs),
  untilMs: nowMs + 30_000,
};

export interface Scene {
  readonly kind?: "write" | "message" | "unclaimed";
  readonly claim?: Partial<OnceClaim>;
  /** Results of attempts to take the claim, in order: the owner that takes it, or anything else. */
  readonly takes?: readonly (string | Found | Error)[];
  /** Answers of the store by the name of the call, the last for ever. Errors are thrown. */
  readonly says?: Readonly<Record<string, readonly unknown[]>>;
  readonly signal?: AbortSignal;
  readonly logPrefix?: RunLog["logPrefix"];
}

/** Performs work over claims and a store whose answers the scene determines. */
export function stage(scene: Scene = {}) {
  const { kind = "write", takes = ["ann"], says = {}, signal, logPrefix = "once" } = scene;
  const calls: string[] = [];
  const given: Record<string, unknown[][]> = {};
  const lines: [line: string, message: unknown][] = [];
  const remembered: [answer: WriteAnswer, expiresAt: number][] = [];
  const pauses: number[] = [];
  const held: Claim[] = [];
  const measured = recordedMetrics();

  const call =
    (name: string, usual?: unknown) =>
    async (...values: unknown[]) => {
      calls.push(name);
      const all = [...(given[name] ?? []), values];
      given[name] = all;
      const answers = says[name] ?? [usual];
      const next = answers[Math.min(all.length, answers.length) - 1];
      if (next instanceof Error) throw next;
      return next;
    };
  const store = {
    complete: call("complete", true),
    release: call("release"),
    vacate: call("vacate"),
    commit: call("commit"),
    read: call("read"),
    putParts: call("putParts"),
    extend: call("extend"),
  } as unknown as ClaimStore; // safe: a run that has been taken calls nothing else
  const clock = { now: () => nowMs };
  const schedule = {
    wait: async () => undefined,
    repeat: () => () => void calls.push("stop"),
    random: () => 0.5,
    now: () => 0,
  };

  const found = [...takes];
  const take = async (wanted: ClaimKey, options: TakeOptions): Promise<Taken> => {
    calls.push("take");
    const next = found.shift() ?? new Error("taken too often");
    if (next instanceof Error) throw next;
    if (typeof next !== "string") return next;
    const parts = { store, clock, schedule, retentionMs: () => 300_000 };
    const { fingerprint, retentionMs } = options;
    const claim = new Claim(parts, wanted, next, { fingerprint, retentionMs, generation: next });
    held.push(claim);
    return { kind: "taken", claim, hasWaited: false };
  };

  const line = (level: string) => (message: string, data?: Record<string, unknown>) =>
    void lines.push([`${level} ${message}`, data?.["message"]]);
  const log: Logger = {
    info: line("info"),
    warn: line("warn"),
    error: line("error"),
    debug: () => undefined,
    child: () => log,
  };
  const wanted: OnceClaim | undefined =
    kind === "unclaimed"
      ? undefined
      : { kind, key, replayedHeaders: ["x-more"], deadlineMs: undefined, ...scene.claim };
  const parts = {
    store,
    claims: { take },
    clock,
    pause: async (attempt: number) => void pauses.push(attempt),
    waitMs: 1_000,
    draining: new AbortController().signal,
    metrics: measured.metrics,
    remember: (_run: unknown, stored: WriteAnswer, expiresAt: number) =>
      void remembered.push([stored, expiresAt]),
  };
  const answerOf = (result: WriteAnswer) => {
    if (kind !== "write") throw new Error("only a write is asked for its answer");
    return result;
  };
  const perform = (work: RunWork<WriteAnswer>) =>
    performClaimed(parts, {
      claim: wanted,
      tenantId: "t1",
      signal,
      log,
      logPrefix,
      work,
      answerOf,
    });
  return { perform, calls, given, lines, remembered, held, wanted, pauses, counted: measured.sums };
}
