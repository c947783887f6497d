import { deliveryJob } from "../../../parts/messages/delivery.ts";
import { inOrder, type TraceLine } from "./log-records.ts";

/** Origin of a tree: a request, a scheduled run, or a run of the server. */
export interface Origin {
  readonly key: string;
  readonly requestId: string;
  readonly traceId: string | undefined;
  readonly tenantId: string | undefined;
  /** In chronological order; empty if the logs have no line of the origin. */
  readonly lines: TraceLine[];
}

export interface Subject {
  readonly id: string;
  /** `undefined` if lines name the subject only as a cause. */
  kind?: "event" | "job" | "delivery" | undefined;
  /** Type of an event, name of a job, or channel of a delivery. */
  name?: string | undefined;
  tenantId?: string | undefined;
  readonly producers: { by: Producer; ms: number; tenantId: string | undefined }[];
  cause?: { readonly causedBy: string; readonly origin: OriginId } | undefined;
  readonly runs: Map<string, TraceLine[]>;
  /** Lines of queues, bus and outbox about the subject. */
  readonly way: TraceLine[];
  dueMs?: number | undefined;
  takenBackMs?: number;
}

export type Producer =
  | { readonly origin: string }
  | { readonly subject: string; readonly handler: string };

export type OriginId = Pick<Origin, "requestId" | "traceId" | "tenantId">;

export type TraceIndex = ReturnType<typeof indexLines>;

export function indexLines(given: readonly TraceLine[]) {
  const [origins, subjects] = [new Map<string, Origin>(), new Map<string, Subject>()];
  const named = (id: string) => subjectOf(subjects, id);
  const { ways = [], others = [] } = Object.groupBy(inOrder(given), ({ msg }) =>
    ofTheWay.test(msg) ? "ways" : "others",
  );
  for (const line of others) {
    const by = producerOf(line);
    if (by === undefined) continue;
    if ("origin" in by) originOf(origins, by.origin, line).lines.push(line);
    else addRun(named(by.subject), by.handler, line);
    addProduced(named, by, line);
  }
  for (const line of ways) addToWay(named, line);
  return { origins, subjects };
}

export function subjectOf(subjects: Map<string, Subject>, id: string): Subject {
  const known = subjects.get(id);
  if (known !== undefined) return known;
  const subject: Subject = { id, producers: [], runs: new Map(), way: [] };
  subjects.set(id, subject);
  return subject;
}

export function append<Item>(lists: Map<string, Item[]>, key: string, item: Item): void {
  const list = lists.get(key);
  if (list === undefined) lists.set(key, [item]);
  else list.push(item);
}

/** Names of the lines in `way`, which no run writes. */
const ofTheWay = /^queue\.|^(?:event|job)\.(?:set_aside|set_aside_failed|dispatch_failed|merged)$/;

function producerOf(line: TraceLine): Producer | undefined {
  const { requestId, trace_id: traceId, tenantId, handler, origRequestId, causedBy } = line;
  const subject = line.eventId ?? line.jobId;
  const isRun = origRequestId !== undefined && causedBy !== undefined;
  if (isRun && subject !== undefined && handler !== undefined) return { subject, handler };
  return requestId === undefined
    ? undefined
    : { origin: originKey({ requestId, traceId, tenantId }) };
}

/** The same request ID in another trace or for another tenant is a different request. */
export function originKey({ requestId, traceId, tenantId }: OriginId): string {
  return JSON.stringify([requestId, traceId ?? null, tenantId ?? null]);
}

function originOf(
  origins: Map<string, Origin>,
  key: string,
  { requestId, trace_id: traceId, tenantId }: TraceLine,
): Origin {
  let origin = origins.get(key);
  if (origin === undefined) {
    // Safe cast: the key contains the request ID.
    origin = { key, requestId: requestId as string, traceId, tenantId, lines: [] };
    origins.set(key, origin);
  }
  return origin;
}

function addRun(subject: Subject, handler: string, line: TraceLine) {
  const { eventId, event, channel, msg } = line;
  const isDelivery = handler === deliveryJob;
  addFacts(subject, line, isDelivery);
  if (msg === "event.completed") subject.name ??= event;
  else if (eventId === undefined) subject.name ??= isDelivery ? channel : handler;
  append(subject.runs, handler, line);
}

function addFacts(
  subject: Subject,
  { eventId, tenantId, causedBy, origRequestId: requestId, trace_id: traceId }: TraceLine,
  isDelivery: boolean,
) {
  subject.kind ??= eventId !== undefined ? "event" : isDelivery ? "delivery" : "job";
  subject.tenantId ??= tenantId;
  if (causedBy !== undefined && requestId !== undefined)
    subject.cause ??= { causedBy, origin: { requestId, traceId, tenantId } };
}

const productions = new Map(
  Object.entries({
    "event.published": { kind: "event", id: "publishedId", name: "event" },
    "job.enqueued": { kind: "job", id: "enqueuedId", name: "job" },
    "job.scheduled": { kind: "job", id: "scheduledId", name: "job" },
    "delivery.enqueued": { kind: "delivery", id: "deliveryId", name: "channel" },
  } as const),
);

function addProduced(subjectOf: (id: string) => Subject, by: Producer, line: TraceLine) {
  const { msg, ms, tenantId, dueAt = "", canceledId } = line;
  if (msg === "job.canceled" && canceledId !== undefined) {
    const subject = subjectOf(canceledId);
    subject.kind ??= "job";
    subject.takenBackMs = ms;
  }
  const production = productions.get(msg);
  const id = production && line[production.id];
  if (production === undefined || id === undefined) return;
  const subject = subjectOf(id);
  subject.kind = production.kind;
  subject.name = line[production.name] ?? subject.name;
  const dueMs = Date.parse(dueAt);
  if (msg === "job.scheduled" && Number.isFinite(dueMs)) subject.dueMs = dueMs;
  subject.producers.push({ by, ms, tenantId });
}

function addToWay(subjectOf: (id: string) => Subject, line: TraceLine) {
  const { eventId, jobId, mergedId, left = [], event, type, job, msg } = line;
  for (const id of left) {
    const subject = subjectOf(id);
    subject.kind ??= msg === "job.dispatch_failed" ? "job" : "event";
    subject.way.push(line);
  }
  const id = mergedId ?? eventId ?? jobId;
  if (id === undefined) return;
  const subject = subjectOf(id);
  const isDelivery = job === deliveryJob;
  addFacts(subject, line, isDelivery);
  subject.name ??= event ?? type ?? (isDelivery ? undefined : job);
  subject.way.push(line);
}
