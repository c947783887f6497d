import { isolationRole } from "../../app/registry/declared-server.ts";
import type { Runtime } from "../../app/runtime/runtime.ts";
import type { Variables } from "../../base/process/environment.ts";
import type { Database } from "../../base/types/database.ts";
import type { ClientOptions } from "../clients/client-options.ts";
import { type AssumedRole, openAssumedRole } from "./assumed-role.ts";

interface TenantSessionsOptions extends Pick<ClientOptions, "endpoint" | "region"> {
  readonly database: Database;
  readonly variables: Variables;
  /** Whether the tables belong to a deployment, unlike an emulator's. */
  readonly isChecked: boolean;
}

/**
 * Opens the sessions of tenants. Returns `undefined` without an isolation role, where the process's
 * own credentials reach the tenants' rows.
 * @throws Error if production has no isolation role. In Lambda, opening a session throws it instead,
 * because a function that reads no tenants' rows needs no role.
 */
export function openTenantSessions(
  runtime: Runtime,
  options: TenantSessionsOptions,
): AssumedRole | undefined {
  const { variables, isChecked, ...place } = options;
  const { server, environment, clock, log } = runtime;
  try {
    const isRequired = isChecked && environment === "production";
    const role = isolationRole(server.options, variables, isRequired);
    return role === undefined ? undefined : openAssumedRole({ ...place, role, clock, log });
  } catch (error) {
    if (variables["AWS_LAMBDA_FUNCTION_NAME"] === undefined) throw error;
    return { open: () => Promise.reject(error), close: () => undefined };
  }
}
