import { describe, expect, test, vi } from "vitest";
import { z } from "zod";
import { callsOf } from "../../../test/support/recorded-commits.ts";
import { nowMs, type RecordedOptions, recordedRun } from "../../../test/support/recorded-run.ts";
import { AccessDeniedError } from "../../base/errors/errors.ts";
import { dueId, duePlace, queuedRow, waitingJob } from "../../parts/messages/due-jobs.ts";
import { jobHash } from "../../parts/messages/job-message.ts";
import { derivedId } from "../../parts/once/derived-id.ts";
import type { EnqueueOptions } from "../handlers/effect-options.ts";
import { EffectLedger } from "./effect-ledger.ts";
import type { EffectRun, HeldEffect } from "./effect-run.ts";
import { cancelJob, enqueue } from "./enqueue.ts";

const print = "notes.note.print";
const sort = "notes.note.sort";
const cause = { causedBy: "r1", origRequestId: "r0", tenantId: "acme", userId: "ann" };
const system = { causedBy: "s1", origRequestId: "s1", originator: "system" } as const;

function enqueueing(options: RecordedOptions = {}, of: EffectRun["cause"] = cause) {
  const { did, parts } = recordedRun({
    jobs: {
      [print]: { input: z.object({ n: z.number() }) },
      [sort]: {
        dedupKey: ({ n }: { readonly n: unknown }) => n,
        order: ({ shelf }: { readonly shelf: unknown }) => shelf,
      },
    },
    ...options,
  });
  const ledger = new EffectLedger<HeldEffect>(false);
  const run: EffectRun = { ...parts, cause: of, ledger };
  return { did, run, ledger };
}

/** The messages that a run has sent, with their hashes. */
const sentBy = (did: readonly unknown[][]) =>
  callsOf(did, "send").map(([text, hashes]) => ({ job: JSON.parse(String(text)), hashes }));
const idOf = (name: string, ordinal: number) => derivedId("seed", "job", name, ordinal);
const idAtOnce = (name: string, ordinal: number) => derivedId("seed", "job at once", name, ordinal);
/** What a row contains that has no job. */
const empty = { group: "", deduplicationId: "", text: "{}" };

interface CommitGiven {
  readonly token: string;
}

