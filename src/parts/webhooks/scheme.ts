import type { ConfigKeyHandle } from "../config/declare/key.ts";

/** A secret, or the handle of a `text` key that holds it. */
export type WebhookSecret = string | ConfigKeyHandle<string> | ConfigKeyHandle<string | undefined>;

/** Options of a preset. */
export interface WebhookSecretOptions {
  /**
   * Secret that the sender signs with. A list is for rotation: all verify, and {@link signedHeaders}
   * uses the first. At most 10.
   */
  readonly secret: WebhookSecret | readonly WebhookSecret[];
}

/** Form of the bytes of an HMAC in a header. */
export type WebhookEncoding = "hex" | "base64";

/** Options of `hmac`. */
export interface HmacOptions extends WebhookSecretOptions {
  /** Header that has the signature, in any case: `X-Shopify-Hmac-Sha256`. */
  readonly header: string;
  /** Text before the signature, such as `sha256=`. Default: none. */
  readonly prefix?: string;
  /** Default `hex`. `base64` also accepts the alphabet of URLs. */
  readonly encoding?: WebhookEncoding;
}

/** Symbol by which two copies of the package recognize each other's schemes. */
export const schemeBrand: unique symbol = Symbol.for("keelson.webhook-scheme") as never;

/** A sender's way to sign, made by a preset of `keelson/webhooks`: frozen plain data. */
export interface WebhookScheme {
  readonly [schemeBrand]: true;
  readonly name: "stripe" | "standardWebhooks" | "github" | "slack" | "hmac";
  readonly secrets: readonly WebhookSecret[];
  /** In lower case. Only of `hmac`. */
  readonly header: string;
  readonly prefix: string;
  readonly encoding: WebhookEncoding;
  /** Why the server does not boot with it. */
  readonly problem: string | undefined;
}

/** A received webhook, before anything is parsed. */
export interface WebhookDelivery {
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  /** The exact bytes of the body. */
  readonly rawBody: Uint8Array;
  /** Parameters of the path, decoded. */
  readonly params: Readonly<Record<string, string>>;
  /** Aborts when the sender disconnects or the deadline passes, if the host can detect this. */
  readonly signal: AbortSignal | undefined;
}

/**
 * Verifies a webhook in its own way. Any result other than `true`, and any error, is a 401
 * `signature_invalid`, except a typed error of 500 or above.
 */
export type WebhookVerifier = (delivery: WebhookDelivery) => boolean | Promise<boolean>;

export function isScheme(verify: unknown): verify is WebhookScheme {
  return Object(verify)[schemeBrand] === true;
}

/** Whether a tenant's own secret verifies, so that the tenant has to be known before the event. */
export function isOfTenant(verify: unknown): boolean {
  return (
    isScheme(verify) &&
    verify.secrets.some((secret) => Object(Object(secret).definition).scope === "tenant")
  );
}
