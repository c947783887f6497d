import type { DeadLetter } from "../../../aws/messaging/dead-letters.ts";
import { readMessage } from "../../../parts/messages/message-guard.ts";
import type { MessageQueue } from "../../../parts/messages/message-queue.ts";
import { readReceived, receivedName } from "../../../parts/messages/received-event.ts";

/** Reads the facts that a message has. It may be malformed, or not a message of keelson. */
export function factsOf(
  { id, body, sentMs }: DeadLetter,
  holds: MessageQueue["holds"],
  nowMs: number,
) {
  const { of, tenantId, type } = readOrNot(body, holds);
  return { id, of, tenantId, type, ageSeconds: Math.round((nowMs - sentMs) / 1_000) };
}

interface Facts {
  readonly of?: string;
  readonly tenantId?: string | undefined;
  readonly type?: string;
}

function readOrNot(body: string, holds: MessageQueue["holds"]): Facts {
  try {
    return holds === "others" ? receivedFacts(body) : ownFacts(body);
  } catch {
    return {};
  }
}

/** Describes a letter by its queue, because an own message in a queue of received events is forged. */
function receivedFacts(body: string): Facts {
  const { event } = readReceived(body);
  return { of: event.id, type: receivedName(event) };
}

function ownFacts(body: string): Facts {
  const read = readMessage(body);
  if ("job" in read) {
    const { name, jobId, tenantId } = read.job;
    return { of: jobId, tenantId, type: name };
  }
  const { type, eventId, tenantId } = read.event;
  return { of: eventId, tenantId, type };
}
