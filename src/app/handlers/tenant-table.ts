import type { User } from "../../base/identity/access.ts";
import { lazy } from "../../base/process/lazy.ts";
import type { TableDeclaration, TableHandle } from "./table.ts";

/** Source of a key's tenant: a `ctx` or, for `ctx.acrossTenants`, an object that names a tenant. */
export interface TenantOf {
  readonly user: Pick<User, "tenantId">;
}

/** A table declared with `tenant: true`, in which each key starts with a tenant. */
export interface TenantTable<
  Index extends string = never,
  Partition extends string = string,
  Sort extends string = never,
> extends TableHandle<Index> {
  /**
   * Makes the key of a row of the caller's tenant. Without `sort`, the result has only the
   * partition key, for queries.
   * @throws TypeError for keys that are not strings, a sort key that the table lacks, and without a
   * tenant; RangeError beyond DynamoDB's 2,048 bytes for a partition key and 1,024 for a sort key.
   * @example
   * const Key = await table.key(ctx, "files", input.id); // { pk: "acme/files", sk: "7" }
   */
  readonly key: <Given extends string | undefined = undefined>(
    ctx: TenantOf,
    partition: string,
    sort?: Given,
  ) => Promise<{
    readonly [Attribute in Partition | (Given extends string ? Sort : never)]: string;
  }>;
  /**
   * Makes an index's partition key: the caller's tenant and the given string.
   * @throws the same errors as `key`.
   * @example
   * const owner = await table.value(ctx, ctx.user.id); // "acme/ann"
   */
  readonly value: (ctx: TenantOf, text: string) => Promise<string>;
}

/** Loads the module with the first key, so that it stays out of a function's entry bundle. */
const keys = lazy(() => import("../../parts/wall/tenant-keys.ts"));

export function tenantKeys(table: TableDeclaration): {
  readonly key: (
    ctx: TenantOf,
    partition: string,
    sort?: string,
  ) => Promise<Readonly<Record<string, string>>>;
  readonly value: TenantTable["value"];
} {
  const loaded = async () => keys.value ?? keys.open();
  return {
    key: async (ctx, ...parts) => (await loaded()).tenantKey(table, ctx.user.tenantId, ...parts),
    value: async (ctx, text) => (await loaded()).tenantValue(table, ctx.user.tenantId, text),
  };
}
