import { onceTable, physicalTableName } from "../../../app/handlers/table.ts";
import type { ServerInternals } from "../../../app/server/server.ts";
import type { TenantReceipt } from "../../../app/tenants/receipt.ts";
import { dynamoTenants } from "../../../aws/stores/tenant-store.ts";
import type { Variables } from "../../../base/process/environment.ts";
import type { Database } from "../../../base/types/database.ts";

export interface Registration {
  /** Start of the suspension. */
  readonly suspendedMs: number | undefined;
  /** Removes it, once nothing else of the tenant is left. @throws Error if the tenant was resumed. */
  remove(): Promise<void>;
}

interface Asked {
  readonly server: Pick<ServerInternals, "options">;
  readonly env: Variables;
  readonly tenant: string;
  readonly action: TenantReceipt["action"];
}

/**
 * Returns the registration of a tenant to erase or to count, if it has one.
 *
 * @throws Error for a tenant to erase that is not suspended.
 */
export async function registrationOf(
  database: Database,
  { server: { options }, env, tenant, action }: Asked,
): Promise<Registration | undefined> {
  // An export finds the registration in its table.
  if (options.tenants !== true || action === "export") return undefined;
  const prefix = options.dynamodb?.prefix ?? "keelson";
  const store = dynamoTenants(database, physicalTableName(onceTable.name, prefix, env));
  const found = await store.read(tenant);
  if (found === undefined) return undefined;
  if (action === "erase" && found.suspendedMs === undefined)
    throw new Error(
      "the tenant is active; first suspend it: keelson tenant suspend <module> <id> --reason <text>",
    );
  return {
    suspendedMs: found.suspendedMs,
    remove: async () => {
      if (!(await store.remove(found)))
        throw new Error("the tenant was resumed in the meantime; suspend it, and run this again");
    },
  };
}
