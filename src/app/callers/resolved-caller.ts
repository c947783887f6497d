import { AccessDeniedError, isTypedError, PipelineError } from "../../base/errors/errors.ts";
import { isRecord } from "../../base/errors/option-table.ts";
import type { CallerRequest, ResolveCaller } from "../../base/identity/auth-options.ts";
import {
  type Credentials,
  type Identification,
  identify,
} from "../../base/identity/authenticator.ts";
import type { CorsOptions } from "../../parts/http/cors-options.ts";
import { parseCookies } from "../../parts/http/request-cookies.ts";

interface Resolving {
  readonly resolve: ResolveCaller;
  /** In milliseconds. Default 5,000. */
  readonly timeoutMs: number | undefined;
  readonly cors: CorsOptions | undefined;
}

type SentRequest = NonNullable<Credentials["request"]>;

const nobody: Identification = { user: undefined, problem: undefined };

/**
 * Identifies a caller by `auth.resolve`.
 * @throws any typed error of `resolve`; PipelineError 503 for any other, and after the deadline;
 * AccessDeniedError for a write of another site.
 */
export async function resolveCaller(
  { request = { headers: {} }, handler }: Credentials,
  { resolve, timeoutMs = 5_000, cors }: Resolving,
): Promise<Identification> {
  // A poll of an orchestrator must not depend on a store of sessions.
  if (handler?.startsWith("keelson.health.")) return nobody;
  const found = await inTime(resolve, request, timeoutMs);
  if (found === undefined || found === null) return nobody;
  if (!isRecord(found)) return { user: undefined, problem: "auth.resolve did not return a user" };
  const identification = identify(found, { user: "id" });
  if (identification.user !== undefined && isCrossSiteWrite(request, cors))
    throw new AccessDeniedError("cross-site", "A page of another site cannot make this request");
  return identification;
}

/** Plain JavaScript can return anything. */
async function inTime(
  resolve: ResolveCaller,
  request: SentRequest,
  timeoutMs: number,
): Promise<unknown> {
  const late = Promise.withResolvers<never>();
  const deadline = new AbortController();
  const timer = setTimeout(() => {
    const error = new Error(`auth.resolve took longer than ${timeoutMs} ms`);
    deadline.abort(error);
    late.reject(error);
  }, timeoutMs);
  const signals = [deadline.signal, ...(request.signal === undefined ? [] : [request.signal])];
  const call = async () => resolve(callerRequest(request), { signal: AbortSignal.any(signals) });
  try {
    return await Promise.race([call(), late.promise]);
  } catch (error) {
    // The client has disconnected, so there is no response.
    if (request.signal?.aborted) throw error;
    throw unavailable(error);
  } finally {
    clearTimeout(timer);
  }
}

function callerRequest({ method = "", path = "", headers, ip }: SentRequest): CallerRequest {
  let cookies: CallerRequest["cookies"] | undefined;
  return Object.freeze({
    ...{ method, path, ip },
    headers: Object.freeze(Object.assign(Object.create(null), headers)),
    get cookies() {
      cookies ??= Object.freeze(parseCookies(headers["cookie"]));
      return cookies;
    },
  });
}

/** Returns a typed error itself, and a 503 for any other: the caller may be a valid one. */
export function unavailable(error: unknown): PipelineError {
  if (isTypedError(error)) return error;
  return new PipelineError("The caller's identity cannot be verified at the moment", 503, {
    cause: error,
    headers: { "retry-after": "2" },
  });
}

const reading: readonly (string | undefined)[] = ["GET", "HEAD", "OPTIONS"];
const sameSite: readonly (string | undefined)[] = ["same-origin", "same-site", "none"];

/**
 * Browsers send cookies with requests that other sites make.
 *
 * | `Origin` | `Sec-Fetch-Site` | another site |
 * |---|---|---|
 * | named by `cors` | any | no |
 * | any other | `same-origin`, `same-site`, `none` | no |
 * | any other | `cross-site` | yes |
 * | none | absent | no: not a browser |
 * | any other | absent | if its host differs from the request's |
 */
function isCrossSiteWrite(
  { method, headers }: SentRequest,
  cors: CorsOptions | undefined,
): boolean {
  const { origin, host = "", "sec-fetch-site": site } = headers;
  if (reading.includes(method) || sameSite.includes(site)) return false;
  if (Array.isArray(cors?.origins) && cors.origins.includes(origin)) return false;
  return (
    site === "cross-site" || (origin !== undefined && hostOf(origin) !== hostOf(`http://${host}`))
  );
}

/** Host without the port, which does not belong to a site. The origin `null` has no host. */
function hostOf(url: string): string | undefined {
  return URL.parse(url)?.hostname;
}
