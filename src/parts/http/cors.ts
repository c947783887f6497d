/** Options for cross-origin requests from browsers. */
export interface CorsOptions {
  /** Allowed origins such as `https://app.example.com`, or `"*"` for all. */
  readonly origins: readonly string[] | "*";
  /** Whether browsers may send cookies. Not allowed with `"*"`. Default `false`. */
  readonly credentials?: boolean;
  /**
   * Request headers that pages may send in addition to `Accept`, `Authorization`, `Content-Type`,
   * `Idempotency-Key`, `X-Request-ID` and `Traceparent`; `"*"` for all. `"*"` is not allowed with
   * `credentials`. Default: no other headers.
   */
  readonly allowedHeaders?: readonly string[] | "*";
  /**
   * Response headers that pages may read in addition to `X-Request-ID`, `Idempotent-Replayed` and
   * `Retry-After`; `"*"` for all. `"*"` is not allowed with `credentials`. Default: no other
   * headers.
   */
  readonly exposedHeaders?: readonly string[] | "*";
  /** Time during which a browser may cache a preflight response, in seconds. Default 600. */
  readonly maxAgeSeconds?: number;
}

export interface CorsProblem {
  readonly rule: string;
  readonly message: string;
  readonly fix: string;
}

const alwaysAllowed =
  "Accept, Authorization, Content-Type, Idempotency-Key, X-Request-ID, Traceparent";
const alwaysExposed = "X-Request-ID, Idempotent-Replayed, Retry-After";
const known = [
  "origins",
  "credentials",
  "allowedHeaders",
  "exposedHeaders",
  "maxAgeSeconds",
] as const satisfies (keyof CorsOptions)[];

/** Returns all problems with CORS options, which may come from plain JavaScript. Never throws. */
export function corsProblems(options: unknown): CorsProblem[] {
  if (typeof options !== "object" || options === null)
    return [{ rule: "cors", message: "`cors` is not an object", fix: "pass { origins: [...] }" }];
  const { origins, credentials, allowedHeaders, exposedHeaders, maxAgeSeconds, ...unknown } =
    options as Record<string, unknown>;
  const problems: CorsProblem[] = Object.keys(unknown).map((name) => ({
    rule: "unknown-option",
    message: `unknown option ${JSON.stringify(name)}`,
    fix: `known are ${known.join(", ")}`,
  }));
  if (origins !== "*") {
    const fix = 'list them as ["https://app.example.com"], in lower case, without a path';
    if (!Array.isArray(origins))
      problems.push({ rule: "cors-origins", message: "`origins` is not a list of origins", fix });
    else
      for (const origin of origins.filter((origin) => !isOrigin(origin)))
        problems.push({
          rule: "cors-origins",
          message: `\`origins\` has ${shown(origin)}, which is no origin`,
          fix,
        });
  }
  if (credentials !== undefined && typeof credentials !== "boolean") {
    problems.push({
      rule: "cors-credentials",
      message: "`credentials` is not a boolean",
      fix: "use true or false",
    });
  }
  if (origins === "*" && credentials === true) {
    problems.push({
      rule: "cors-credentials",
      message: "`credentials` with every origin would let any site act for a user",
      fix: "list the origins",
    });
  }
  problems.push(...headerProblems({ allowedHeaders, exposedHeaders }, credentials === true));
  if (
    maxAgeSeconds !== undefined &&
    !(Number.isSafeInteger(maxAgeSeconds) && Number(maxAgeSeconds) >= 0)
  ) {
    problems.push({
      rule: "cors-max-age",
      message: "`maxAgeSeconds` is not a whole number",
      fix: "use seconds, 600 for example",
    });
  }
  return problems;
}

function headerProblems(
  lists: Readonly<Record<string, unknown>>,
  credentials: boolean,
): CorsProblem[] {
  const rule = "cors-headers";
  return Object.entries(lists).flatMap(([option, names]): CorsProblem[] => {
    if (names === undefined || (names === "*" && !credentials)) return [];
    if (names === "*") {
      const message = `\`${option}\` is "*" with \`credentials\`, where browsers take it for a header of that name`;
      return [{ rule, message, fix: "list the headers" }];
    }
    const fix = 'list names such as ["X-Client-Version"], or pass "*" alone';
    if (!Array.isArray(names))
      return [{ rule, message: `\`${option}\` is not a list of header names`, fix }];
    const wrong = names.filter((name) => !isHeaderName(name));
    return wrong.map((name) => ({
      rule,
      message: `\`${option}\` has ${shown(name)}, which is no header name`,
      fix,
    }));
  });
}

/** Returns the CORS headers of every response to a cross-origin request. */
export function corsHeaders(
  { origins, credentials = false, exposedHeaders }: CorsOptions,
  headers: Readonly<Record<string, string>>,
): Record<string, string> {
  const { origin } = headers;
  const vary = origins === "*" ? {} : { vary: "Origin" };
  if (origin === undefined || (origins !== "*" && !origins.includes(origin))) return vary;
  return {
    ...vary,
    "access-control-allow-origin": origins === "*" ? "*" : origin,
    ...(credentials ? { "access-control-allow-credentials": "true" } : {}),
    "access-control-expose-headers": joined(alwaysExposed, exposedHeaders),
  };
}

/**
 * Returns the headers of a preflight response, in addition to {@link corsHeaders}. Returns
 * `undefined` if the request is not a preflight or its origin is not allowed.
 */
export function preflight(
  { origins, allowedHeaders, maxAgeSeconds = 600 }: CorsOptions,
  headers: Readonly<Record<string, string>>,
  allow: string,
): Record<string, string> | undefined {
  const { origin, "access-control-request-method": method } = headers;
  if (
    origin === undefined ||
    method === undefined ||
    (origins !== "*" && !origins.includes(origin))
  )
    return undefined;
  return {
    "access-control-allow-methods": allow,
    "access-control-allow-headers": joined(alwaysAllowed, allowedHeaders),
    "access-control-max-age": String(maxAgeSeconds),
  };
}

/**
 * Joins header names. Adds `*` to the names instead of replacing them, because `*` does not cover
 * `Authorization` (Fetch, 4.9) and older browsers do not support it.
 */
function joined(always: string, more: readonly string[] | "*" = []): string {
  return more.length === 0
    ? always
    : `${always}, ${typeof more === "string" ? more : more.join(", ")}`;
}

/** Whether a value is a token of RFC 9110, except `*`, which stands for all headers. */
function isHeaderName(name: unknown): boolean {
  return typeof name === "string" && name !== "*" && /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/.test(name);
}

function isOrigin(value: unknown): boolean {
  if (typeof value !== "string" || !URL.canParse(value)) return false;
  return new URL(value).origin === value;
}

function shown(value: unknown): string {
  return typeof value === "string"
    ? JSON.stringify(value.slice(0, 200))
    : `a value of type ${typeof value}`;
}
