import type { Variables } from "../../base/process/environment.ts";
import type { ServerOptions } from "./options.ts";

export const isolationVariable = "KEELSON_ISOLATION_ROLE";

/**
 * Returns the ARN of the role whose sessions reach only the rows of one tenant, or `undefined` if
 * AWS does not enforce isolation.
 * @param isDeployed - production in an AWS account. Elsewhere, only the environment variable can
 * name a role, because the embedded stack has none.
 * @throws Error if a deployed server requests isolation without a role.
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
