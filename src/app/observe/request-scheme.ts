interface SentRequest {
  readonly headers: Readonly<Record<string, string>> | undefined;
  readonly asked: { readonly isEncrypted?: boolean | undefined } | undefined;
}

/** Returns the scheme that the client used, as reported by a proxy or else by the connection. */
export function schemeOf({ headers, asked }: SentRequest): "http" | "https" {
  const forwarded = headers?.["x-forwarded-proto"];
  if (forwarded === "http" || forwarded === "https") return forwarded;
  return asked?.isEncrypted === false ? "http" : "https";
}
