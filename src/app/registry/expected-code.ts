import { type ErrorCode, errorCodes } from "../../base/errors/error-codes.ts";
import { type OnceRule, onceRule } from "../../parts/once/once-by.ts";
import type { HandlerDeclaration } from "../handlers/handler.ts";
import type { DeclaredServer } from "./declared-server.ts";

type Asked = Pick<HandlerDeclaration, "name" | "kind" | "once" | "output" | "webhook"> &
  Partial<Pick<HandlerDeclaration, "feature" | "rateLimit">>;

/**
 * Whether callers expect an error code that the handler does not declare: keelson answers with it,
 * or any handler may throw it.
 */
export function isExpected(
  code: string,
  handler: Asked,
  { registry, options }: DeclaredServer,
): code is ErrorCode {
  const once = onceOf(handler, options);
  switch (code) {
    case "method_not_allowed":
      return false;
    case "too_many_requests":
      // keelson's own routes are not limited.
      return (
        registry.handlers.has(handler.name) &&
        (options.limits?.inFlightPerTenant !== undefined ||
          isRateLimited(handler, { registry, options }))
      );
    case "quota_exceeded":
      // keelson's own routes count nothing.
      return (
        handler.kind === "write" && registry.quotas.size > 0 && registry.handlers.has(handler.name)
      );
    case "unauthenticated":
      return handler.webhook === undefined;
    case "signature_invalid":
      return handler.webhook !== undefined;
    case "request_in_progress":
      return once !== false || handler.webhook !== undefined;
    case "idempotency_key_reused":
      return once !== false;
    case "idempotency_key_required":
      return once !== false && once.key === "required";
    case "unknown_outcome":
      return handler.kind === "write";
    case "response_mismatch":
      return handler.output !== undefined && options.output?.mismatch !== "send";
    case "tenant_suspended":
      return options.tenants === true;
    case "isolation_unavailable":
      return [...registry.tables.values()].some(({ tenant }) => tenant === true);
    default:
      return Object.hasOwn(errorCodes, code);
  }
}

/** Whether a limit applies to the route of a handler. keelson's own routes do not have limits. */
export function isRateLimited(
  { feature, rateLimit }: Partial<Pick<HandlerDeclaration, "feature" | "rateLimit">>,
  { registry, options }: Pick<DeclaredServer, "registry" | "options">,
): boolean {
  const own = registry.features.find(({ name }) => name === feature);
  return own !== undefined && (rateLimit ?? own.rateLimit ?? options.rateLimit) !== undefined;
}

/** Returns how the handler's retries are deduplicated, or `false` if they are not. */
export function onceOf(
  { kind, once }: Asked,
  options: DeclaredServer["options"],
): OnceRule | false {
  return kind === "query" ? false : onceRule(once, options.once);
}
