import { tenantKey, tenantValue } from "../../parts/wall/tenant-keys.ts";
import type { TableDeclaration, TableHandle, TenantOf } from "./table.ts";

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
   * const Key = table.key(ctx, "files", input.id); // { pk: "acme/files", sk: "7" }
   */
  readonly key: <Given extends string | undefined = undefined>(
    ctx: TenantOf,
    partition: string,
    sort?: Given,
  ) => {
    readonly [Attribute in Partition | (Given extends string ? Sort : never)]: string;
  };
  /**
   * Makes an index's partition key: the caller's tenant and the given string.
   * @throws the same errors as `key`.
   * @example
   * const owner = table.value(ctx, ctx.user.id); // "acme/ann"
   */
  readonly value: (ctx: TenantOf, text: string) => string;
}

export function tenantKeys(table: TableDeclaration): {
  readonly key: (
    ctx: TenantOf,
    partition: string,
    sort?: string,
  ) => Readonly<Record<string, string>>;
  readonly value: TenantTable["value"];
} {
  return {
    key: (ctx, ...parts) => tenantKey(table, ctx.user.tenantId, ...parts),
    value: (ctx, text) => tenantValue(table, ctx.user.tenantId, text),
  };
}
