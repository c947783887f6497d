/** What tells how a request was sent. */
interface SentRequest {
  readonly headers: Readonly<Record<string, string>> | undefined;
  readonly asked: { readonly isEncrypted?: boolean | undefined } | undefined;
}

/** The scheme that the client used, as far as a proxy says it, else that of the connection. */
export function schemeOf({ headers, asked }: SentRequest): "http" | "https" {
  const forwarded = headers?.["x-forwarded-proto"];
  if (forwarded === "http" || forwarded === "https") return forwarded;
  return asked?.isEncrypted === false ? "http" : "https";
}