describe("ctx.enqueue", () => {
  test("holds a job for the commit, as one that is due now, with its cause, proof and trace", async () => {
    const { did, run, ledger } = enqueueing();
    const jobId = idOf(print, 0);

    expect(await enqueue(run, "handler", print, { n: 1 }, undefined)).toEqual({ jobId });
    const [effect, ...others] = ledger.seal();
    expect(others).toEqual([]);
    expect(effect).toMatchObject({ kind: "job", name: print });
    expect(effect).not.toHaveProperty("dueMs");
    const { text, ...hashes } = (effect && waitingJob(effect.row)) ?? empty;
    const row = { jobId, name: print, tenantId: "acme", text, ...hashes };
    expect(effect?.row).toEqual(queuedRow(nowMs, 0, row));
    expect(JSON.parse(text)).toEqual({
      ...{ jobId, name: print, payload: { n: 1 }, ...cause },
      ...{ proof: { key: "k1", mac: "mac" }, trace: { traceparent: "00-trace" } },
    });
    expect(did).toEqual([["named", jobId]]);
  });

  test.each([{}, { afterCommit: true }, { afterCommit: undefined }])(
    "holds a job with the options %j",
    async (options) => {
      const { did, run, ledger } = enqueueing();
      // Safe cast: plain JavaScript may pass `undefined`.
      await enqueue(run, "handler", print, { n: 1 }, options as EnqueueOptions);
      expect([ledger.seal().length, callsOf(did, "send")]).toEqual([1, []]);
    },
  );

  test("gives a repeat of the run, and the attempt after a failed one, the same IDs", async () => {
    const { run, ledger } = enqueueing();
    const two = async () => [
      (await enqueue(run, "handler", print, { n: 1 }, undefined)).jobId,
      (await enqueue(run, "handler", print, { n: 1 }, undefined)).jobId,
    ];
    const ids = [0, 1].map((n) => idOf(print, n));
    expect(await two()).toEqual(ids);
    ledger.failed();
    expect(await two()).toEqual(ids);
    expect(ledger.seal()).toHaveLength(2);
  });

  test("is refused once the run commits, except in its hooks", async () => {
    const { run, ledger } = enqueueing();
    ledger.begin("handler");
    ledger.join();
    await expect(enqueue(run, "handler", print, { n: 1 }, undefined)).rejects.toThrow(
      "ctx.enqueue: the run is committing; enqueue before ctx.commit, and in a hook before `after`",
    );
    await enqueue(run, "hook", print, { n: 1 }, undefined);
    expect(ledger.seal()).toHaveLength(1);
  });

  test("belongs to the attempt in which it was called, even if it ends in the next one", async () => {
    const { run, ledger } = enqueueing();
    const late = enqueue(run, "handler", print, { n: 1 }, undefined);
    ledger.failed();
    await late;
    expect(ledger.size).toBe(0);
  });

  test("drops duplicates by the payload, or by the job's own key, and groups by its order", async () => {
    const { did, run, ledger } = enqueueing();
    for (const options of [undefined, { afterCommit: false }]) {
      await enqueue(run, "handler", print, { n: 1 }, options);
      await enqueue(run, "handler", sort, { n: 1, shelf: "a" }, options);
    }

    const hash = (name: string, ...content: unknown[]) =>
      jobHash({ name, tenantId: "acme" }, content);
    const plain = hash(print, "payload", { n: 1 });
    const expected = [
      { deduplicationId: plain, group: plain },
      { deduplicationId: hash(sort, "key", "1"), group: hash(sort, "order", "a") },
    ];
    expect(sentBy(did).map(({ hashes }) => hashes)).toEqual(expected);
    const rows = ledger.seal().map(({ row }) => waitingJob(row) ?? empty);
    expect(rows.map(({ text, ...hashes }) => hashes)).toEqual(expected);
  });

  test.each([
    [
      "an undeclared job",
      "notes.note.lost",
      {},
      {},
      "declares the job notes.note.lost; declare it with r.job",
    ],
    [
      "a payload that does not fit",
      print,
      { n: "1" },
      {},
      "ctx.enqueue: the payload of notes.note.print does not fit its schema (n: ",
    ],
    [
      "a late payload that does not fit",
      print,
      {},
      { delaySeconds: 1 },
      "ctx.enqueue: the payload of notes.note.print does not fit its schema (n: ",
    ],
    [
      "a payload that is no object",
      sort,
      7,
      {},
      "ctx.enqueue: the payload of notes.note.sort is not an object",
    ],
    [
      "an unknown option",
      print,
      { n: 1 },
      { delay: 1 },
      'ctx.enqueue: unknown option "delay"; known are delaySeconds, at, tenantId, afterCommit',
    ],
    [
      "a misspelt option",
      print,
      { n: 1 },
      { aftercommit: false },
      'unknown option "aftercommit"; did you mean `afterCommit`?',
    ],
    [
      "an undeclared job at once",
      "notes.note.lost",
      {},
      { afterCommit: false },
      "declares the job notes.note.lost; declare it with r.job",
    ],
    [
      "a payload that does not fit, at once",
      print,
      { n: "1" },
      { afterCommit: false },
      "ctx.enqueue: the payload of notes.note.print does not fit its schema (n: ",
    ],
    [
      "an option that is neither true nor false",
      print,
      { n: 1 },
      { afterCommit: "no" },
      'ctx.enqueue: afterCommit is "no"; use true or false',
    ],
    [
      "an option that is null",
      print,
      { n: 1 },
      { afterCommit: null, delaySeconds: 1 },
      "ctx.enqueue: afterCommit is null; use true or false",
    ],
    [
      "a key that is no text",
      sort,
      { shelf: "a" },
      {},
      "dedupKey of notes.note.sort returned undefined",
    ],
    [
      "an invalid time",
      print,
      { n: 1 },
      { delaySeconds: -1 },
      "delaySeconds -1 is not a number from 0",
    ],
  ])(
    "refuses %s, and neither sends nor holds anything",
    async (_, name, given, options, message) => {
      const { did, run, ledger } = enqueueing();
      // Safe cast: plain JavaScript may pass any options.
      const refused = enqueue(run, "handler", name, given, options as EnqueueOptions);
      await expect(refused).rejects.toThrow(message);
      expect([did, ledger.size === 0]).toEqual([[], true]);
    },
  );
});

