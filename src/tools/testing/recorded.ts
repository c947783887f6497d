import type { ChannelDeclaration } from "../../app/handlers/message-handlers.ts";
import type { Adapters, Messaging } from "../../app/runtime/adapters.ts";
import type { Runtime } from "../../app/runtime/runtime.ts";
import type { Clock } from "../../base/process/clock.ts";
import { lazy } from "../../base/process/lazy.ts";
import { deliveryJob } from "../../parts/messages/delivery.ts";
import { readEnvelope, type SharedEvent } from "../../parts/messages/envelope.ts";
import { type JobMessage, readJob } from "../../parts/messages/job-message.ts";

/** Message sent by a channel. */
export interface SentDelivery {
  /** ID of the delivery. A delivery sent more than once is listed once. */
  readonly id: string;
  readonly channel: string;
  readonly message: unknown;
  readonly tenantId: string | undefined;
  readonly userId: string | undefined;
  readonly origRequestId: string;
}

/** Messages sent so far, each listed once. */
export interface Recorded {
  readonly events: SharedEvent[];
  readonly jobs: JobMessage[];
  readonly deliveries: SentDelivery[];
}

export function recordMessaging(
  given: Adapters["messaging"],
  recorded: Recorded,
  clock: Clock,
  watch: (client: Messaging["clients"][number]) => void,
): Adapters["messaging"] {
  const messageIds = new Set<string>();
  return lazy(async (): Promise<Messaging> => {
    const messaging = await given.open();
    for (const client of messaging.clients) {
      watch(client);
      sendClock(client, clock);
    }
    const put: Messaging["bus"]["put"] = async (events) => {
      const reasons = await messaging.bus.put(events);
      for (const [index, { text }] of events.entries()) {
        const event = readEnvelope(text);
        const { eventId, origRequestId: requestId } = event;
        const isNew = !recorded.events.some((other) => other.eventId === eventId);
        if (reasons[index] !== undefined || !isNew) continue;
        // Safe cast: a payload is an object. The sent payload includes the request ID.
        const payload = { ...(event.payload as object), requestId };
        recorded.events.push({ ...event, payload });
      }
      return reasons;
    };
    const send: Messaging["jobs"]["send"] = async (body, options) => {
      const messageId = await messaging.jobs.send(body, options);
      const job = readJob(body);
      // For a job dropped as a duplicate, the queue returns the earlier job's message ID.
      const isNew =
        !messageIds.has(messageId) && !recorded.jobs.some(({ jobId }) => jobId === job.jobId);
      messageIds.add(messageId);
      if (isNew && job.name !== deliveryJob) recorded.jobs.push(job);
      return messageId;
    };
    const { bus, jobs } = messaging;
    return { ...messaging, bus: { ...bus, put }, jobs: { ...jobs, send } };
  });
}

/** Sends the test clock's offset, which the embedded stack follows. */
function sendClock({ middlewareStack }: Messaging["clients"][number], clock: Clock): void {
  middlewareStack.add(
    (next) => (parameters) => {
      // Safe cast: at this step of the stack, every request is an HTTP request.
      const request = parameters.request as { readonly headers: Record<string, string> };
      request.headers["x-keelson-clock-offset"] = String(Math.max(0, clock.now() - Date.now()));
      return next(parameters);
    },
    { step: "build", name: "keelsonTestClock" },
  );
}

export function recordDeliveries({ channels }: Runtime, { deliveries }: Recorded): void {
  // Safe cast to a mutable map: it belongs to this runtime, and only a test changes it.
  const own = channels as Map<string, ChannelDeclaration>;
  for (const [name, declaration] of channels) {
    own.set(name, {
      ...declaration,
      send: async (ctx, message, delivery) => {
        await declaration.send(ctx, message, delivery);
        if (deliveries.some(({ id }) => id === delivery.id)) return;
        const { tenantId, id: userId } = ctx.user;
        const facts = { tenantId, userId, origRequestId: ctx.requestId };
        deliveries.push({ id: delivery.id, channel: name, message, ...facts });
      },
    });
  }
}
