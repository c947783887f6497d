import assert from "node:assert/strict";
import { createSecretKey } from "node:crypto";
import { inspect, isDeepStrictEqual } from "node:util";
import fc from "fast-check";
import { PermanentError } from "../../../src/base/errors/errors.ts";
import { isIdentifier } from "../../../src/base/identity/access.ts";
import { readDelivery } from "../../../src/parts/messages/delivery.ts";
import { envelopeText, type SharedEvent } from "../../../src/parts/messages/envelope.ts";
import { jobText } from "../../../src/parts/messages/job-message.ts";
import { type ReadMessage, readMessage } from "../../../src/parts/messages/message-guard.ts";
import {
  isProven,
  type ProvenMessage,
  proofOf,
  readProof,
} from "../../../src/parts/messages/proof.ts";
import { readReceived } from "../../../src/parts/messages/received-event.ts";
import {
  neverWaited,
  untriedText,
  type Waited,
  waitingText,
} from "../../../src/parts/messages/waited.ts";
import { isMisread } from "../../support/misread-json.ts";
import { damagedJson, damagedValue } from "../mutations.ts";
import { outcomeOf, parser } from "../parser.ts";

const key = createSecretKey(Buffer.alloc(32, 1));
const cause = { causedBy: "r1", origRequestId: "r0", tenantId: "acme", userId: "ann" };
const trace = { traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01" };
const event = {
  ...{
    kind: "shared" as const,
    type: "order.placed",
    eventId: "e1",
    payload: { total: 1.5, lines: [{ of: "ü" }] },
  },
  ...cause,
};
const job = { jobId: "j1", name: "shop.order.charge", payload: { id: "o1" }, ...cause };
const provenEvent: ProvenMessage = {
  ...event,
  kind: "event",
  source: "shop",
  name: event.type,
  id: event.eventId,
};
const provenJob: ProvenMessage = { ...job, kind: "job", source: "shop", id: job.jobId };
const eventMessage = envelopeText(event, { proof: proofOf(provenEvent, "k1", key), trace });
const jobMessage = jobText(job, { proof: proofOf(provenJob, "k1", key), trace });
const wrapped = {
  version: "0",
  id: "b1",
  "detail-type": "order.placed",
  source: "shop",
  detail: JSON.parse(eventMessage),
};
const asText = { ...event, payload: undefined, payloadText: '{"total":1.5}' };
const messages = [JSON.parse(eventMessage), JSON.parse(jobMessage), wrapped, asText].map((one) =>
  JSON.parse(JSON.stringify(one)),
);
const waiting = {
  ...messages[1],
  waited: { times: 1, attempts: 2, sinceMs: 5, position: 1, turn: 1, failed: ["shop.note"] },
};
const texts = damagedJson(fc.constantFrom(...messages, waiting));

const documented = { errors: [PermanentError] };

function isPlainId(id: unknown): boolean {
  return typeof id === "string" && /^[A-Za-z0-9._:=+/@-]{1,128}$/.test(id);
}

function checkCause({
  causedBy,
  origRequestId,
  tenantId,
  userId,
}: ReturnType<typeof contentOf>): void {
  assert.ok(isPlainId(causedBy) && isPlainId(origRequestId));
  assert.ok(tenantId === undefined || isIdentifier(tenantId));
  assert.ok(userId === undefined || (isIdentifier(userId) && tenantId !== undefined));
}

function contentOf(read: ReadMessage) {
  return "job" in read ? read.job : read.event;
}

function nameOf(read: ReadMessage): ProvenMessage {
  return "job" in read
    ? { ...read.job, kind: "job", source: "shop", id: read.job.jobId }
    : {
        ...read.event,
        kind: "event",
        source: read.source ?? "shop",
        name: read.event.type,
        id: read.event.eventId,
      };
}

const message = parser({
  name: "message",
  reads: "events and jobs of a queue, with or without the wrapper of EventBridge",
  inputs: texts,
  holds: async (text) => {
    const { value: read } = await outcomeOf(() => readMessage(text), documented);
    if (read === undefined) return;
    checkCause(contentOf(read));
    if (isMisread(read)) return;
    // An accepted message is the same after it is sent again.
    const again = readMessage(
      "job" in read
        ? jobText(read.job)
        : envelopeText(read.event as SharedEvent<Record<string, unknown>>), // safe: read as an object
    );
    assert.equal(JSON.stringify(contentOf(again)), JSON.stringify(contentOf(read)));
  },
});

const messageProof = parser({
  name: "message-proof",
  reads: "the proof of a message, whose sender only needs access to a queue or the bus",
  inputs: texts,
  holds: async (text) => {
    const { value: read } = await outcomeOf(() => readMessage(text), documented);
    if (read === undefined) return;
    const proof = readProof(read.proof);
    if (proof === undefined || !isProven(nameOf(read), proof, key)) return;
    // Only the signed messages are proven. Their proofs do not cover the trace and the waiting.
    const { kind, ...proven } = nameOf(read);
    const { kind: _kind, ...signed } = kind === "job" ? provenJob : provenEvent;
    const of = ({
      source,
      name,
      id,
      payload,
      causedBy,
      origRequestId,
      tenantId,
      userId,
      originator,
    }: typeof proven) => ({
      source,
      name,
      id,
      payload,
      causedBy,
      origRequestId,
      tenantId,
      userId,
      originator,
    });
    assert.ok(
      isDeepStrictEqual(of(proven), of(signed)),
      `a proven message that was never signed: ${text}`,
    );
  },
});

const others = {
  ...{
    version: "0",
    id: "6f1e",
    "detail-type": "Object Created",
    source: "aws.s3",
    account: "123456789012",
  },
  ...{
    time: "2026-11-28T00:00:00Z",
    region: "eu-west-1",
    resources: ["arn:aws:s3:::b"],
    detail: { bucket: { name: "b" } },
  },
};
const finished = { failed: ["shop.note:a.b"], reason: 'no "room"', done: ["shop.stored.scan"] };
const waitingOthers = { waited: { times: 3, attempts: 2, ...finished }, ...others };

const foreignEvent = parser({
  name: "foreign-event",
  reads: "events of other senders, in their queue",
  inputs: damagedJson(fc.constantFrom(others, waitingOthers)),
  holds: async (text) => {
    const { value: read } = await outcomeOf(() => readReceived(text), documented);
    if (read === undefined) return;
    const { id, source, detailType, time, account, region, resources } = read.event;
    assert.ok(isPlainId(id));
    for (const one of [source, detailType, time, account, region])
      assert.ok(typeof one === "string" && one.length <= 512);
    assert.ok(resources.length <= 1_000);
    assert.deepEqual(readReceived(JSON.stringify(JSON.parse(text))), read);
  },
});

function assertBounded({ failed = [], done = [], reason = "" }: Waited = neverWaited): void {
  for (const names of [failed, done])
    assert.ok(names.join("").length <= 1_000 && names.every((name) => /^[\w.:-]+$/.test(name)));
  assert.ok(reason.length <= 200);
}

const waited = parser({
  name: "waiting-message",
  reads: "how a message has waited, which keelson writes into it before it is sent again",
  inputs: fc.oneof(texts, damagedJson(fc.constantFrom(others, waitingOthers))),
  holds: async (text) => {
    const read = [readMessage, readReceived] as const;
    for (const parse of read) {
      const { value: before } = await outcomeOf<{ readonly waited?: Waited }>(
        () => parse(text),
        documented,
      );
      if (before === undefined || isMisread(before)) continue;
      assertBounded(before.waited);
      const counts = { times: 7, attempts: 9, sinceMs: 1, ...finished };
      const sent = waitingText(text, counts);
      const { waited: counted, ...after } = parse(sent) as typeof before;
      assert.deepEqual(counted, counts, `the counts are lost: ${sent}`);
      const { waited: _waited, ...content } = before;
      assert.equal(inspect(after, { depth: 50 }), inspect(content, { depth: 50 }));
      const { waited: untried } = parse(untriedText(sent)) as typeof before;
      const { failed: _failed, reason: _reason, ...kept } = counts;
      assert.deepEqual(untried, { ...kept, attempts: 0 });
      // A message that waits again and again does not grow.
      assert.ok(waitingText(sent, counts).length <= sent.length);
    }
  },
});

const delivery = parser({
  name: "delivery",
  reads: "the payload of a job that delivers over a channel",
  inputs: damagedValue(
    fc.constant({ channel: "webhook", key: "k", message: { url: "https://a.example" } }),
  ),
  holds: async (payload) => {
    if (typeof payload !== "object" || payload === null) return; // a job has an object
    const read = () => readDelivery(payload as Record<string, unknown>); // safe: an object
    const { value } = await outcomeOf(read, documented);
    if (value !== undefined) assert.match(value.channel, /^[a-z][a-z0-9-]{0,62}$/);
  },
});

export const messageParsers = [message, messageProof, foreignEvent, waited, delivery];
