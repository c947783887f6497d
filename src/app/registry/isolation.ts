import type { Variables } from "../../base/process/environment.ts";
import type { ServerOptions } from "./options.ts";

export const isolationVariable = "KEELSON_ISOLATION_ROLE";

/**
 * Returns the ARN of the role whose sessions reach the rows of one tenant, or `undefined` if the
 * account does not enforce isolation.
 * @param isDeployed - production in an AWS account. Elsewhere only the variable names a role,
 * because the embedded stack has none.
 * @throws Error if isolation is requested without a role.
 */
export function isolationRole(
  { isolation }: Pick<ServerOptions, "isolation">,
  variables: Variables,
  isDeployed: boolean,
): string | undefined {
  if (isolation === undefined) return undefined;
  const named = variables[isolationVariable] || undefined;
  if (!isDeployed) return named;
  const role = isolation.role ?? named;
  if (role === undefined) {
    throw new Error(
      `isolation: there is no role; set ${isolationVariable} to its ARN, or isolation.role of buildServer`,
    );
  }
  return role;
}
