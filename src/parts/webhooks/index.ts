export { github, hmac, slack, standardWebhooks, stripe } from "./presets.ts";
export type {
  HmacOptions,
  WebhookDelivery,
  WebhookEncoding,
  WebhookScheme,
  WebhookSecret,
  WebhookSecretOptions,
  WebhookVerifier,
} from "./scheme.ts";
export { type SignedHeadersOptions, signedHeaders } from "./signed-headers.ts";
