import { expect, test, vi } from "vitest";
import { isPermanent, PermanentError } from "../../base/errors/errors.ts";
import { type KeyRing, newRingKey, parseKeyRing, retiredKey } from "../../base/secrets/key-ring.ts";
import { createSecrets } from "../../base/secrets/secrets.ts";
import { envelopeText, type SharedEvent } from "./envelope.ts";
import { type JobMessage, jobText } from "./job-message.ts";
import { createMessageGuard, type MessageGuard, readMessage } from "./message-guard.ts";
import type { MessageQueue } from "./message-queue.ts";
import type { MessageProof } from "./proof.ts";

const cause = { causedBy: "r1", origRequestId: "r1", tenantId: "acme", userId: "ann" };
const job: JobMessage<Readonly<Record<string, unknown>>> = {
  jobId: "j1",
  name: "files.file.scan",
  payload: { n: 1 },
  ...cause,
};
const event: SharedEvent<Readonly<Record<string, unknown>>> = {
  kind: "shared",
  type: "file.created",
  eventId: "e1",
  payload: { n: 1 },
  ...cause,
};

const keys = { k1: newRingKey(), k2: newRingKey() };
const ringOf = (active: keyof typeof keys, ...names: (keyof typeof keys)[]) =>
  parseKeyRing(
    JSON.stringify({
      active,
      keys: Object.fromEntries([active, ...names].map((name) => [name, keys[name]])),
    }),
  );
const startMs = 1_000_000;

interface Setting {
  readonly proof?: MessageProof;
  readonly prefix?: string;
  readonly ring?: KeyRing | undefined;
  /** What the parameter holds by now; a failure where it is absent. */
  readonly stored?: KeyRing;
}

function guardOf({ proof, prefix = "keelson", ring, stored }: Setting) {
  const lines: (readonly [string, unknown?])[] = [];
  const seen = { nowMs: startMs, reads: 0, lines };
  const clock = { now: () => seen.nowMs };
  const load = async () => {
    seen.reads += 1;
    if (stored === undefined) throw new Error("SSM is down");
    return stored;
  };
  const secrets = createSecrets({ load, clock });
  secrets.begin(ring, startMs);
  const log = { warn: (...line: readonly [string, unknown?]) => void lines.push(line) };
  const guard = createMessageGuard({ proof, source: prefix, secrets, clock, log });
  return { guard, seen };
}

/** A queue, in so far as a guard looks at it. */
const queueOf = (holds: MessageQueue["holds"], name = `keelson-${holds}`) =>
  ({ name, holds }) as MessageQueue; // safe: for a guard

const signedJob = async (guard: MessageGuard) => jobText(job, { proof: await guard.signJob(job) });
const signedEvent = async (guard: MessageGuard) =>
  envelopeText(event, { proof: await guard.signEvent(event) });
const admitJob = (guard: MessageGuard, text: string) =>
  guard.admit(readMessage(text), queueOf("jobs"), "m1");
const onBus = (text: string, source: string) =>
  JSON.stringify({ "detail-type": "file.created", source, detail: JSON.parse(text) });

async function refusal(work: Promise<void>): Promise<unknown> {
  return work.then(
    () => undefined,
    (error: unknown) => error,
  );
}

test("accepts messages that a server signed, and permanently refuses unsigned ones", async () => {
  const { guard, seen } = guardOf({ proof: "require", ring: ringOf("k1") });
  const queue = queueOf("events");
  await admitJob(guard, await signedJob(guard));
  await guard.admit(readMessage(await signedEvent(guard)), queue, "m1");
  await guard.admit(readMessage(onBus(await signedEvent(guard), "keelson")), queue, "m1");
  const missing = new PermanentError("it has no proof");
  expect(await refusal(admitJob(guard, jobText(job)))).toEqual(missing);
  expect(await refusal(guard.admit(readMessage(envelopeText(event)), queue, "m1"))).toEqual(
    missing,
  );
  expect(seen.lines).toEqual([]);
});

test.each<[string, (text: string) => string, string]>([
  [
    "another tenant",
    (text) => text.replace('"acme"', '"globex"'),
    "its proof is not of this message",
  ],
  [
    "an originator",
    (text) => text.replace("{", '{"originator":"system",'),
    "its proof is not of this message",
  ],
  ["another payload", (text) => text.replace('"n":1', '"n":2'), "its proof is not of this message"],
  [
    "another MAC",
    (text) => text.replace(/"mac":"..../, '"mac":"AAAA'),
    "its proof is not of this message",
  ],
  [
    "half a MAC",
    (text) => text.replace(/"mac":"[^"]{20}/, '"mac":"'),
    "its proof has another shape",
  ],
  [
    "a proof that is null",
    () => JSON.stringify({ ...job, proof: null }),
    "its proof has another shape",
  ],
  [
    "a key of nobody's",
    (text) => text.replace('"k1"', '"k9"'),
    "its proof names the key k9, which the key ring has not",
  ],
  [
    "another key of the ring",
    (text) => text.replace('"k1"', '"k2"'),
    "its proof is not of this message",
  ],
])(
  "permanently refuses a message with %s, and shows no MAC in the reason",
  async (_what, forge, reason) => {
    const { guard } = guardOf({
      proof: "require",
      ring: ringOf("k1", "k2"),
      stored: ringOf("k1", "k2"),
    });
    const text = await signedJob(guard);
    expect(forge(text)).not.toBe(text);
    expect(await refusal(admitJob(guard, forge(text)))).toEqual(new PermanentError(reason));
  },
);

