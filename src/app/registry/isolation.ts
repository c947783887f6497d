import type { Variables } from "../../base/process/environment.ts";
import type { ServerOptions } from "./options.ts";

/** The variable that names the role. */
export const isolationVariable = "KEELSON_ISOLATION_ROLE";

/**
 * The role whose sessions reach the rows of one tenant; `undefined` where there is no wall in the account.
 *
 * @param isDeployed - whether this is production, in an account of AWS; elsewhere only the variable names a role, since the embedded
 * stack has none.
 * @throws Error where the wall is asked for, and nothing names the role.
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
