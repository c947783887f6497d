import { quoted } from "../../base/errors/quoted.ts";
import type { Variables } from "../../base/process/environment.ts";
import { ambientStore } from "../../base/request/ambient.ts";
import { physicalTableName, type TableDeclaration, type TableHandle } from "./table.ts";
import { type TenantTable, tenantKeys } from "./tenant-table.ts";

export type DeclaredTable<
  Index extends string,
  Partition extends string,
  Sort extends string,
  Tenant extends boolean,
> = Tenant extends true ? TenantTable<Index, Partition, Sort> : TableHandle<Index>;

export function tableHandle(declared: TableDeclaration): TableHandle<string> {
  const { name, indexes, tenant } = declared;
  const known: readonly string[] = indexes.map((index) => index.name);
  const runtime = () => {
    const store = ambientStore();
    if (store !== undefined) return store.runtime;
    throw new Error(
      `table "${name}": its physical name is known only while a handler runs; use it inside the handler`,
    );
  };
  const handle: TableHandle<string> = {
    get name(): string {
      return runtime().tableName(name);
    },
    index(given: string): string {
      if (known.includes(given)) return given;
      const has = known.length === 0 ? "none" : known.join(", ");
      throw new Error(`table ${quoted(name)}: no index ${quoted(given)}; declared are ${has}`);
    },
    page: async (ctx, options) => {
      const { secrets } = runtime();
      const { readPage } = await import("./table-page.ts");
      return readPage({ table: declared, physicalName: handle.name, secrets }, ctx, options);
    },
  };
  return Object.freeze(tenant === undefined ? handle : Object.assign(handle, tenantKeys(declared)));
}

export function tableNames(prefix: string, variables: Variables): (name: string) => string {
  const known = new Map<string, string>();
  return (name) => {
    const physical = known.get(name) ?? physicalTableName(name, prefix, variables);
    known.set(name, physical);
    return physical;
  };
}