test("proves messages of a system run as such, and as nothing else", async () => {
  const { guard } = guardOf({ proof: "require", ring: ringOf("k1") });
  const { tenantId: _tenant, userId: _user, ...nobody } = cause;
  const system = {
    ...nobody,
    tenantId: undefined,
    userId: undefined,
    originator: "system",
  } as const;
  const [ofJob, ofEvent] = [
    { ...job, ...system },
    { ...event, ...system },
  ];
  const [jobs, events] = [
    jobText(ofJob, { proof: await guard.signJob(ofJob) }),
    onBus(envelopeText(ofEvent, { proof: await guard.signEvent(ofEvent) }), "keelson"),
  ];
  const wrong = new PermanentError("its proof is not of this message");
  const without = (text: string) => text.replace('"originator":"system",', "");
  await admitJob(guard, jobs);
  await guard.admit(readMessage(events), queueOf("events"), "m1");
  expect(await refusal(admitJob(guard, without(jobs)))).toEqual(wrong);
  expect(await refusal(guard.admit(readMessage(without(events)), queueOf("events"), "m1"))).toEqual(
    wrong,
  );
});

test("refuses the proof of a job for an event with the same parts", async () => {
  const { guard } = guardOf({ proof: "require", ring: ringOf("k1") });
  const same = { ...event, type: job.name, eventId: job.jobId };
  const read = { event: same, proof: await guard.signJob(job), source: undefined };
  expect(await refusal(guard.admit(read, queueOf("events"), "m1"))).toEqual(
    new PermanentError("its proof is not of this message"),
  );
});

test("refuses a job of another server with the same key ring, and checks an event against its source on the bus", async () => {
  const [own, other] = [{ prefix: "one" }, { prefix: "two" }].map(
    (whose) => guardOf({ proof: "require", ring: ringOf("k1"), ...whose }).guard,
  ) as [MessageGuard, MessageGuard]; // safe: two of two
  const wrong = new PermanentError("its proof is not of this message");
  expect(await refusal(admitJob(own, await signedJob(other)))).toEqual(wrong);
  const text = await signedEvent(other);
  await own.admit(readMessage(onBus(text, "two")), queueOf("events"), "m1");
  expect(
    await refusal(own.admit(readMessage(onBus(text, "one")), queueOf("events"), "m1")),
  ).toEqual(wrong);
  expect(await refusal(own.admit(readMessage(text), queueOf("events"), "m1"))).toEqual(wrong);
});

test.each<[string, Setting, boolean]>([
  ["where it says nothing and has a ring", { ring: ringOf("k1") }, true],
  ["with sign", { ring: ringOf("k1"), proof: "sign" }, true],
  ["where it says nothing and has no ring", {}, false],
  ["with off", { ring: ringOf("k1"), proof: "off" }, false],
])("a server %s accepts missing and wrong proofs, and signs: %j", async (_what, setting, signs) => {
  const { guard, seen } = guardOf(setting);
  expect((await guard.signJob(job)) !== undefined).toBe(signs);
  expect((await guard.signEvent(event)) !== undefined).toBe(signs);
  await admitJob(guard, jobText(job));
  await admitJob(guard, jobText(job, { proof: { key: "k1", mac: "A".repeat(43) } }));
  expect(seen.lines.map(([line]) => line)).toEqual(
    signs ? ["message.proof_missing", "message.proof_invalid"] : [],
  );
});

test("a server without a key ring or a proof setting checks no proofs", async () => {
  const secrets = createSecrets({ clock: { now: () => startMs } });
  secrets.begin(undefined, startMs);
  const recent = vi.spyOn(secrets, "recent");
  const guard = createMessageGuard({
    proof: undefined,
    source: "keelson",
    secrets,
    clock: { now: () => startMs },
    log: { warn: () => expect.unreachable() },
  });
  expect(await guard.signJob(job)).toBeUndefined();
  await admitJob(guard, jobText(job, { proof: { key: "k1", mac: "A".repeat(43) } }));
  expect(recent).not.toHaveBeenCalled();
});

test("a server that requires proofs but has no key ring accepts nothing", async () => {
  const { guard } = guardOf({ proof: "require" });
  const { guard: other } = guardOf({ ring: ringOf("k1") });
  expect(isPermanent(await refusal(admitJob(guard, await signedJob(other))))).toBe(true);
  expect(isPermanent(await refusal(admitJob(guard, jobText(job))))).toBe(true);
});

