import type { StandardSchemaV1 } from "@standard-schema/spec";
import { PermanentError } from "../../base/errors/errors.ts";
import { type Lazy, lazy } from "../../base/process/lazy.ts";
import { deliveryJob, readDelivery } from "../../parts/messages/delivery.ts";
import type { Fields } from "../../parts/messages/envelope.ts";
import type { ChannelDeclaration, JobDeclaration } from "../handlers/message-handlers.ts";
import type { PipelineContext } from "../handlers/pipeline-context.ts";
import type { Tracing } from "../observe/tracing.ts";
import type { DeliveryOptions, WebhookOptions } from "../registry/options.ts";
import type { NameLookup } from "./name-lookup.ts";

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

interface Webhook {
  readonly url: string;
  readonly body: Fields;
}

type NameLookups = Pick<Lazy<(tenant: string | undefined) => NameLookup>, "open">;

export function builtInChannels(
  { webhook = {} }: DeliveryOptions = {},
  lookups: NameLookups = lazy(async () => (await import("./name-lookup.ts")).createNameLookups()),
  tracing?: Pick<Lazy<Pick<Tracing, "posting">>, "open">,
): (readonly [string, ChannelDeclaration])[] {
  const log: ChannelDeclaration["send"] = (ctx, message) =>
    ctx.log.info("delivery.message", { message });
  const post: ChannelDeclaration["send"] = (ctx, message, { id }) =>
    sendWebhook(ctx, { id, ...(message as Webhook) }, webhook, lookups, tracing); // safe: validated by `webhookInput`
  const feature = "keelson";
  return [
    ["log", { feature, name: "log", input: undefined, send: log }],
    ["webhook", { feature, name: "webhook", input: webhookInput, send: post }],
  ];
}

const webhookInput: StandardSchemaV1<unknown, Webhook> = {
  "~standard": {
    version: 1,
    vendor: "keelson",
    validate: (value) => {
      const { url, body, ...rest } = value as Fields; // safe: a message is an object
      const issues: StandardSchemaV1.Issue[] = [];
      if (typeof url !== "string" || !URL.canParse(url))
        issues.push({ path: ["url"], message: "it is not a URL" });
      if (typeof body !== "object" || body === null || Array.isArray(body))
        issues.push({ path: ["body"], message: "it is not an object" });
      for (const name of Object.keys(rest))
        issues.push({ path: [name], message: "it is not known; a webhook has url and body" });
      return issues.length > 0 ? { issues } : { value: value as Webhook }; // safe: checked above
    },
  },
};

async function sendWebhook(
  ctx: PipelineContext,
  { id, url, body }: Webhook & { readonly id: string },
  options: WebhookOptions,
  lookups: NameLookups,
  tracing: Parameters<typeof builtInChannels>[2],
): Promise<void> {
  const { secret: key, allowHttp = false, allowPrivate = false, timeoutMs = 10_000 } = options;
  const secret = key === undefined ? undefined : await ctx.config(key);
  if (key !== undefined && !secret)
    throw new PermanentError(`webhook: the tenant has no secret; set ${key.id}`);
  const [{ postWebhook, WebhookError }, lookupFor, spans] = await Promise.all([
    import("./webhook.ts"),
    lookups.open(),
    tracing?.open(),
  ]);
  try {
    const { status } = await postWebhook({
      url,
      id,
      body: JSON.stringify(body),
      secret,
      nowMs: Date.now(),
      // Omits `tracestate`, because data of other systems must not reach third parties.
      headers: { "x-request-id": ctx.requestId, traceparent: ctx.trace.headers().traceparent },
      allowHttp,
      allowPrivate,
      timeoutMs,
      lookup: lookupFor(ctx.user.tenantId),
      ...(spans && { around: (url, send) => spans.posting(url, send) }),
    });
    ctx.log.info("webhook.sent", { status });
  } catch (error) {
    if (error instanceof WebhookError && !error.isRetryable)
      throw new PermanentError(error.message, { cause: error });
    throw error;
  }
}
