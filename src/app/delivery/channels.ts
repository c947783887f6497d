import { PermanentError } from "../../base/errors/errors.ts";
import { lazy } from "../../base/process/lazy.ts";
import { deliveryJob, readDelivery } from "../../parts/messages/delivery.ts";
import type { Fields } from "../../parts/messages/envelope.ts";
import type { ChannelDeclaration, JobDeclaration } from "../handlers/message-handlers.ts";
import type { DeliveryOptions } from "../registry/options.ts";
import type { NameLookups, PostTracing } from "./webhook-channel.ts";

export function createDeliveryJob(
  channels: ReadonlyMap<string, ChannelDeclaration>,
): JobDeclaration {
  return {
    feature: "keelson",
    name: deliveryJob,
    input: { "~standard": { version: 1, vendor: "keelson", validate: (value) => ({ value }) } },
    dedupScope: "tenant",
    dedupKey: (payload) => {
      const { channel, key } = readDelivery(payload as Fields); // safe: `ctx.delivery` created the payload
      return `${channel}:${key}`;
    },
    run: async (ctx, payload, { jobId }) => {
      const { channel, message } = readDelivery(payload as Fields); // safe: a job's payload is an object
      const declaration = channels.get(channel);
      // Not a `PermanentError`, because another version of the application may have the channel.
      if (declaration === undefined) throw new Error(`there is no channel ${channel}`);
      const { checkPayload } = await import("../../parts/messages/envelope.ts");
      const refuse = (problems: string) =>
        new PermanentError(`the message does not fit the channel (${problems})`);
      await declaration.send(ctx, await checkPayload(declaration.input, message, refuse), {
        id: jobId,
      });
      ctx.log.info("delivery.sent", { channel });
    },
  };
}

export function builtInChannels(
  { webhook = {} }: DeliveryOptions = {},
  lookups?: NameLookups,
  tracing?: PostTracing,
): (readonly [string, ChannelDeclaration])[] {
  const log: ChannelDeclaration["send"] = (ctx, message) =>
    ctx.log.info("delivery.message", { message });
  // Not loaded at the start: most servers do not send webhooks.
  const { open } = lazy(async () =>
    (await import("./webhook-channel.ts")).openWebhooks(webhook, lookups, tracing),
  );
  const send: ChannelDeclaration["send"] = async (...given) => (await open()).send(...given);
  const validate = async (value: unknown) => (await open()).validate(value);
  const [feature, version] = ["keelson", 1] as const;
  return [
    ["log", { feature, name: "log", input: undefined, send: log }],
    [
      "webhook",
      {
        feature,
        name: "webhook",
        input: { "~standard": { version, vendor: feature, validate } },
        send,
      },
    ],
  ];
}