test("logs each kind of tolerated proof failure once per minute, with the number of messages", async () => {
  const { guard, seen } = guardOf({ proof: "sign", ring: ringOf("k1") });
  for (let n = 0; n < 5; n += 1) await admitJob(guard, jobText(job));
  await guard.admit(readMessage(envelopeText(event)), queueOf("events"), "m2");
  seen.nowMs += 60_000;
  await admitJob(guard, jobText({ ...job, jobId: "j2" }));
  const reason = "it has no proof";
  expect(seen.lines).toEqual([
    [
      "message.proof_missing",
      { queue: "keelson-jobs", messageId: "m1", job: job.name, jobId: "j1", reason, messages: 1 },
    ],
    [
      "message.proof_missing",
      {
        queue: "keelson-events",
        messageId: "m2",
        event: event.type,
        eventId: "e1",
        reason,
        messages: 1,
      },
    ],
    [
      "message.proof_missing",
      { queue: "keelson-jobs", messageId: "m1", job: job.name, jobId: "j2", reason, messages: 5 },
    ],
  ]);
});

test("logs proof failures also after the clock is set back", async () => {
  const { guard, seen } = guardOf({ proof: "sign", ring: ringOf("k1") });
  await admitJob(guard, jobText(job));
  seen.nowMs -= 1;
  await admitJob(guard, jobText(job));
  await admitJob(guard, jobText(job));
  expect(seen.lines).toHaveLength(2);
});

test("reads the key ring once to find a new key, and accepts the message", async () => {
  const { guard: signer } = guardOf({ ring: ringOf("k2") });
  const { guard, seen } = guardOf({
    proof: "require",
    ring: ringOf("k1"),
    stored: ringOf("k1", "k2"),
  });
  seen.nowMs += 10_000;
  await admitJob(guard, await signedJob(signer));
  await admitJob(guard, await signedJob(signer));
  expect(seen.reads).toBe(1);
});

test("with an unreadable ring, retries messages with unknown keys, and accepts those with known keys", async () => {
  const { guard: signer } = guardOf({ ring: ringOf("k2") });
  const { guard, seen } = guardOf({ proof: "require", ring: ringOf("k1") });
  seen.nowMs += 10_000;
  const error = await refusal(admitJob(guard, await signedJob(signer)));
  expect(isPermanent(error)).toBe(false);
  expect(error).toMatchObject({ code: "config_unavailable", status: 503 });
  await admitJob(guard, await signedJob(guard));
  expect(seen.reads).toBe(1);
});

test("signs with the known key while the ring is unreadable, and with the new key once it can be read", async () => {
  const down = guardOf({ ring: ringOf("k1") });
  const changed = guardOf({ ring: ringOf("k1"), stored: ringOf("k2", "k1") });
  for (const { guard, seen } of [down, changed]) {
    expect(await guard.signJob(job)).toMatchObject({ key: "k1" });
    seen.nowMs += 300_000;
  }
  expect(await down.guard.signJob(job)).toMatchObject({ key: "k1" });
  expect(await changed.guard.signJob(job)).toMatchObject({ key: "k2" });
  await admitJob(changed.guard, await signedJob(down.guard));
});

test("accepts messages of a removed key for a year and fourteen days, and then refuses them", async () => {
  const retiredMs = (365 + 14) * 24 * 60 * 60 * 1000;
  const { guard: signer } = guardOf({ ring: ringOf("k1") });
  const text = await signedJob(signer);
  const ring = parseKeyRing(
    JSON.stringify({
      active: "k2",
      keys: { k2: keys.k2 },
      retired: { k1: retiredKey(keys.k1, startMs) },
    }),
  );
  const { guard, seen } = guardOf({ proof: "require", ring, stored: ring });
  await admitJob(guard, text);
  seen.nowMs = startMs + retiredMs - 1;
  await admitJob(guard, text);
  seen.nowMs += 1;
  expect(await refusal(admitJob(guard, text))).toEqual(
    new PermanentError("its proof names the key k1, which the key ring has not"),
  );
});

test.each<[string, MessageQueue["holds"], string, string]>([
  [
    "a job in the queue of events",
    "events",
    jobText(job),
    "a job is not taken from the queue of events",
  ],
  [
    "an event in the queue of jobs",
    "jobs",
    envelopeText(event),
    "an event is not taken from the queue of jobs",
  ],
])("permanently refuses %s, whatever the proof setting", async (_what, holds, text, reason) => {
  const { guard } = guardOf({ proof: "off" });
  expect(await refusal(guard.admit(readMessage(text), queueOf(holds), "m1"))).toEqual(
    new PermanentError(reason),
  );
});

test("accepts events and jobs from a queue of unknown kind, and logs that once", async () => {
  const { guard, seen } = guardOf({});
  const queue = queueOf(undefined, "orders");
  guard.meet(queue);
  await guard.admit(readMessage(jobText(job)), queue, "m1");
  await guard.admit(readMessage(envelopeText(event)), queue, "m2");
  guard.meet(queueOf("jobs"));
  expect(seen.lines).toEqual([
    [
      "queue.kind_unknown",
      {
        queue: "orders",
        message: "events and jobs are both taken from it",
        fix: "set KEELSON_EVENT_QUEUE or KEELSON_JOB_QUEUE to its name; events and jobs need a queue each",
      },
    ],
  ]);
});
