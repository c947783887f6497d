import { AccessDeniedError, FrameworkError } from "../errors/errors.ts";
import { type AccessRule, allows, describeRule } from "./access.ts";
import type { User } from "./user.ts";

/**
 * Makes sure that a rule allows a user, for a call that does not come from outside.
 *
 * @throws FrameworkError `unauthenticated` (401) without a user, AccessDeniedError (403) for one that may not.
 */
export function assertAllowed(rule: AccessRule, user: User): void {
  if (allows(rule, user)) return;
  if (user.id !== undefined) throw new AccessDeniedError(describeRule(rule));
  throw new FrameworkError("unauthenticated", "Authentication required", { headers: { "www-authenticate": "Bearer" } });
}
