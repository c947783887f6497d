import assert from "node:assert/strict";
import fc from "fast-check";
import { dynamoClaimStore } from "../../../src/aws/stores/claim-store.ts";
import { dynamoLines } from "../../../src/aws/stores/line-store.ts";
import { dynamoProjections } from "../../../src/aws/stores/projection-store.ts";
import { dynamoQuotas } from "../../../src/aws/stores/quota-store.ts";
import { dynamoRates } from "../../../src/aws/stores/rate-store.ts";
import { dynamoSchedules } from "../../../src/aws/stores/schedule-store.ts";
import { dynamoSlots } from "../../../src/aws/stores/slot-store.ts";
import { dynamoSteps } from "../../../src/aws/stores/step-store.ts";
import { arrival } from "../../../src/parts/limits/line.ts";
import { takeSlot } from "../../../src/parts/limits/take-slot.ts";
import {
  decodeAnswer,
  encodeAnswer,
  loadAnswer,
  type WriteAnswer,
} from "../../../src/parts/once/answer.ts";
import { claimKey } from "../../../src/parts/once/claim.ts";
import { createClaims } from "../../../src/parts/once/claims.ts";
import { stepVerdict } from "../../../src/parts/once/step.ts";
import { damagedBytes, damagedJson } from "../mutations.ts";
import { outcomeOf, parser } from "../parser.ts";
import { damagedItem, databaseOf, documentOf } from "./fake-database.ts";

const nowMs = 1_700_000_000_000;
const clock = { now: () => nowMs };
const key = claimKey(["write", "acme"], "r1");
const place = { pk: key.partition, sk: key.sort };
const answer: WriteAnswer = {
  status: 201,
  headers: { location: "/o/1" },
  cookies: [],
  body: '{"id":1}',
};
const data = await encodeAnswer(answer);
const gzipped = await encodeAnswer({ ...answer, body: "a".repeat(3_000) });
const binary = await encodeAnswer({ ...answer, body: new Uint8Array([0, 255]) });

/** An error of a row has keelson's own message, which names the problem. */
const documented = { errors: [Error] };

function checkAnswer({ status, headers, body }: WriteAnswer): void {
  assert.ok(Number.isInteger(status) && status >= 100 && status <= 599, `the status ${status}`);
  assert.ok(Object.values(headers).every((value) => typeof value === "string"));
  assert.ok(body === undefined || typeof body === "string" || body instanceof Uint8Array);
}

const running = {
  ...place,
  status: "INPROGRESS",
  owner: "o1",
  expiration: nowMs / 1_000 + 300,
  in_progress_expiration: nowMs + 30_000,
  validation: "v",
  generation: "o1",
};
const over = { ...running, in_progress_expiration: nowMs - 30_000 };
const completed = {
  ...place,
  status: "COMPLETED",
  owner: "o1",
  expiration: nowMs / 1_000 + 300,
  validation: "v",
  data,
};

const claimRow = parser({
  name: "claim-row",
  reads: "rows of claims, which Powertools may have written",
  inputs: damagedItem(running, over, completed, { ...completed, data: undefined, parts: 2 }),
  holds: async (wire) => {
    const { database } = databaseOf(wire);
    const store = dynamoClaimStore(database, "once");
    const schedule = {
      wait: async () => undefined,
      repeat: () => () => undefined,
      random: () => 0.5,
      now: () => 0,
    };
    const claims = createClaims({ store, clock, schedule, newOwner: () => "o2" });
    const options = { waitMs: 0, stop: [], fingerprint: "v", comparesFingerprint: true };
    const { value: taken } = await outcomeOf(() => claims.take(key, options), documented);
    if (taken?.kind !== "done") return;
    const { value: replayed } = await outcomeOf(
      () => loadAnswer(store, key, taken.record, undefined),
      documented,
    );
    if (replayed !== undefined) checkAnswer(replayed);
  },
});

const answerTexts = damagedJson(
  fc.constantFrom(
    { status: 201, headers: { location: "/o/1" }, body: "{}" },
    { status: 200, headers: {}, bytes: "AP8=" },
  ),
).map((text) => Buffer.from(`\0${text}`));

const storedAnswer = parser({
  name: "stored-answer",
  reads: "the answers that claims keep",
  inputs: fc.oneof(damagedBytes(fc.constantFrom(data, gzipped, binary)), answerTexts),
  holds: async (bytes) => {
    const { value: read } = await outcomeOf(() => decodeAnswer(bytes), documented);
    if (read === undefined) return;
    checkAnswer(read);
    assert.deepEqual(await decodeAnswer(await encodeAnswer(read)), read);
  },
});

const step = {
  ...{
    pk: "step:k",
    sk: "step",
    tenantId: "acme",
    status: "DONE",
    owner: "o1",
    expiration: nowMs / 1_000 + 300,
    data,
  },
  ...{
    stepName: "charge",
    handler: "shop.order.charge",
    requestId: "r1",
    startedAt: "2026",
    isSealed: false,
    keepMs: 5,
  },
  ...{ claimPk: "p", claimSk: "s" },
};

