import type { ConfigKeyHandle } from "../../parts/config/declare/key.ts";

/** Options of the built-in channels. */
export interface DeliveryOptions {
  readonly webhook?: WebhookOptions;
}

/** Options of the channel `webhook`. */
export interface WebhookOptions {
  /** A text key with each tenant's signing secret, ideally `encrypted`. Default: none, webhooks are not signed. */
  readonly secret?: ConfigKeyHandle<string | undefined>;
  /** Whether `http:` URLs are allowed. Default `false`. */
  readonly allowHttp?: boolean;
  /** Whether addresses of this machine and of private networks are allowed. Default `false`. */
  readonly allowPrivate?: boolean;
  /** How long one attempt may take, in milliseconds. Default 10,000. */
  readonly timeoutMs?: number;
}
