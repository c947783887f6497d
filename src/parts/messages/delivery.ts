import { PermanentError } from "../../base/errors/errors.ts";
import type { Fields } from "./envelope.ts";

export const deliveryJob = "keelson.delivery.send";

export interface Delivery {
  readonly channel: string;
  readonly message: Fields;
  /**
   * Deduplication key: from the caller, or derived from the run and its earlier deliveries. A
   * repeated run has the same key.
   */
  readonly key: string;
}

export function readDelivery(payload: Fields): Delivery {
  const { channel, message, key } = payload;
  if (typeof channel !== "string" || !isChannelName(channel))
    throw new PermanentError("its channel is not a name");
  if (typeof key !== "string") throw new PermanentError("its key is not a string");
  if (typeof message !== "object" || message === null || Array.isArray(message)) {
    throw new PermanentError("its message is not an object");
  }
  return { channel, key, message: message as Fields }; // safe: checked above
}

export function isChannelName(name: string): boolean {
  return /^[a-z][a-z0-9-]{0,62}$/.test(name);
}
