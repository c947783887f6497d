import { AccessDeniedError, FrameworkError } from "../errors/errors.ts";
import { type AccessRule, allows, describeRule } from "./access.ts";
import type { User } from "./user.ts";

/**
 * Checks that `user` may call `handler`, in a call from another handler.
 * @throws FrameworkError `unauthenticated` (401) without the required user or tenant,
 * AccessDeniedError (403) without access.
 */
export function assertAllowed(rule: AccessRule, user: User, handler: string): void {
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
