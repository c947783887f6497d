import { deliveryJob } from "../../events/delivery.ts";
import { inOrder, type TraceLine } from "./trace-line.ts";

/** Where a tree begins: a request, a schedule that fires, or a run of the server. */
export interface Origin {
  readonly key: string;
  readonly requestId: string;
  readonly traceId: string | undefined;
  readonly tenantId: string | undefined;
  /** In the order of time; empty where nothing of it is seen. */
  readonly lines: TraceLine[];
}

/** An event, a job or a delivery, with all that is seen of it. */
export interface Subject {
  readonly id: string;
  /** `undefined` where it is only named as a cause. */
  kind: "event" | "job" | "delivery" | undefined;
  /** The type of an event, the name of a job, the channel of a delivery. */
  name: string | undefined;
  tenantId: string | undefined;
  /** Who has published or enqueued it, in the order of time. */
  readonly producers: Produced[];
  /** What its own lines say of where it comes from. */
  cause: Cause | undefined;
  /** The lines of its runs, by their handler. */
  readonly runs: Map<string, TraceLine[]>;
  /** What queues, bus and outbox say of it. */
  readonly way: TraceLine[];
  /** When it is due, in milliseconds since the epoch. */
  dueMs: number | undefined;
  takenBackMs: number | undefined;
}

/** Who has published or enqueued something, and when. */
export interface Produced {
  readonly by: Producer;
  readonly ms: number;
  readonly tenantId: string | undefined;
}

/** An origin by its key, or a run of a subject. */
export type Producer = { readonly origin: string } | { readonly subject: string; readonly handler: string };

interface Cause {
  readonly causedBy: string;
  readonly origin: Pick<Origin, "requestId" | "traceId" | "tenantId">;
}

/** What lines are about, by ID. */
export interface TraceIndex {
  readonly origins: ReadonlyMap<string, Origin>;
  readonly subjects: ReadonlyMap<string, Subject>;
}

/** Sorts lines by what they are about. The order in which they come does not matter. */
export function indexLines(given: readonly TraceLine[]): TraceIndex {
  const [origins, subjects] = [new Map<string, Origin>(), new Map<string, Subject>()];
  const subjectOf = (id: string): Subject => {
    let subject = subjects.get(id);
    if (subject === undefined) {
      subject = {
        ...{
          id,
          kind: undefined,
          name: undefined,
          tenantId: undefined,
          cause: undefined,
          dueMs: undefined,
          takenBackMs: undefined,
        },
        ...{ producers: [], runs: new Map(), way: [] },
      };
      subjects.set(id, subject);
    }
    return subject;
  };
  const ways: TraceLine[] = [];
  for (const line of inOrder(given)) {
    if (isOfTheWay(line)) {
      ways.push(line);
      continue;
    }
    const by = producerOf(line);
    if (by === undefined) continue;
    if ("origin" in by) originOf(origins, line).lines.push(line);
    else addRun(subjectOf(by.subject), by.handler, line);
    addProduced(subjectOf, by, line);
  }
  for (const line of ways) addToWay(subjectOf, line);
  return { origins, subjects };
}

/** Lines of queues, bus and outbox: no run writes them. */
function isOfTheWay({ msg }: TraceLine): boolean {
  return /^queue\.|^(?:event|job)\.(?:set_aside|set_aside_failed|dispatch_failed)$/.test(msg);
}

/** Whose run has written a line. */
function producerOf(line: TraceLine): Producer | undefined {
  const { requestId, trace_id, tenantId, handler, origRequestId, causedBy, eventId, jobId } = line;
  const subject = eventId ?? jobId;
  if (origRequestId !== undefined && causedBy !== undefined && subject !== undefined && handler !== undefined) {
    return { subject, handler };
  }
  return requestId === undefined ? undefined : { origin: originKey({ requestId, traceId: trace_id, tenantId }) };
}

/** Names an origin: the same request ID is another request in another trace, and for another tenant. */
export function originKey({ requestId, traceId, tenantId }: Pick<Origin, "requestId" | "traceId" | "tenantId">): string {
  return JSON.stringify([requestId, traceId ?? null, tenantId ?? null]);
}

function originOf(origins: Map<string, Origin>, { requestId = "", trace_id: traceId, tenantId }: TraceLine): Origin {
  const key = originKey({ requestId, traceId, tenantId });
  let origin = origins.get(key);
  if (origin === undefined) {
    origin = { key, requestId, traceId, tenantId, lines: [] };
    origins.set(key, origin);
  }
  return origin;
}

function addRun(subject: Subject, handler: string, line: TraceLine): void {
  const { tenantId, causedBy, origRequestId, trace_id: traceId, eventId, event, channel, msg } = line;
  subject.tenantId ??= tenantId;
  // Safe: a line without them is of no run.
  subject.cause ??= { causedBy: causedBy as string, origin: { requestId: origRequestId as string, traceId, tenantId } };
  const isDelivery = handler === deliveryJob;
  subject.kind ??= eventId !== undefined ? "event" : isDelivery ? "delivery" : "job";
  if (msg === "event.completed") subject.name ??= event;
  else if (eventId === undefined) subject.name ??= isDelivery ? channel : handler;
  const lines = subject.runs.get(handler);
  if (lines === undefined) subject.runs.set(handler, [line]);
  else lines.push(line);
}

function addProduced(subjectOf: (id: string) => Subject, by: Producer, line: TraceLine): void {
  const { ms, tenantId, event, publishedId, job, enqueuedId, scheduledId, dueAt = "", channel, deliveryId, unscheduledId } = line;
  const made: Readonly<Record<string, readonly [Subject["kind"], string | undefined, string | undefined] | undefined>> = {
    "event.published": ["event", publishedId, event],
    "job.enqueued": ["job", enqueuedId, job],
    "job.scheduled": ["job", scheduledId, job],
    "delivery.enqueued": ["delivery", deliveryId, channel],
  };
  if (line.msg === "job.unscheduled" && unscheduledId !== undefined) subjectOf(unscheduledId).takenBackMs = ms;
  const [kind, id, name] = (Object.hasOwn(made, line.msg) ? made[line.msg] : undefined) ?? [];
  if (id === undefined) return;
  const subject = subjectOf(id);
  subject.kind = kind;
  subject.name = name ?? subject.name;
  if (line.msg === "job.scheduled" && Number.isFinite(Date.parse(dueAt))) subject.dueMs = Date.parse(dueAt);
  subject.producers.push({ by, ms, tenantId });
}

function addToWay(subjectOf: (id: string) => Subject, line: TraceLine): void {
  const { eventId, jobId, left, event, type, job, causedBy, origRequestId: requestId, trace_id: traceId, tenantId } = line;
  for (const id of left ?? []) {
    const subject = subjectOf(id);
    subject.kind ??= line.msg === "job.dispatch_failed" ? "job" : "event";
    subject.way.push(line);
  }
  const id = eventId ?? jobId;
  if (id === undefined) return;
  const subject = subjectOf(id);
  const isDelivery = job === deliveryJob;
  subject.kind ??= eventId !== undefined ? "event" : isDelivery ? "delivery" : "job";
  subject.name ??= event ?? type ?? (isDelivery ? undefined : job);
  subject.tenantId ??= tenantId;
  if (causedBy !== undefined && requestId !== undefined) subject.cause ??= { causedBy, origin: { requestId, traceId, tenantId } };
  subject.way.push(line);
}
