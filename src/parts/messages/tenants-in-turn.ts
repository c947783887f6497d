/**
 * Returns items so that tenants take turns: the first item of each, then the second of each. The
 * order within a tenant stays.
 */
export function tenantsInTurn<Item>(
  items: readonly Item[],
  tenantOf: (item: Item) => string | undefined,
): readonly Item[] {
  const tenants = [...Map.groupBy(items, tenantOf).values()];
  const turns = Math.max(0, ...tenants.map(({ length }) => length));
  return Array.from({ length: turns }, (_, turn) =>
    tenants.flatMap((of) => of.slice(turn, turn + 1)),
  ).flat();
}