describe("a job with `afterCommit: false`", () => {
  const atOnce = { afterCommit: false };

  test("is sent by itself, with its cause, proof and trace, and then logged", async () => {
    const { did, run, ledger } = enqueueing();
    const jobId = idAtOnce(print, 0);

    expect(await enqueue(run, "handler", print, { n: 1 }, atOnce)).toEqual({ jobId });
    const [{ job } = {}] = sentBy(did);
    expect(job).toEqual({
      ...{ jobId, name: print, payload: { n: 1 }, ...cause },
      ...{ proof: { key: "k1", mac: "mac" }, trace: { traceparent: "00-trace" } },
    });
    expect(did.map(([what]) => what)).toEqual(["named", "send", "log.info"]);
    expect(did[0]).toEqual(["named", jobId]);
    expect(did[2]).toEqual(["log.info", "job.enqueued", { job: print, enqueuedId: jobId }]);
    expect(ledger.size).toBe(0);
  });

  test("is not logged if the queue has refused it", async () => {
    const open = async () => ({
      fairMode: "off",
      jobs: {
        send: async () => {
          throw new Error("refused");
        },
      },
    });
    const { did, run } = enqueueing({ adapters: { messaging: { open } } });
    await expect(enqueue(run, "handler", print, { n: 1 }, atOnce)).rejects.toThrow("refused");
    expect(callsOf(did, "log.info")).toEqual([]);
  });

  test("is stored before it is sent if equal jobs merge by a mark, and then logged", async () => {
    const commit = vi.fn<(given: CommitGiven) => Promise<undefined>>();
    for (const fairMode of ["receive", "send"] as const) {
      commit.mockClear();
      const outbox = { items: (row: object) => [{ Put: row }] };
      const { did, run, ledger } = enqueueing({ fairMode });
      Object.assign(run.adapters, { claims: { commit }, outbox });
      const jobId = idAtOnce(print, 0);
      expect(await enqueue(run, "handler", print, { n: 1 }, atOnce)).toEqual({ jobId });
      const row = expect.objectContaining({ eventId: jobId, type: print });
      expect(commit.mock.calls).toEqual([[expect.objectContaining({ items: [{ Put: row }] })]]);
      expect(did).toEqual([
        ["named", jobId],
        ["log.info", "job.enqueued", { job: print, enqueuedId: jobId }],
        ["sendCommitted", [row]],
      ]);
      expect(ledger.size).toBe(0);
    }
  });

  test("with an order is sent by itself to the FIFO queue, whose deduplication merges it", async () => {
    const { did, run } = enqueueing({ fairMode: "send" });
    await enqueue(run, "handler", sort, { n: 1, shelf: "a" }, atOnce);
    expect(did.map(([what]) => what)).toEqual(["named", "send", "log.info"]);
  });

  test("is still sent after the run has committed, and counts on after a failed attempt", async () => {
    const { run, ledger } = enqueueing();
    const ids = [await enqueue(run, "handler", print, { n: 1 }, atOnce)];
    ledger.failed();
    ids.push(await enqueue(run, "handler", print, { n: 1 }, atOnce));
    ledger.written();
    ids.push(await enqueue(run, "handler", print, { n: 1 }, atOnce));
    expect(ids.map(({ jobId }) => jobId)).toEqual([0, 1, 2].map((n) => idAtOnce(print, n)));
  });

  test("leaves the IDs of jobs that join the commit as they are", async () => {
    const { run, ledger } = enqueueing();
    await enqueue(run, "handler", print, { n: 1 }, atOnce);
    await enqueue(run, "handler", print, { n: 1 }, undefined);
    expect(ledger.seal().map(({ row }) => row.eventId)).toEqual([idOf(print, 0)]);
  });

  test("and a delay is stored in a transaction of its own, and is not sent", async () => {
    const commit = vi.fn<(given: CommitGiven) => Promise<undefined>>();
    const { did, run, ledger } = enqueueing({ adapters: { claims: { commit } } });
    const jobId = dueId(nowMs + 90_000, "seed", "later at once", print, 0);
    const options = { ...atOnce, delaySeconds: 90 };

    expect(await enqueue(run, "handler", print, { n: 1 }, options)).toEqual({ jobId });
    const token = expect.any(String);
    expect(commit.mock.calls).toEqual([
      [{ items: [{ Put: jobId }], token, completed: undefined, tenantId: "acme" }],
    ]);
    const dueAt = new Date(nowMs + 90_000).toISOString();
    expect(did).toEqual([
      ["named", jobId],
      ["log.info", "job.scheduled", { job: print, scheduledId: jobId, dueAt }],
    ]);
    expect(ledger.size).toBe(0);
    ledger.written();
    await enqueue(run, "handler", print, { n: 1 }, options);
    expect(commit).toHaveBeenCalledTimes(2);
    const tokens = commit.mock.calls.map(([given]) => given.token);
    expect(new Set(tokens).size).toBe(2);
  });

  test("and a delay fails if its row is refused, and logs nothing", async () => {
    const commit = async () => [
      { code: "ValidationError", message: "too large" },
      { code: "ThrottlingError", message: "" },
    ];
    const { did, run } = enqueueing({ adapters: { claims: { commit } } });
    const refused = enqueue(run, "handler", print, { n: 1 }, { ...atOnce, delaySeconds: 90 });
    await expect(refused).rejects.toThrow(
      "job notes.note.print could not be stored: ValidationError too large, ThrottlingError",
    );
    expect(callsOf(did, "log.info")).toEqual([]);
  });
});

