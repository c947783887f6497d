import { AccessDeniedError, FrameworkError } from "../errors/errors.ts";
import { type AccessRule, allows, describeRule } from "./access.ts";
import type { User } from "./user.ts";

/**
 * Checks that a rule allows a user, for an internal call. The error message names the called
 * handler.
 *
 * @throws FrameworkError `unauthenticated` (401) if the user or tenant that the rule requires is
 * missing, AccessDeniedError (403) if the user lacks access.
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
