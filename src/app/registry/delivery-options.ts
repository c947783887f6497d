import type { ConfigKeyHandle } from "../../parts/config/declare/key.ts";

/** Options of the built-in channels. */
export interface DeliveryOptions {
  readonly webhook?: WebhookOptions;
}

/** Options of the `webhook` channel. */
export interface WebhookOptions {
  /**
   * String key with each tenant's signing secret, preferably `encrypted`. Default: webhooks are not
   * signed.
   */
  readonly secret?: ConfigKeyHandle<string | undefined>;
  /** Allows `http:` URLs. Default `false`. */
  readonly allowHttp?: boolean;
  /** Allows addresses of this machine and of private networks. Default `false`. */
  readonly allowPrivate?: boolean;
  /** Of one attempt, in milliseconds. Default 10,000. */
  readonly timeoutMs?: number;
}
