import type { User } from "../../base/identity/user.ts";
import { lazy } from "../../base/process/lazy.ts";
import type { TableDeclaration, TableHandle } from "./table.ts";

/** Whose rows a key is of: a `ctx`, or what names a tenant for `ctx.acrossTenants`. */
export interface TenantOf {
  readonly user: Pick<User, "tenantId">;
}

/** A table that is declared with `tenant: true`: each row begins with its tenant. */
export interface TenantTable<
  Index extends string = never,
  Partition extends string = string,
  Sort extends string = never,
> extends TableHandle<Index> {
  /**
   * Makes the key of a row of the caller's tenant. Without `sort` it has the partition key alone, for queries.
   *
   * @throws TypeError for keys that are no texts, a sort key that the table lacks, and in a run without tenant; RangeError
   * beyond DynamoDB's 2,048 bytes of a partition key and 1,024 of a sort key.
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
   * Makes the value of an index's partition key: the text behind the caller's tenant.
   *
   * @throws as `key`.
   * @example
   * const owner = await table.value(ctx, ctx.user.id); // "acme/ann"
   */
  readonly value: (ctx: TenantOf, text: string) => Promise<string>;
}

/** Loaded with the first key, so that it stays out of the entry of a function. */
const keys = lazy(() => import("../../parts/wall/tenant-keys.ts"));

/** Makes what the handle of a table with tenants has beside the others'. */
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
