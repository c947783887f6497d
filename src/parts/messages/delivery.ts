import { PermanentError } from "../../base/errors/permanent-error.ts";

/** The job that sends deliveries. */
export const deliveryJob = "keelson.delivery.send";

/** A delivery as the job that sends it carries it. */
export interface Delivery {
  /** The name of the channel. */
  readonly channel: string;
  readonly message: Readonly<Record<string, unknown>>;
  /** What makes it one and the same with a repeat of it: the caller's, or the cause and how many came before. */
  readonly key: string;
}

/** Reads the payload of a delivery's job. @throws PermanentError naming what is not as it has to be. */
export function readDelivery(payload: Readonly<Record<string, unknown>>): Delivery {
  const { channel, message, key } = payload;
  if (typeof channel !== "string" || !isChannelName(channel))
    throw new PermanentError("its channel is not a name");
  if (typeof key !== "string") throw new PermanentError("its key is not a text");
  if (typeof message !== "object" || message === null || Array.isArray(message)) {
    throw new PermanentError("its message is not an object");
  }
  return { channel, key, message: message as Delivery["message"] }; // safe: as it was looked at
}

/** Whether a text can name a channel. */
export function isChannelName(name: string): boolean {
  return /^[a-z][a-z0-9-]{0,62}$/.test(name);
}