describe("a job that is due later", () => {
  test.each([
    ["after a delay", { delaySeconds: 90 }, 90_000],
    ["at a date", { at: new Date(nowMs + 5) }, 5],
    ["after no delay", { delaySeconds: 0 }, 0],
  ])("%s is held for the commit, at its time, and is not sent", async (_, options, inMs) => {
    const { did, run, ledger } = enqueueing();
    const jobId = dueId(nowMs + inMs, "seed", "later", print, 0);

    expect(await enqueue(run, "handler", print, { n: 1 }, options)).toEqual({ jobId });
    const [effect, ...others] = ledger.seal();
    expect(others).toEqual([]);
    expect(effect).toMatchObject({
      kind: "job",
      name: print,
      dueMs: nowMs + inMs,
      row: { ...duePlace(jobId), eventId: jobId, type: print, tenantId: "acme" },
    });
    expect(effect?.row.text).toContain(`{"jobId":"${jobId}","name":"${print}","payload":{"n":1}`);
    expect(did).toEqual([["named", jobId]]);
  });

  test("is a duplicate of no other job, whatever key its declaration gives", async () => {
    const { run, ledger } = enqueueing();
    for (const delaySeconds of [60, 60])
      await enqueue(run, "handler", sort, { n: 1, shelf: "a" }, { delaySeconds });

    const hash = (...content: unknown[]) => jobHash({ name: sort, tenantId: "acme" }, content);
    expect(ledger.seal().map(({ row }) => row.text.split(" ").slice(0, 2))).toEqual(
      [0, 1].map((n) => [
        hash("key", dueId(nowMs + 60_000, "seed", "later", sort, n)),
        hash("order", "a"),
      ]),
    );
  });

  test("is refused once the run commits", async () => {
    const { run, ledger } = enqueueing();
    ledger.written();
    await expect(enqueue(run, "handler", print, { n: 1 }, { delaySeconds: 1 })).rejects.toThrow(
      "ctx.enqueue: the run has committed; enqueue before ctx.commit, and in a hook before `after`",
    );
  });
});

describe("a job for a tenant", () => {
  test("may be enqueued by a run of the system, and keeps the rest of its cause", async () => {
    const { did, run } = enqueueing({ isSystem: true }, system);
    await enqueue(run, "handler", print, { n: 1 }, { tenantId: "evil" });
    await enqueue(run, "handler", print, { n: 1 }, { tenantId: "evil", delaySeconds: 1 });
    await enqueue(run, "handler", print, { n: 1 }, { tenantId: "evil", afterCommit: false });
    const evil = { ...system, tenantId: "evil" };
    expect(sentBy(did)).toMatchObject([{ job: evil }]);
    const held = run.ledger.seal().flatMap((effect) => ("row" in effect ? effect.row : []));
    expect(held.map(({ tenantId }) => tenantId)).toEqual(["evil", "evil"]);
    const texts = held.map((row) => JSON.parse((waitingJob(row) ?? empty).text));
    expect(texts).toMatchObject([evil, evil]);
  });

  test("may not be enqueued by a run of a tenant, not even for its own", async () => {
    const { did, run } = enqueueing();
    const refused = enqueue(run, "handler", print, { n: 1 }, { tenantId: "acme" });
    await expect(refused).rejects.toThrow(AccessDeniedError);
    expect(did).toEqual([]);
  });

  test("needs a name that a tenant may have", async () => {
    const { run } = enqueueing({ isSystem: true }, system);
    await expect(enqueue(run, "handler", print, { n: 1 }, { tenantId: "" })).rejects.toThrow(
      'ctx.enqueue: tenantId is ""; use a string',
    );
  });
});

describe("ctx.cancelJob", () => {
  const jobId = dueId(nowMs, "seed", "later", print, 0);
  const withStore = (isTakenBack: boolean) => {
    const asked: unknown[] = [];
    const takeBack = async (...given: unknown[]) => {
      asked.push(given);
      return isTakenBack;
    };
    return {
      asked,
      ...enqueueing({ adapters: { dueJobs: { open: async () => ({ takeBack }) } } }),
    };
  };

  test.each([
    ["takes back a job of the run's tenant, and logs it", true],
    ["says when the job is gone, and logs nothing", false],
  ])("%s", async (_, isTakenBack) => {
    const { asked, did, run } = withStore(isTakenBack);
    expect(await cancelJob(run, jobId)).toBe(isTakenBack);
    expect(asked).toEqual([[duePlace(jobId), "acme"]]);
    const line = ["log.info", "job.canceled", { canceledId: jobId }];
    expect(did).toEqual(isTakenBack ? [line] : []);
  });

  test("looks for no job whose ID names no time", async () => {
    const { asked, run } = withStore(true);
    expect(await cancelJob(run, "nothing")).toBe(false);
    expect(asked).toEqual([]);
  });
});
