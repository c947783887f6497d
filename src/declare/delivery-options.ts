import type { ConfigKeyHandle } from "../config/declare/declaration.ts";

/** How the channels that every server has send. */
export interface DeliveryOptions {
  readonly webhook?: WebhookOptions;
}

/** How webhooks are sent. */
export interface WebhookOptions {
  /** The key of the secret that signs them, a text, best `encrypted`: each tenant's own. Default none: nothing is signed. */
  readonly secret?: ConfigKeyHandle<string | undefined>;
  /** Whether `http:` may be used. Default `false`. */
  readonly allowHttp?: boolean;
  /** Whether addresses may be used that are not public: of this machine, of private networks. Default `false`. */
  readonly allowPrivate?: boolean;
  /** How long one attempt may take, in milliseconds. Default 10,000. */
  readonly timeoutMs?: number;
}
