import type { StandardSchemaV1 } from "@standard-schema/spec";
import { PermanentError } from "../../base/errors/errors.ts";
import { type Lazy, lazy } from "../../base/process/lazy.ts";
import type { Fields } from "../../parts/messages/envelope.ts";
import type { ChannelDeclaration } from "../handlers/message-handlers.ts";
import type { PipelineContext } from "../handlers/pipeline-context.ts";
import type { Tracing } from "../observe/tracing.ts";
import type { WebhookOptions } from "../registry/options.ts";
import type { NameLookup } from "./name-lookup.ts";
import { boundWebhooks } from "./webhook-bounds.ts";

interface Webhook {
  readonly url: string;
  readonly body: Fields;
}

export type PostTracing = Pick<Lazy<Pick<Tracing, "posting">>, "open">;

export type NameLookups = Pick<Lazy<(tenant: string | undefined) => NameLookup>, "open">;

/** Sends webhooks, at most so many at a time to a target and for a tenant. */
export function openWebhooks(
  options: WebhookOptions,
  lookups: NameLookups = lazy(async () => (await import("./name-lookup.ts")).createNameLookups()),
  tracing?: PostTracing,
): { validate: typeof checkWebhook; send: ChannelDeclaration["send"] } {
  const bounds = boundWebhooks();
  return {
    validate: checkWebhook,
    send: (ctx, message, { id }) => {
      const webhook = message as Webhook; // safe: `checkWebhook` has accepted it
      return bounds(ctx.user.tenantId, webhook.url, () =>
        sendWebhook(ctx, { id, ...webhook }, options, lookups, tracing),
      );
    },
  };
}

function checkWebhook(value: unknown): StandardSchemaV1.Result<Webhook> {
  const { url, body, ...rest } = value as Fields; // safe: a message is an object
  const issues: StandardSchemaV1.Issue[] = [];
  if (typeof url !== "string" || !URL.canParse(url))
    issues.push({ path: ["url"], message: "it is not a URL" });
  if (typeof body !== "object" || body === null || Array.isArray(body))
    issues.push({ path: ["body"], message: "it is not an object" });
  for (const name of Object.keys(rest))
    issues.push({ path: [name], message: "it is not known; a webhook has url and body" });
  return issues.length > 0 ? { issues } : { value: value as Webhook }; // safe: checked above
}

async function sendWebhook(
  ctx: PipelineContext,
  { id, url, body }: Webhook & { readonly id: string },
  options: WebhookOptions,
  lookups: NameLookups,
  tracing: PostTracing | undefined,
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
