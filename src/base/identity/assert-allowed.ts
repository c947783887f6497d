import { AccessDeniedError, FrameworkError } from "../errors/errors.ts";
import { type AccessRule, allows, describeRule, type NamedCaller } from "./access.ts";

/**
 * For calls from another handler.
 * @throws FrameworkError `unauthenticated` (401) without the required user or tenant,
 * AccessDeniedError (403) without access.
 */
export function assertAllowed(rule: AccessRule, user: NamedCaller, handler: string): void {
  if (allows(rule, user)) return;
  const asked = describeRule(rule);
  if (user.id !== undefined)
    throw new AccessDeniedError(asked, `Access denied: ${asked}, which ${handler} requires`);
  const has = user.tenantId === undefined ? "neither a user nor a tenant" : "a tenant and no user";
  const message = `Authentication required: ${handler} requires ${asked}, and its caller has ${has}`;
  throw new FrameworkError("unauthenticated", message, {
    headers: { "www-authenticate": "Bearer" },
  });
}
