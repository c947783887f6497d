import type { ConfigScope, RegisteredConfigKey } from "../declare/key.ts";

/** Keys of one feature, fetched together; `keys.tenant`, for example, may have tenant rows. */
export interface KeyGroup {
  readonly feature: string;
  readonly keys: Readonly<Record<ConfigScope, readonly string[]>>;
}

export interface GroupedKey {
  readonly id: string;
  readonly scope: ConfigScope;
  readonly group: KeyGroup;
}

export function groupKeys(
  registered: Iterable<RegisteredConfigKey>,
): ReadonlyMap<string, GroupedKey> {
  const groups = new Map<string, { feature: string; keys: Record<ConfigScope, string[]> }>();
  const keys = new Map<string, GroupedKey>();
  for (const { id, feature, definition } of registered) {
    const group = groups.get(feature) ?? { feature, keys: { system: [], tenant: [], user: [] } };
    groups.set(feature, group);
    keys.set(id, { id, scope: definition.scope, group });
    // A key may have rows at its own scope and at every broader one (specification 4.1, rule 3).
    group.keys.system.push(id);
    if (definition.scope !== "system") group.keys.tenant.push(id);
    if (definition.scope === "user") group.keys.user.push(id);
  }
  return keys;
}
