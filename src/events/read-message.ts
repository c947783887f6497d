import { objectOf } from "./cause.ts";
import { type Envelope, openEnvelope } from "./envelope.ts";
import { type JobMessage, openJob } from "./job-message.ts";

/** What came over a queue: an event, or a job. */
export type ReadMessage = Envelope | { readonly job: JobMessage; readonly proof: unknown };

/** Reads a message by its shape. @throws PermanentError for what is neither. */
export function readMessage(text: string): ReadMessage {
  const body = objectOf(text, "the message");
  return "jobId" in body ? { job: openJob(body), proof: body["proof"] } : openEnvelope(body);
}
