import type { ConfigScope, RegisteredConfigKey } from "../declare/key.ts";

/** The keys of one feature by the scope of the partition that may hold a row of them: they are fetched together. */
export interface KeyGroup {
  readonly feature: string;
  readonly keys: Readonly<Record<ConfigScope, readonly string[]>>;
}

/** A key, and the group that it is fetched with. */
export interface GroupedKey {
  readonly scope: ConfigScope;
  readonly group: KeyGroup;
}

/** Finds the group of every key that features declare, by key identifier. */
export function groupKeys(
  registered: Iterable<RegisteredConfigKey>,
): ReadonlyMap<string, GroupedKey> {
  const groups = new Map<string, { feature: string; keys: Record<ConfigScope, string[]> }>();
  const keys = new Map<string, GroupedKey>();
  for (const { id, feature, definition } of registered) {
    const group = groups.get(feature) ?? { feature, keys: { system: [], tenant: [], user: [] } };
    groups.set(feature, group);
    keys.set(id, { scope: definition.scope, group });
    // A row may stand at the key's own scope and at every broader one (specification 4.1, rule 3).
    group.keys.system.push(id);
    if (definition.scope !== "system") group.keys.tenant.push(id);
    if (definition.scope === "user") group.keys.user.push(id);
  }
  return keys;
}
