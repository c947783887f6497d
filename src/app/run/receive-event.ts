import { isTypedError, PermanentError } from "../../base/errors/errors.ts";
import { quoted } from "../../base/errors/quoted.ts";
import { checkPayload } from "../../parts/messages/envelope.ts";
import type { MessageQueue, QueueMessage } from "../../parts/messages/message-queue.ts";
import {
  type ReadReceived,
  type ReceivedEvent,
  readReceived,
  receivedName,
} from "../../parts/messages/received-event.ts";
import type { Waited } from "../../parts/messages/waited.ts";
import type { ReceiverDeclaration } from "../handlers/receiver.ts";
import type { Adapters } from "../runtime/adapters.ts";
import type { Runtime } from "../runtime/runtime.ts";
import type { TaskOutcome } from "../schedules/schedules.ts";
import { assertActive } from "./active-tenant.ts";
import { eventId, eventTenant } from "./event-facts.ts";
import { consumeBy, type EventOutcome } from "./event-outcome.ts";
import { endMessage, type Processed } from "./message-end.ts";
import { consumeOnce, type Task } from "./task.ts";

type ReceiveOptions = Pick<Task, "deadlineMs" | "attempt" | "sinceMs" | "redeliveryMs">;

/**
 * Processes a message of the queue of events of others. It never reads an envelope of keelson, so a
 * forged one reaches no consumer. Never throws.
 */
export async function receiveMessage(
  runtime: Runtime,
  adapters: Adapters,
  queue: MessageQueue,
  message: QueueMessage,
  { deadlineMs }: Pick<ReceiveOptions, "deadlineMs">,
): Promise<Processed> {
  let [read, receives]: [ReadReceived | undefined, number] = [undefined, message.receives];
  let outcome: EventOutcome;
  try {
    read = readReceived(message.body);
    const { event, waited } = read;
    receives += waited.attempts;
    const { sinceMs = message.sentMs } = waited;
    const redeliveryMs = await queue.redeliveryMs.open();
    const options = { deadlineMs, attempt: receives, sinceMs, redeliveryMs };
    outcome = await receiveEvent(runtime, adapters, event, options, waited);
  } catch (error) {
    outcome = { kind: "failed", error };
  }
  const ids = read === undefined ? {} : { event: receivedName(read.event), ...idsOf(read.event) };
  const ending = { queue, message, read: read && { waited: read.waited } };
  return endMessage(runtime, adapters, ending, outcome, { kind: "event", receives, ids });
}

/**
 * Runs every receiver of an event, each once.
 *
 * @param waited - how the event has waited for a limit, if it has.
 * @returns the worst outcome of all.
 * @throws Error if no feature of this server receives the event.
 */
export async function receiveEvent(
  runtime: Runtime,
  adapters: Adapters,
  event: ReceivedEvent,
  options: ReceiveOptions = {},
  waited?: Waited,
): Promise<EventOutcome> {
  const receivers = [...runtime.server.registry.receivers.values()].filter(
    ({ source, detailType }) => source === event.source && detailType === event.detailType,
  );
  // Not permanent: during a rolling deployment the next process may receive it.
  if (receivers.length === 0) {
    const { source, detailType } = event;
    const what = `${quoted(detailType)} of ${quoted(source)}`;
    throw new Error(`the event ${what} is received by no feature of this server`);
  }
  return consumeBy(receivers, waited, (receiver) => {
    // A copy for each, so that none gets what another has changed.
    const own = receivers.length > 1 ? structuredClone(event) : event;
    return receiveBy(runtime, adapters, receiver, own, options);
  });
}

/** Never throws, so that other receivers go on. */
async function receiveBy(
  runtime: Runtime,
  adapters: Adapters,
  receiver: ReceiverDeclaration,
  given: ReceivedEvent,
  options: ReceiveOptions,
): Promise<TaskOutcome> {
  const { name, input, tenant, run } = receiver;
  try {
    const refuse = (problems: string) =>
      new PermanentError(`the detail for ${name} does not fit its schema (${problems})`);
    const detail = await checkPayload(input, given.detail, refuse);
    const event = Object.freeze({ ...given, detail });
    const id = receiver.id === undefined ? event.id : eventId(name, receiver.id(event), permanent);
    const tenantId = eventTenant(name, await tenant?.(event), permanent);
    if (tenant !== undefined && tenantId === undefined) {
      runtime.log.debug("event.without_tenant", { handler: name, ...idsOf(event) });
      return { kind: "skipped" };
    }
    await assertServed(runtime, name, tenantId);
    return await consumeOnce(runtime, adapters, {
      claimed: [["event", name, tenantId === undefined ? "-" : `=${tenantId}`], id, tenantId],
      // The application chooses the ID, so a later event may have the same one.
      hasReusableKey: receiver.id !== undefined,
      handler: name,
      cause: { causedBy: event.id, origRequestId: event.id, tenantId },
      // Any sender may put events, so they never run as the system.
      isSystem: false,
      id: event.id,
      logFields: idsOf(event),
      logPrefix: "event",
      kind: "event",
      event: receivedName(event),
      ...options,
      run: (ctx) => run(ctx, event),
    });
  } catch (error) {
    return { kind: "failed", error };
  }
}

const permanent = (message: string) => new PermanentError(message);

/**
 * @throws PermanentError for a suspended tenant: the dead-letter queue keeps the event, which can be
 * moved back after the suspension. PipelineError 503 if the registry cannot be read.
 */
async function assertServed(
  runtime: Pick<Runtime, "suspensions">,
  name: string,
  tenantId: string | undefined,
): Promise<void> {
  try {
    await assertActive({ runtime, user: { tenantId } });
  } catch (error) {
    if (!isTypedError(error) || error.code !== "tenant_suspended") throw error;
    const message = `${name}: the tenant ${quoted(tenantId)} is suspended`;
    throw new PermanentError(message, { cause: error });
  }
}

/** The event starts its chain: the ID of the first request is its own. */
function idsOf({ id }: ReceivedEvent): Readonly<Record<string, string>> {
  return { origRequestId: id, eventId: id, causedBy: id };
}
