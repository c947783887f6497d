import type { KeyObject } from "node:crypto";
import { FrameworkError, PermanentError } from "../../base/errors/errors.ts";
import type { Logger } from "../../base/log/logger.ts";
import type { Clock } from "../../base/process/clock.ts";
import { w3cSpan } from "../../base/request/trace.ts";
import { type KeyRing, proofKey } from "../../base/secrets/key-ring.ts";
import type { RecentRing, Secrets } from "../../base/secrets/secrets.ts";
import { type Envelope, objectOf, openEnvelope, type Proof, type SharedEvent } from "./envelope.ts";
import { type JobMessage, openJob } from "./job-message.ts";
import type { MessageQueue } from "./message-queue.ts";
import {
  isProven,
  type MessageProof,
  type ProvenMessage,
  proofMode,
  proofOf,
  readProof,
} from "./proof.ts";
import { type Waited, waitedOf } from "./waited.ts";

export type MessageGuard = ReturnType<typeof createMessageGuard>;

export interface MessageGuardOptions {
  readonly proof: MessageProof | undefined;
  readonly source: string;
  /** Secrets that have been started, so that it is known whether a key ring exists. */
  readonly secrets: Secrets;
  readonly clock: Clock;
  readonly log: Pick<Logger, "warn">;
}

export function createMessageGuard({
  proof: asked,
  source: own,
  secrets,
  clock,
  log,
}: MessageGuardOptions) {
  const isOff = asked === "off" || (asked === undefined && !secrets.mayHaveRing());
  const keys = createProofKeys(clock);
  const warn = createDoubtLog(clock, log);
  const met = new Set<string>();

  /** `undefined` if signing is off or there is no key ring. */
  const sign = async (message: ProvenMessage): Promise<Proof | undefined> => {
    if (isOff) return undefined;
    const { ring } = await secrets.recent();
    return ring === undefined
      ? undefined
      : proofOf(message, ring.active, keys.signing(ring) as KeyObject); // safe: a ring has its active key
  };

  /** Warns, once per queue, if it is unknown whether the queue holds events or jobs. */
  const meet = ({ name, holds }: MessageQueue): void => {
    if (holds !== undefined || met.has(name)) return;
    met.add(name);
    const fix =
      "set KEELSON_EVENT_QUEUE or KEELSON_JOB_QUEUE to its name; events and jobs need a queue each";
    log.warn("queue.kind_unknown", {
      queue: name,
      message: "events and jobs are both taken from it",
      fix,
    });
  };

  return {
    signEvent: (event: SharedEvent) => sign(provenEvent(event, own)),
    signJob: (job: JobMessage) => sign(provenJob(job, own)),
    meet,
    /**
     * @throws PermanentError for a message in the wrong queue, or without a required proof;
     * FrameworkError `config_unavailable` if the proof's key is unknown and the ring unreadable.
     */
    admit: async (read: ReadMessage, queue: MessageQueue, messageId: string): Promise<void> => {
      meet(queue);
      const isJob = "job" in read;
      if (queue.holds !== undefined && queue.holds !== (isJob ? "jobs" : "events")) {
        throw new PermanentError(
          `${isJob ? "a job" : "an event"} is not taken from the queue of ${queue.holds}`,
        );
      }
      if (isOff) return;
      const recent = await secrets.recent(readProof(read.proof)?.key);
      const mode = proofMode(asked, recent.ring !== undefined);
      if (mode === "off") return;
      const message = isJob
        ? provenJob(read.job, own)
        : provenEvent(read.event, read.source ?? own);
      const doubt = doubtOf(message, read.proof, recent, keys);
      if (doubt === undefined) return;
      if (mode === "sign") return warn(doubt, message, queue, messageId);
      // A retry may succeed: the key may have been added recently.
      if (doubt.isStale)
        throw new FrameworkError(
          "config_unavailable",
          `${doubt.reason}, and it cannot be read at the moment`,
        );
      throw new PermanentError(doubt.reason);
    },
  };
}

