import { PermanentError } from "../../base/errors/permanent-error.ts";
import { claimKey } from "../once/claim.ts";
import { fingerprintOf } from "../once/fingerprint.ts";
import { type Cause, causeOf, idOf, objectOf, recordOf } from "./cause.ts";
import type { MessageParts } from "./envelope.ts";
import { queueText } from "./queue-text.ts";
import { wirePayload } from "./wire-payload.ts";

/** A job as it lies in the queue. */
export interface JobMessage<Payload = unknown> extends Cause {
  readonly jobId: string;
  /** The full name: `<feature>.<entity>.<operation>`. */
  readonly name: string;
  readonly payload: Payload;
}

/** SQS takes no larger message, in bytes. */
const maxBytes = 262_144;

/** The job as it goes over the wire. @throws RangeError where it is too large. */
export function jobText(job: JobMessage, { proof, trace }: MessageParts = {}): string {
  const text = queueText(JSON.stringify({ ...job, proof, trace }));
  const bytes = Buffer.byteLength(text);
  if (bytes > maxBytes) {
    throw new RangeError(
      `ctx.enqueue: the job ${job.name} has ${bytes} bytes, and SQS takes ${maxBytes}; enqueue where the data is, not the data`,
    );
  }
  return text;
}

/** The payload as it goes over the wire. @throws TypeError where JSON cannot hold it, or it is no object. */
export function jobPayload(name: string, payload: unknown): Readonly<Record<string, unknown>> {
  return wirePayload(payload, `ctx.enqueue: the payload of ${name}`);
}

/** Reads a job. @throws PermanentError naming what is not as it has to be. */
export function readJob(text: string): JobMessage {
  return openJob(objectOf(text, "the message"));
}

/** The same of a body that was parsed. @throws as {@link readJob}. */
export function openJob(message: Readonly<Record<string, unknown>>): JobMessage {
  const { name } = message;
  if (typeof name !== "string" || !/^[a-z][a-z0-9-]{0,62}(\.[a-z][a-z0-9-]{0,62}){2}$/.test(name)) {
    throw new PermanentError("its name is not <feature>.<entity>.<operation>");
  }
  return {
    jobId: idOf(message, "jobId"),
    name,
    payload: recordOf(message["payload"], "its payload"),
    ...causeOf(message),
  };
}

/** By what a job is one and the same with another: its name, its tenant, and its payload or a key of its own. */
export interface JobIdentity {
  readonly name: string;
  readonly tenantId: string | undefined;
  /** Given where users have jobs of their own. */
  readonly userId?: string | undefined;
}

/**
 * The deduplication ID of a job, and, for another `content`, its message group: a SHA-256 over what it is known by
 * (specification 6.5). Equal jobs of two tenants have nothing in common.
 */
export function jobHash({ name, tenantId, userId }: JobIdentity, content: unknown): string {
  const who = [tenantId, userId].map((part) => (part === undefined ? "-" : `=${part}`));
  return claimKey(["job", name, ...who, fingerprintOf(name, content)], "").partition;
}
