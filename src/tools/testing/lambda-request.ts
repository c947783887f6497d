/** Request from which {@link lambdaEvent} creates an event. */
export interface LambdaRequest {
  /** Default `GET`, or `POST` if there is a body. */
  readonly method?: string;
  /** Path and query, encoded as a client sends them: `/files/a%20b?tag=x&tag=y`. */
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Each in the form `name=value`. */
  readonly cookies?: readonly string[];
  /** Body: objects are sent as JSON, strings unchanged, and bytes as base64. */
  readonly body?: unknown;
  /** IP address of the client. Default 203.0.113.9. */
  readonly ip?: string;
}

/** Request through an API Gateway. */
export interface LambdaGatewayRequest extends LambdaRequest {
  /** Default `$default` for an HTTP API, `test` for a REST API. */
  readonly stage?: string;
  /** Claims verified by the gateway's authorizer (JWT or Cognito). Default: no authorizer. */
  readonly claims?: Readonly<Record<string, unknown>>;
}

/** Request in the form that all event shapes are built from. */
export interface SentRequest {
  readonly method: string;
  /** Encoded. */
  readonly path: string;
  /** Encoded, without `?`. */
  readonly query: string;
  /** Does not include the cookies. */
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly cookies: readonly string[];
  readonly body: string | undefined;
  readonly isBase64Encoded: boolean;
  readonly ip: string;
}

/** Applies the defaults of a request and splits path and query. */
export function sentRequest({
  path,
  body,
  cookies = [],
  ip = "203.0.113.9",
  ...given
}: LambdaRequest): SentRequest {
  const at = path.indexOf("?");
  const isObject = typeof body !== "string" && body !== undefined && !ArrayBuffer.isView(body);
  const isTyped = Object.keys(given.headers ?? {}).some(
    (name) => name.toLowerCase() === "content-type",
  );
  return {
    method: given.method ?? (body === undefined ? "GET" : "POST"),
    path: at === -1 ? path : path.slice(0, at),
    query: at === -1 ? "" : path.slice(at + 1),
    headers: [
      ...(isObject && !isTyped ? [["content-type", "application/json"] as const] : []),
      ...Object.entries(given.headers ?? {}),
    ],
    cookies,
    body: isObject ? JSON.stringify(body) : textOf(body),
    isBase64Encoded: ArrayBuffer.isView(body),
    ip,
  };
}

function textOf(body: unknown): string | undefined {
  if (ArrayBuffer.isView(body))
    return Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString("base64");
  return body === undefined ? undefined : String(body);
}

export function listsOf(pairs: Iterable<readonly [string, string]>): Record<string, string[]> {
  const lists: Record<string, string[]> = {};
  for (const [name, value] of pairs) lists[name] = [...(lists[name] ?? []), value];
  return lists;
}

/** Decodes a path the way a gateway does. Returns it unchanged if it cannot be decoded. */
export function decodedPath(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}
