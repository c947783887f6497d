import { describeError } from "../../base/errors/describe.ts";
import { AccessDeniedError, FrameworkError } from "../../base/errors/errors.ts";
import { type AccessRule, allows, describeRule } from "../../base/identity/access.ts";
import type { Credentials } from "../../base/identity/authenticator.ts";
import type { Identification } from "../../base/identity/claims.ts";
import { anonymous, type User } from "../../base/identity/user.ts";
import type { RequestScope } from "../runtime/scope.ts";

export async function authenticated(
  scope: RequestScope,
  credentials: Credentials,
  rule: AccessRule,
  isOpen: boolean,
): Promise<User> {
  let identification: Identification;
  try {
    identification = await scope.runtime.authenticator.authenticate(credentials);
  } catch (error) {
    if (!isOpen) throw error;
    // An open route does not depend on the caller's identity, so it does not fail if authentication
    // does.
    scope.log.warn(
      "identity.unavailable",
      describeError(error, { requestId: "", environment: "production" }).log.data,
    );
    return anonymous;
  }
  if (identification.user === undefined) {
    if (isOpen) return anonymous;
    throw new FrameworkError(
      "unauthenticated",
      identification.problem ?? "Authentication required",
      {
        headers: { "www-authenticate": "Bearer" },
      },
    );
  }
  scope.isIdentified = !isOpen;
  const denied = denial(scope, rule, identification.user);
  if (denied !== undefined) {
    scope.user = identification.user; // so that the log line of the rejection names the caller
    throw new AccessDeniedError(denied);
  }
  return identification.user;
}

/**
 * Returns the rule that the caller does not satisfy. A process isolated to one tenant rejects
 * callers of every other tenant, even on open routes.
 */
function denial({ isolatedTo }: RequestScope, rule: AccessRule, user: User): string | undefined {
  if (isolatedTo !== undefined && user.tenantId !== isolatedTo) return "tenant.isolation";
  return allows(rule, user) ? undefined : describeRule(rule);
}