const stepRow = parser({
  name: "step-row",
  reads: "rows of steps",
  inputs: damagedItem(step, { ...step, status: "STARTED", data: undefined }),
  holds: async (wire) => {
    const item = documentOf(wire);
    if (item === undefined) return;
    const steps = dynamoSteps(databaseOf(wire).database, "once");
    const { value: record } = await outcomeOf(() => steps.read(key), documented);
    if (record === undefined) return;
    for (const ifUnknown of ["refuse", "retry"] as const) {
      const { value: verdict } = await outcomeOf(() => stepVerdict(record, "o2", ifUnknown, nowMs));
      assert.ok(verdict !== undefined);
      // Only a step that was not done, or that has expired, may be called by another run.
      const isOver = typeof item["expiration"] === "number" && item["expiration"] * 1_000 <= nowMs;
      if (verdict === "call" && ifUnknown === "refuse")
        assert.ok(
          isOver || item["status"] === "NOT_DONE" || item["owner"] === "o2",
          "called again",
        );
    }
  },
});

const quotaRow = {
  tenantId: "acme",
  quota: "files.storage",
  period: { id: "2026-11", endsAtMs: nowMs },
};
const counted = {
  ...{ pk: "quota#acme", sk: "files.storage#2026-11", tenantId: "acme", used: 5, expiration: 5 },
  ...{ limit: "files.upload", window: "minute", number: 10, partition: "acme", taken: 3 },
};

const countRow = parser({
  name: "count-row",
  reads: "rows of quotas and of rate limits",
  inputs: damagedItem(counted),
  holds: async (wire) => {
    if (documentOf(wire) === undefined) return;
    const { database } = databaseOf(wire);
    const { value: used = 0 } = await outcomeOf(
      () => dynamoQuotas(database, "once").read(quotaRow),
      documented,
    );
    assert.ok(Number.isFinite(used), `the usage is ${used}`);
    const rates = dynamoRates(database, "once");
    const limit = { id: "files.upload", window: "minute", key: undefined } as const;
    const row = { limit, text: "acme", tenantId: "acme", startMs: nowMs };
    const { value: taken = 0 } = await outcomeOf(() => rates.read(row as never), documented); // safe: it reads only the key
    assert.ok(Number.isFinite(taken), `what was taken is ${taken}`);
  },
});

const slots = {
  ...{
    pk: "slots#shop.order.charge",
    sk: "tenant#acme",
    tenantId: "acme",
    expiration: 5,
  },
  holders: { o1: { pk: "p", sk: "s", since: 5 }, o3: { pk: "p", sk: "t", since: 6 } },
};
const line = {
  pk: "line#g",
  sk: "line",
  first: 1,
  next: 3,
  firstBy: 1,
  turn: 2,
  dueMs: 5,
  version: 1,
};

const slotRow = parser({
  name: "slot-row",
  reads: "rows of slots, and of the lines of ordered groups",
  inputs: damagedItem(slots, line),
  holds: async (wire) => {
    if (documentOf(wire) === undefined) return;
    const { database } = databaseOf(wire);
    const store = dynamoSlots(database, "once");
    const claims = dynamoClaimStore(databaseOf({}).database, "once");
    const parts = { store, claims, clock, random: () => 0, newOwner: () => "o2" };
    const where = { handler: "shop.order.charge", limit: "perTenant", tenantId: "acme" } as const;
    const holder = { owner: "o9", key: { partition: "p", sort: "s" }, sinceMs: nowMs };
    await outcomeOf(() => takeSlot(parts, where, 1, holder), documented);
    const { value: stored } = await outcomeOf(
      () => dynamoLines(database, "once").read("g"),
      documented,
    );
    if (stored !== undefined) await outcomeOf(() => arrival(stored, { position: 1, turn: 1 }));
  },
});

const kept = {
  ...{
    pk: "s",
    sk: "s",
    lastMs: 5,
    begunMs: 6,
    attempts: 1,
    retryMs: 7,
    sentMs: 6,
    sentBy: 1,
    sentTo: "acme",
  },
  ...{
    version: 2,
    revision: "r",
    state: '{"version":2}',
    type: "order.placed",
    tenantId: "acme",
    keptUntil: 9,
  },
};

const stateRow = parser({
  name: "state-row",
  reads: "rows of schedules and projections",
  inputs: damagedItem(kept),
  holds: async (wire) => {
    if (documentOf(wire) === undefined) return;
    const { database } = databaseOf(wire);
    const schedules = dynamoSchedules(database, "once");
    await outcomeOf(() => schedules.read(key), documented);
    const { value: begun } = await outcomeOf(() => schedules.begin(key, 6), documented);
    if (begun !== undefined) assert.equal(typeof begun.attempts, "number");
    const projections = dynamoProjections(database, "kept", clock);
    const { value: active } = await outcomeOf(() => projections.active("p", "acme"), documented);
    if (active !== undefined)
      for (const { version } of Object.values(active))
        assert.ok(Number.isFinite(version), `version ${version}`);
    await outcomeOf(() => projections.rebuild("p", "acme"), documented);
  },
});

export const claimRowParsers = [claimRow, storedAnswer, stepRow, countRow, slotRow, stateRow];
