import { describe, expect, test } from "vitest";
import { z } from "zod";
import { callsOf } from "../../../test/support/recorded-commits.ts";
import { nowMs, recordedRun } from "../../../test/support/recorded-run.ts";
import { queuedRow, waitingJob } from "../../parts/messages/due-jobs.ts";
import { jobHash } from "../../parts/messages/job-message.ts";
import { derivedId } from "../../parts/once/derived-id.ts";
import type { SendOptions } from "../handlers/effect-options.ts";
import { deliver } from "./deliver.ts";
import { EffectLedger } from "./effect-ledger.ts";
import type { EffectRun, HeldEffect } from "./effect-run.ts";

const cause = { causedBy: "r1", origRequestId: "r0", tenantId: "acme", userId: "ann" };
const name = "keelson.delivery.send";

/** What a row contains that has no job. */
const empty = { name, tenantId: "acme", group: "", deduplicationId: "", text: "" };

function delivering(of: EffectRun["cause"] = cause, seed = "seed") {
  const { did, parts } = recordedRun({
    channels: { wall: { input: z.object({ text: z.string() }) }, post: {} },
    run: { seed: () => seed },
  });
  const ledger = new EffectLedger<HeldEffect>(false);
  const run: EffectRun = { ...parts, cause: of, ledger };
  /** The IDs of the deliveries that join the commit. */
  const ids = () => ledger.seal().map(({ row }) => row.eventId);
  return { did, run, ledger, ids };
}

const ownId = (channel: string, ordinal: number, seed = "seed") =>
  derivedId(seed, "delivery", channel, ordinal);

test("a delivery is held for the commit, as a job that is due now, with its cause, proof and trace", async () => {
  const { did, run, ledger } = delivering();
  const jobId = ownId("wall", 0);
  expect(await deliver(run, "handler", "wall", { text: "hi" }, undefined)).toEqual({
    deliveryId: jobId,
  });
  const [effect, ...others] = ledger.seal();
  expect(others).toEqual([]);
  const row = effect?.row ?? queuedRow(0, 0, { ...empty, jobId });
  expect(effect).toMatchObject({ kind: "delivery", name: "wall" });
  expect(row).toEqual(queuedRow(nowMs, 0, { ...empty, jobId, ...waitingJob(row) }));
  const content = { channel: "wall", message: { text: "hi" }, key: jobId };
  const { text, ...hashes } = waitingJob(row) ?? empty;
  expect(JSON.parse(text)).toEqual({
    ...{ jobId, name, payload: content, ...cause },
    ...{ proof: { key: "k1", mac: "mac" }, trace: { traceparent: "00-trace" } },
  });
  const hash = jobHash({ name, tenantId: "acme" }, ["key", jobId]);
  expect(hashes).toEqual({ deduplicationId: hash, group: hash });
  expect(did).toEqual([["named", jobId]]);
});

test("each delivery of a run to a channel has its own ID, which a repeat of the run has again", async () => {
  const [first, second] = [delivering(), delivering()];
  for (const { run } of [first, second])
    for (const channel of ["wall", "wall", "post"])
      await deliver(run, "handler", channel, { text: "hi" }, undefined);
  const expected = [ownId("wall", 0), ownId("wall", 1), ownId("post", 0)];
  expect([first.ids(), second.ids()]).toEqual([expected, expected]);
});

test("a key names the same delivery in every run of the tenant, and another for each channel and tenant", async () => {
  const idsOf = async (of: EffectRun["cause"], channel: string, seed: string) => {
    const { run, ids } = delivering(of, seed);
    const sent = await deliver(run, "handler", channel, { text: "hi" }, { key: "k" });
    expect(ids()).toEqual([sent.deliveryId]);
    return ids();
  };
  const { tenantId, userId, ...noTenant } = cause;
  expect([
    await idsOf(cause, "wall", "one"),
    await idsOf({ ...cause, userId: "bob" }, "wall", "two"),
    await idsOf(cause, "post", "one"),
    await idsOf({ ...cause, tenantId: "-" }, "wall", "one"),
    await idsOf(noTenant, "wall", "one"),
  ]).toEqual([
    [derivedId("delivery", "=acme", "wall", "k")],
    [derivedId("delivery", "=acme", "wall", "k")],
    [derivedId("delivery", "=acme", "post", "k")],
    [derivedId("delivery", "=-", "wall", "k")],
    [derivedId("delivery", "-", "wall", "k")],
  ]);
});

test("a key that looks like an ID of keelson is no duplicate of that delivery", async () => {
  const { run, ledger } = delivering();
  await deliver(run, "handler", "wall", { text: "hi" }, undefined);
  await deliver(run, "handler", "wall", { text: "hi" }, { key: ownId("wall", 0) });
  const jobs = ledger.seal().map(({ row }) => waitingJob(row) ?? empty);
  const keys = jobs.map(({ text }) => JSON.parse(text).payload.key);
  expect(keys).toEqual([ownId("wall", 0), `=${ownId("wall", 0)}`]);
  expect(new Set(jobs.map(({ deduplicationId }) => deduplicationId)).size).toBe(2);
});

test("a key counts as a delivery, so that later ones keep their IDs when a key is added", async () => {
  const { run, ids } = delivering();
  await deliver(run, "handler", "wall", { text: "hi" }, { key: "k" });
  await deliver(run, "handler", "wall", { text: "hi" }, undefined);
  expect(ids()[1]).toBe(ownId("wall", 1));
});

