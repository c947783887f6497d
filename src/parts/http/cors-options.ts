import type { BootRule } from "../../base/errors/boot-rule.ts";
import { described } from "../../base/errors/option-table.ts";

/** Options for cross-origin requests from browsers. */
export interface CorsOptions {
  /** Allowed origins such as `https://app.example.com`, or `"*"` for all. */
  readonly origins: readonly string[] | "*";
  /** Whether browsers may send cookies. Not allowed with `"*"`. Default `false`. */
  readonly credentials?: boolean;
  /**
   * Request headers that pages may send in addition to `Accept`, `Authorization`, `Content-Type`,
   * `Idempotency-Key`, `Last-Event-ID`, `X-Request-ID` and `Traceparent`; `"*"` for all. `"*"` is
   * not allowed with `credentials`. Default: no other headers.
   */
  readonly allowedHeaders?: readonly string[] | "*";
  /**
   * Response headers that pages may read in addition to `X-Request-ID`, `Idempotent-Replayed`,
   * `Retry-After` and, on limited routes, `RateLimit` and `RateLimit-Policy`; `"*"` for all. `"*"` is
   * not allowed with `credentials`. Default: no other headers.
   */
  readonly exposedHeaders?: readonly string[] | "*";
  /** Time during which a browser may cache a preflight response, in seconds. Default 600. */
  readonly maxAgeSeconds?: number;
}

export interface CorsProblem {
  readonly rule: BootRule;
  readonly message: string;
  readonly fix: string;
}

const known = "origins, credentials, allowedHeaders, exposedHeaders, maxAgeSeconds";

/** Checks options that may come from plain JavaScript. Never throws. */
export function corsProblems(options: unknown): CorsProblem[] {
  if (typeof options !== "object" || options === null)
    return [{ rule: "cors", message: "`cors` is not an object", fix: "pass { origins: [...] }" }];
  const { origins, credentials, allowedHeaders, exposedHeaders, maxAgeSeconds, ...unknown } =
    options as Record<string, unknown>;
  const problems: CorsProblem[] = [];
  const note = (rule: BootRule, message: string, fix: string) =>
    problems.push({ rule, message, fix });
  for (const name of Object.keys(unknown))
    note("unknown-option", `unknown option ${JSON.stringify(name)}`, `known are ${known}`);
  if (origins !== "*") {
    const fix = 'list them as ["https://app.example.com"], in lower case, without a path';
    if (!Array.isArray(origins)) note("cors-origins", "`origins` is not a list of origins", fix);
    else
      for (const origin of origins)
        if (!isOrigin(origin))
          note("cors-origins", `\`origins\` has ${shown(origin)}, which is not an origin`, fix);
  }
  if (credentials !== undefined && typeof credentials !== "boolean")
    note("cors-credentials", "`credentials` is not a boolean", "use true or false");
  if (origins === "*" && credentials === true) {
    const message = "`credentials` with every origin would let any site act for a user";
    note("cors-credentials", message, "list the origins");
  }
  for (const [option, names] of Object.entries({ allowedHeaders, exposedHeaders })) {
    if (names === undefined || (names === "*" && credentials !== true)) continue;
    const fix = 'list names such as ["X-Client-Version"], or pass only "*"';
    if (names === "*") {
      const message = `\`${option}\` is "*" with \`credentials\`, which browsers treat as a header of that name`;
      note("cors-headers", message, "list the headers");
    } else if (!Array.isArray(names))
      note("cors-headers", `\`${option}\` is not a list of header names`, fix);
    else
      for (const name of names)
        if (!isHeaderName(name))
          note("cors-headers", `\`${option}\` has ${shown(name)}, which is not a header name`, fix);
  }
  if (
    maxAgeSeconds !== undefined &&
    !(Number.isSafeInteger(maxAgeSeconds) && Number(maxAgeSeconds) >= 0)
  )
    note("cors-max-age", "`maxAgeSeconds` is not a whole number", "use seconds, 600 for example");
  return problems;
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
  return typeof value === "string" ? JSON.stringify(value.slice(0, 200)) : described(value);
}
