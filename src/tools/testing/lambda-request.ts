/** Request from which {@link lambdaEvent} creates an event. */
export interface LambdaRequest {
  /** HTTP method. Default `GET`, or `POST` if there is a body. */
  readonly method?: string;
  /** Path and query, encoded as a client sends them: `/files/a%20b?tag=x&tag=y`. */
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Cookies, each in the form `name=value`. */
  readonly cookies?: readonly string[];
  /** Body: objects are sent as JSON, strings unchanged, and bytes as base64. */
  readonly body?: unknown;
  /** IP address of the client. Default 203.0.113.9. */
  readonly ip?: string;
}

/** Request through an API Gateway. */
export interface LambdaGatewayRequest extends LambdaRequest {
  /** Stage of the API. Default `$default` for an HTTP API, `test` for a REST API. */
  readonly stage?: string;
  /** Claims verified by the gateway's authorizer (JWT or Cognito). Default: no authorizer. */
  readonly claims?: Readonly<Record<string, unknown>>;
}

/** `path` and `query` are encoded; `query` has no `?`. */
export interface SentRequest
  extends Required<Pick<LambdaRequest, "method" | "path" | "cookies" | "ip">> {
  readonly query: string;
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly body: string | undefined;
  readonly isBase64Encoded: boolean;
}

export function sentRequest({
  path,
  body,
  method = body === undefined ? "GET" : "POST",
  headers = {},
  cookies = [],
  ip = "203.0.113.9",
}: LambdaRequest): SentRequest {
  const [before = "", ...query] = path.split("?");
  const isObject = typeof body !== "string" && body !== undefined && !ArrayBuffer.isView(body);
  const isTyped = Object.keys(headers).some((name) => name.toLowerCase() === "content-type");
  const type = isObject && !isTyped ? [["content-type", "application/json"] as const] : [];
  return {
    method,
    path: before,
    query: query.join("?"),
    headers: [...type, ...Object.entries(headers)],
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

/** A path that cannot be decoded stays unchanged, as in API Gateway. */
export function decodedPath(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}
