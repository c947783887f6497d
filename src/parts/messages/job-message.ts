import { PermanentError } from "../../base/errors/errors.ts";
import { serviceSizes, tooLarge, waitedBytes } from "../../base/sizes/service-sizes.ts";
import { claimKey } from "../once/claim.ts";
import { fingerprintOf } from "../once/fingerprint.ts";
import {
  type Cause,
  causeOf,
  type Fields,
  idOf,
  type MessageParts,
  objectOf,
  queueText,
  recordOf,
  wirePayload,
} from "./envelope.ts";

/** A job in the form that is sent over the queue. */
export interface JobMessage<Payload = unknown> extends Cause {
  readonly jobId: string;
  /** Full name: `<feature>.<entity>.<operation>`. */
  readonly name: string;
  readonly payload: Payload;
}

export function jobText(job: JobMessage, { proof, trace }: MessageParts = {}): string {
  const text = queueText(JSON.stringify({ ...job, proof, trace }));
  const bytes = Buffer.byteLength(text) + waitedBytes;
  const size = serviceSizes.sqsMessage;
  if (bytes > size.maxBytes)
    throw tooLarge(
      `ctx.enqueue: the job ${job.name}`,
      bytes,
      size,
      "enqueue where the data is, not the data",
    );
  return text;
}

export function jobPayload(name: string, payload: unknown): Fields {
  return wirePayload(payload, `ctx.enqueue: the payload of ${name}`);
}

export function readJob(text: string): JobMessage {
  return openJob(objectOf(text, "the message"));
}

export function openJob(message: Fields): JobMessage {
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

export interface JobIdentity {
  readonly name: string;
  readonly tenantId: string | undefined;
  /** Set if jobs of different users are never duplicates. */
  readonly userId?: string | undefined;
}

/**
 * SHA-256 over identity and content (specification 6.5), for a job's deduplication ID or message
 * group. Equal jobs of two tenants get different hashes.
 */
export function jobHash({ name, tenantId, userId }: JobIdentity, content: unknown): string {
  const who = [tenantId, userId].map((part) => (part === undefined ? "-" : `=${part}`));
  return claimKey(["job", name, ...who, fingerprintOf(name, content)], "").partition;
}
