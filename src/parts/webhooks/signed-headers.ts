import { assertKnownOptions } from "../../base/errors/option-table.ts";
import type { WebhookScheme } from "./scheme.ts";

/** Options of {@link signedHeaders}. */
export interface SignedHeadersOptions {
  /** ID of the delivery, for schemes that sign one. Default: a new random one. */
  readonly id?: string;
  /** Time of the signature, in seconds since the epoch. Default: now. */
  readonly timestampSeconds?: number;
}

/**
 * Returns the headers of a webhook that the sender would send, to test a route or to send one.
 * @throws TypeError for an unknown option, or if the scheme's first secret is not a string.
 * @example
 * const headers = await signedHeaders(stripe({ secret }), body);
 * await app.fetch("/hooks/stripe", { method: "POST", headers, body });
 */
export async function signedHeaders(
  scheme: WebhookScheme,
  body: string | Uint8Array,
  options: SignedHeadersOptions = {},
): Promise<Record<string, string>> {
  assertKnownOptions("signedHeaders", options, ["id", "timestampSeconds"]);
  const [secret] = scheme.secrets;
  if (typeof secret !== "string")
    throw new TypeError(
      "signedHeaders: the first secret is not a string; pass a scheme with its value",
    );
  const { id = `msg_${crypto.randomUUID()}`, timestampSeconds = Math.floor(Date.now() / 1_000) } =
    options;
  const { writeSignature } = await import("./verify.ts");
  const bytes = typeof body === "string" ? new TextEncoder().encode(body) : body;
  return writeSignature(scheme, secret, bytes, { id, timestampSeconds });
}
