import { PermanentError } from "../../base/errors/errors.ts";
import { checkPayload } from "../../parts/messages/check-payload.ts";
import { deliveryJob, readDelivery } from "../../parts/messages/delivery.ts";
import type { ChannelDeclaration, JobDeclaration } from "../handlers/message-handlers.ts";

export function createDeliveryJob(
  channels: ReadonlyMap<string, ChannelDeclaration>,
): JobDeclaration {
  return {
    feature: "keelson",
    name: deliveryJob,
    input: { "~standard": { version: 1, vendor: "keelson", validate: (value) => ({ value }) } },
    dedupScope: "tenant",
    dedupKey: (payload) => {
      const { channel, key } = readDelivery(payload as Readonly<Record<string, unknown>>); // safe: `ctx.delivery` created the payload
      return `${channel}:${key}`;
    },
    run: async (ctx, payload, { jobId }) => {
      const { channel, message } = readDelivery(payload as Readonly<Record<string, unknown>>); // safe: a job's payload is an object
      const declaration = channels.get(channel);
      // Not a `PermanentError`, because another version of the application may have the channel.
      if (declaration === undefined) throw new Error(`there is no channel ${channel}`);
      const refuse = (problems: string) =>
        new PermanentError(`the message does not fit the channel (${problems})`);
      await declaration.send(ctx, await checkPayload(declaration.input, message, refuse), {
        id: jobId,
      });
      ctx.log.info("delivery.sent", { channel });
    },
  };
}