type ProofKeys = ReturnType<typeof createProofKeys>;

/**
 * Derives the keys that sign and verify proofs from the ring's keys, each once. Each read of the
 * ring creates new key objects, so keys derived from earlier objects are removed.
 */
function createProofKeys(clock: Clock) {
  const derived = new Map<KeyObject, KeyObject>();
  const signing = ({ keys, active }: KeyRing, name = active): KeyObject | undefined => {
    const ringKey = keys.get(name);
    if (ringKey === undefined) return undefined;
    const known = derived.get(ringKey);
    if (known !== undefined) return known;
    const current = new Set(keys.values());
    for (const key of derived.keys()) if (!current.has(key)) derived.delete(key);
    const key = proofKey(ringKey);
    derived.set(ringKey, key);
    return key;
  };
  return {
    signing,
    /** Recently retired keys still verify. */
    verifying: (ring: KeyRing, name: string): KeyObject | undefined => {
      const left = ring.retired?.get(name);
      return (
        signing(ring, name) ??
        (left !== undefined && clock.now() < left.untilMs ? left.proof : undefined)
      );
    },
  };
}

interface Doubt {
  readonly line: "message.proof_missing" | "message.proof_invalid";
  readonly reason: string;
  /** Whether the key ring is stale, so that the proof's key may have been added since. */
  readonly isStale?: boolean;
}

function doubtOf(
  message: ProvenMessage,
  given: unknown,
  { ring, isStale }: RecentRing,
  keys: ProofKeys,
): Doubt | undefined {
  if (given === undefined) return { line: "message.proof_missing", reason: "it has no proof" };
  const line = "message.proof_invalid";
  const proof = readProof(given);
  if (proof === undefined) return { line, reason: "its proof has another shape" };
  const key = ring === undefined ? undefined : keys.verifying(ring, proof.key);
  if (key === undefined)
    return {
      line,
      reason: `its proof names the key ${proof.key}, which the key ring has not`,
      isStale,
    };
  return isProven(message, proof, key)
    ? undefined
    : { line, reason: "its proof is not of this message" };
}

/** Shortest interval between log lines of one kind, in milliseconds. */
const lineMs = 60_000;

/** Creates the log of messages that `require` would refuse. */
function createDoubtLog(clock: Clock, log: MessageGuardOptions["log"]) {
  const warned = new Map<string, { atMs: number; messages: number }>();
  return (
    { line, reason }: Doubt,
    { kind, name, id }: ProvenMessage,
    queue: MessageQueue,
    messageId: string,
  ): void => {
    const key = `${line} ${kind}`;
    const last = warned.get(key);
    const messages = (last?.messages ?? 0) + 1;
    const nowMs = clock.now();
    // A clock that was set back must not silence the log.
    if (last !== undefined && nowMs >= last.atMs && nowMs < last.atMs + lineMs) {
      last.messages = messages;
      return;
    }
    warned.set(key, { atMs: nowMs, messages: 0 });
    const ids = { [kind]: name, [`${kind}Id`]: id };
    log.warn(line, { queue: queue.name, messageId, ...ids, reason, messages });
  };
}

function provenEvent(event: SharedEvent, source: string): ProvenMessage {
  return { ...event, kind: "event", source, name: event.type, id: event.eventId };
}

/** Uses the server's own source, so a job of another server is refused even with the same ring. */
function provenJob(job: JobMessage, source: string): ProvenMessage {
  return { ...job, kind: "job", source, id: job.jobId };
}

export type ReadMessage = { readonly waited?: Waited } & (
  | Envelope
  | (Pick<Envelope, "proof" | "trace"> & { readonly job: JobMessage })
);

/** @throws PermanentError if a message is neither an event nor a job. */
export function readMessage(text: string): ReadMessage {
  const body = objectOf(text, "the message");
  const waited = waitedOf(body);
  if (!("jobId" in body)) return { ...openEnvelope(body), waited };
  return { job: openJob(body), proof: body["proof"], trace: w3cSpan(body["trace"]), waited };
}
