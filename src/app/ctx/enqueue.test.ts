import { describe, expect, test } from "vitest";
import { z } from "zod";
import { callsOf } from "../../../test/support/recorded-commits.ts";
import { nowMs, type RecordedOptions, recordedRun } from "../../../test/support/recorded-run.ts";
import { AccessDeniedError } from "../../base/errors/errors.ts";
import { dueId, duePlace } from "../../parts/messages/due-jobs.ts";
import { jobHash } from "../../parts/messages/job-message.ts";
import { derivedId } from "../../parts/once/derived-id.ts";
import type { EnqueueOptions } from "../handlers/pipeline-context.ts";
import { EffectLedger } from "./effect-ledger.ts";
import type { EffectRun, HeldEffect } from "./effect-run.ts";
import { enqueue, unschedule } from "./enqueue.ts";

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

describe("ctx.enqueue", () => {
  test("sends a job at once, with its cause, proof and trace, and then logs it", async () => {
    const { did, run, ledger } = enqueueing();
    const jobId = idOf(print, 0);

    expect(await enqueue(run, "handler", print, { n: 1 }, undefined)).toEqual({ jobId });
    const [{ job } = {}] = sentBy(did);
    expect(job).toEqual({
      ...{ jobId, name: print, payload: { n: 1 }, ...cause },
      ...{ proof: { key: "k1", mac: "mac" }, trace: { traceparent: "00-trace" } },
    });
    expect(did.map(([what]) => what)).toEqual(["named", "send", "log.info"]);
    expect(did[0]).toEqual(["named", jobId]);
    expect(did[2]).toEqual(["log.info", "job.enqueued", { job: print, enqueuedId: jobId }]);
    expect(ledger.isEmpty).toBe(true);
  });

  test("logs no job that the queue has refused", async () => {
    const open = async () => ({
      jobs: {
        send: async () => {
          throw new Error("refused");
        },
      },
    });
    const { did, run } = enqueueing({ adapters: { messaging: { open } } });
    await expect(enqueue(run, "handler", print, { n: 1 }, {})).rejects.toThrow("refused");
    expect(callsOf(did, "log.info")).toEqual([]);
  });

  test("still sends after the run has committed, and counts on after a failed attempt", async () => {
    const { run, ledger } = enqueueing();
    const ids = [await enqueue(run, "handler", print, { n: 1 }, undefined)];
    ledger.failed();
    ids.push(await enqueue(run, "handler", print, { n: 1 }, undefined));
    ledger.written();
    ids.push(await enqueue(run, "handler", print, { n: 1 }, undefined));
    expect(ids.map(({ jobId }) => jobId)).toEqual([0, 1, 2].map((n) => idOf(print, n)));
  });

  test("drops duplicates by the payload, or by the job's own key, and groups by its order", async () => {
    const { did, run } = enqueueing();
    await enqueue(run, "handler", print, { n: 1 }, undefined);
    await enqueue(run, "handler", sort, { n: 1, shelf: "a" }, undefined);

    const hash = (name: string, ...content: unknown[]) =>
      jobHash({ name, tenantId: "acme" }, content);
    const plain = hash(print, "payload", { n: 1 });
    expect(sentBy(did).map(({ hashes }) => hashes)).toEqual([
      { deduplicationId: plain, group: plain },
      { deduplicationId: hash(sort, "key", "1"), group: hash(sort, "order", "a") },
    ]);
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
    ["an unknown option", print, { n: 1 }, { delay: 1 }, "delay"],
    [
      "a key that is no text",
      sort,
      { shelf: "a" },
      {},
      "dedupKey of notes.note.sort gave undefined",
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
      expect([did, ledger.isEmpty]).toEqual([[], true]);
    },
  );
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
      "ctx.enqueue: the run has committed; enqueue what is due later before ctx.commit",
    );
  });
});

describe("a job for a tenant", () => {
  test("may be enqueued by a run of the system, and keeps the rest of its cause", async () => {
    const { did, run } = enqueueing({ isSystem: true }, system);
    await enqueue(run, "handler", print, { n: 1 }, { tenantId: "evil" });
    await enqueue(run, "handler", print, { n: 1 }, { tenantId: "evil", delaySeconds: 1 });
    expect(sentBy(did)[0]?.job).toMatchObject({ ...system, tenantId: "evil" });
    expect(run.ledger.seal()[0]?.row.tenantId).toBe("evil");
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
      'ctx.enqueue: tenantId is ""; use a text',
    );
  });
});

describe("ctx.unschedule", () => {
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
    expect(await unschedule(run, jobId)).toBe(isTakenBack);
    expect(asked).toEqual([[duePlace(jobId), "acme"]]);
    const line = ["log.info", "job.unscheduled", { unscheduledId: jobId }];
    expect(did).toEqual(isTakenBack ? [line] : []);
  });

  test("looks for no job whose ID names no time", async () => {
    const { asked, run } = withStore(true);
    expect(await unschedule(run, "nothing")).toBe(false);
    expect(asked).toEqual([]);
  });
});