test("a message is sent as it was given, in its JSON form", async () => {
  const { run, ledger } = delivering();
  await deliver(run, "handler", "post", { at: new Date(0), none: undefined }, undefined);
  const [job = empty] = ledger.seal().map(({ row }) => waitingJob(row) ?? empty);
  expect(JSON.parse(job.text).payload.message).toEqual({ at: "1970-01-01T00:00:00.000Z" });
});

const circular: Record<string, unknown> = {};
circular["self"] = circular;

test.each<[string, string, unknown, string]>([
  ["an unknown channel", "wal", {}, "there is no channel wal; there are wall, post"],
  ["a list", "wall", [1], "the message for wall is not an object"],
  ["null", "post", null, "the message for post is not an object"],
  ["a text", "post", "hi", "the message for post is not an object"],
  ["a misfit", "wall", { text: 7 }, "the message for wall does not fit its schema (text: "],
  ["a circle", "post", circular, "the message for post cannot be written as JSON"],
])("%s is refused, and nothing is held", async (_, channel, message, problem) => {
  const { did, run, ledger } = delivering();
  // Safe cast: plain JavaScript may pass anything.
  await expect(deliver(run, "handler", channel, message as never, undefined)).rejects.toThrow(
    `ctx.delivery.send: ${problem}`,
  );
  expect([ledger.size, callsOf(did, "named")]).toEqual([0, []]);
});

test("no delivery starts once the run commits, except in its hooks, and one that ends late is dropped", async () => {
  const { run, ledger } = delivering();
  const late = deliver(run, "handler", "wall", { text: "late" }, undefined);
  ledger.failed();
  await late;
  expect(ledger.size).toBe(0);
  ledger.begin("handler");
  ledger.join();
  await expect(deliver(run, "handler", "wall", { text: "hi" }, undefined)).rejects.toThrow(
    "ctx.delivery.send: the run is committing; send before ctx.commit",
  );
  await deliver(run, "hook", "wall", { text: "hi" }, undefined);
  expect(ledger.size).toBeGreaterThan(0);
});

describe("a delivery with `afterCommit: false`", () => {
  const atOnce = { afterCommit: false };
  const idAtOnce = (ordinal: number) => derivedId("seed", "delivery at once", "wall", ordinal);

  test("is sent by itself, also after the commit, and then logged", async () => {
    const { did, run, ledger } = delivering();
    const deliveryId = idAtOnce(0);
    expect(await deliver(run, "handler", "wall", { text: "hi" }, atOnce)).toEqual({ deliveryId });

    expect(did.map(([what]) => what)).toEqual(["named", "send", "log.info"]);
    const [[text, hashes] = []] = callsOf(did, "send");
    expect(JSON.parse(String(text))).toMatchObject({
      ...{ jobId: deliveryId, name, ...cause },
      payload: { channel: "wall", message: { text: "hi" }, key: deliveryId },
    });
    const hash = jobHash({ name, tenantId: "acme" }, ["key", deliveryId]);
    expect(hashes).toEqual({ deduplicationId: hash, group: hash });
    expect(did[2]).toEqual(["log.info", "delivery.enqueued", { channel: "wall", deliveryId }]);

    ledger.written();
    expect(await deliver(run, "handler", "wall", { text: "hi" }, atOnce)).toEqual({
      deliveryId: idAtOnce(1),
    });
    expect([ledger.size, callsOf(did, "send").length]).toEqual([0, 2]);
  });

  test("with a key is the same delivery as one that joins a commit", async () => {
    const { did, run, ids } = delivering();
    const first = await deliver(run, "handler", "wall", { text: "hi" }, { ...atOnce, key: "k" });
    const second = await deliver(run, "handler", "wall", { text: "hi" }, { key: "k" });
    expect(second).toEqual(first);
    expect(ids()).toEqual([first.deliveryId]);
    expect(callsOf(did, "send")).toHaveLength(1);
  });
});

test.each<[unknown, string]>([
  [{ afterCommit: "no" }, 'afterCommit is "no"; use true or false'],
  [{ afterCommit: 0 }, "afterCommit is 0; use true or false"],
  [{ afterCommit: null, key: "k" }, "afterCommit is null; use true or false"],
  [{ aftercommit: true }, 'unknown option "aftercommit"; did you mean `afterCommit`?'],
  [{ delaySeconds: 5 }, 'unknown option "delaySeconds"; known are key, afterCommit'],
  ["k", 'the options are "k"; pass an object with key, afterCommit'],
  [null, "the options are null"],
])("the options %j are refused, and nothing is held or sent", async (options, problem) => {
  const { did, run, ledger } = delivering();
  // Safe cast: plain JavaScript may pass anything.
  const refused = deliver(run, "handler", "wall", { text: "hi" }, options as SendOptions);
  await expect(refused).rejects.toThrow(
    expect.objectContaining({
      name: "TypeError",
      message: expect.stringContaining(`ctx.delivery.send: ${problem}`),
    }),
  );
  expect([ledger.size, did]).toEqual([0, []]);
});

test.each([
  ["null", null],
  ["object", { number: 7 }],
  ["number", 7],
])(
  "a key of type %s is refused, as different ones may convert to the same string",
  async (type, key) => {
    const { run, ledger } = delivering();
    // Safe cast: plain JavaScript may pass anything.
    const options = { key: key as never };
    await expect(deliver(run, "handler", "wall", { text: "hi" }, options)).rejects.toThrow(
      `ctx.delivery.send: the key for wall is ${type}; use a string`,
    );
    expect(ledger.size).toBe(0);
  },
);
