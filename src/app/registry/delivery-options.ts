import type { ConfigKeyHandle } from "../../parts/config/declare/key.ts";

/** Options of the built-in channels. */
export interface DeliveryOptions {
  readonly webhook?: WebhookOptions;
}

/** Options of the `webhook` channel. */
export interface WebhookOptions {
  /**
   * Configuration key of each tenant's signing secret, a string, preferably `encrypted`. Default:
   * webhooks are not signed.
   */
  readonly secret?: ConfigKeyHandle<string | undefined>;
  /** Allows `http:` URLs. Default `false`. */
  readonly allowHttp?: boolean;
  /** Allows addresses of this machine and of private networks. Default `false`. */
  readonly allowPrivate?: boolean;
  /** Time limit of one attempt, in milliseconds. Default 10,000. */
  readonly timeoutMs?: number;
}
