import { createHmac } from "node:crypto";

const base64Prefix = "whsec_";

export interface SignedMessage {
  readonly id: string;
  readonly timestampSeconds: number;
  readonly body: string;
  readonly secret: string;
}

/**
 * Returns the `webhook-signature` header of Standard Webhooks (https://www.standardwebhooks.com).
 * @throws TypeError for a secret without bytes, with which anyone could sign.
 */
export function signWebhook({ id, timestampSeconds, body, secret }: SignedMessage): string {
  const key = webhookKey(secret);
  if (key.length === 0)
    throw new TypeError(`the secret is empty; give a key, or ${base64Prefix} and its base64`);
  return `v1,${createHmac("sha256", key).update(`${id}.${timestampSeconds}.${body}`).digest("base64")}`;
}

/** The key is Base64 after `whsec_`, otherwise the text itself. */
export function webhookKey(secret: string): Buffer {
  return secret.startsWith(base64Prefix)
    ? Buffer.from(secret.slice(base64Prefix.length), "base64")
    : Buffer.from(secret, "utf8");
}
