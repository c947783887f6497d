/** A request that {@link lambdaEvent} makes an event of. */
export interface LambdaRequest {
  /** Default `GET`, with a body `POST`. */
  readonly method?: string;
  /** Path and query as a client sends them, encoded: `/files/a%20b?tag=x&tag=y`. */
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** `name=value`, each. */
  readonly cookies?: readonly string[];
  /** Objects go as JSON, strings unchanged, bytes as base64. */
  readonly body?: unknown;
  /** The client's address. Default 203.0.113.9. */
  readonly ip?: string;
}

/** A request through an API Gateway. */
export interface LambdaGatewayRequest extends LambdaRequest {
  /** Default `$default` of an HTTP API, `test` of a REST API. */
  readonly stage?: string;
  /** What an authorizer of the gateway (JWT, Cognito) has verified. Default: there is none. */
  readonly claims?: Readonly<Record<string, unknown>>;
}

/** A request as all shapes of events tell it. */
export interface SentRequest {
  readonly method: string;
  /** Encoded. */
  readonly path: string;
  /** Encoded, without `?`. */
  readonly query: string;
  /** With `cookie` lines of their own. */
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly cookies: readonly string[];
  readonly body: string | undefined;
  readonly isBase64Encoded: boolean;
  readonly ip: string;
}

/** Completes a request. */
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

/** The values of each name. */
export function listsOf(pairs: Iterable<readonly [string, string]>): Record<string, string[]> {
  const lists: Record<string, string[]> = {};
  for (const [name, value] of pairs) lists[name] = [...(lists[name] ?? []), value];
  return lists;
}

/** The path as a gateway decodes it, which leaves alone what cannot be decoded. */
export function decodedPath(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}
