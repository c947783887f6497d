import { isolationRole } from "../../app/registry/isolation.ts";
import type { Runtime } from "../../app/runtime/runtime.ts";
import type { Variables } from "../../base/process/environment.ts";
import type { Database } from "../../base/types/database.ts";
import type { ClientOptions } from "../clients/client-options.ts";
import { type AssumedRole, openAssumedRole } from "./assumed-role.ts";

/** Where sessions are taken. */
export interface TenantSessionsOptions extends Pick<ClientOptions, "endpoint" | "region"> {
  readonly database: Database;
  readonly variables: Variables;
  /** Whether the tables are those of a deployment, not an emulator's that are made as they are needed. */
  readonly isChecked: boolean;
}

/**
 * Opens the sessions that reach rows of tenants; `undefined` where the process's own credentials do.
 *
 * @throws Error where no role is named in production. In Lambda that is an error of each session: a function that reaches no rows of
 * tenants is given no role.
 */
export function openTenantSessions(
  runtime: Runtime,
  options: TenantSessionsOptions,
): AssumedRole | undefined {
  const { variables, isChecked, ...place } = options;
  const { server, environment, clock, log } = runtime;
  try {
    const role = isolationRole(
      server.options,
      variables,
      isChecked && environment === "production",
    );
    return role === undefined ? undefined : openAssumedRole({ ...place, role, clock, log });
  } catch (error) {
    if (variables["AWS_LAMBDA_FUNCTION_NAME"] === undefined) throw error;
    return { open: () => Promise.reject(error), close: () => undefined };
  }
}
