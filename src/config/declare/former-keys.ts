import type { BootProblem } from "../../errors/boot.ts";
import { quoted } from "../../errors/quoted.ts";
import type { ConfigKeyRegistry, RegisteredConfigKey } from "./key.ts";
import { isKeyId } from "./key-id.ts";

/** The key that `id` has become; `undefined` where none was ever called so. */
export function successorOf(id: string, { configKeys }: ConfigKeyRegistry): RegisteredConfigKey | undefined {
  for (const key of configKeys.values()) if (key.definition?.formerly?.includes(id)) return key;
  return undefined;
}

/** Whether a key has former names: only then is it worth to load what reads and writes their rows. */
export function hasFormerKeys({ configKeys }: ConfigKeyRegistry): boolean {
  return [...configKeys.values()].some(({ definition }) => definition.formerly !== undefined);
}

/** Says what is wrong with former identifiers: none is a key's own, and none is two keys'. */
export function formerKeyProblems({ configKeys }: ConfigKeyRegistry): BootProblem[] {
  const owners = new Map<unknown, string>();
  const problems: BootProblem[] = [];
  for (const { id, feature, definition } of configKeys.values()) {
    const { formerly } = Object(definition?.declared?.options);
    for (const name of [formerly ?? []].flat()) {
      const other = configKeys.has(name) ? name : owners.get(name);
      owners.set(name, id);
      if (other === undefined && isKeyId(name)) continue;
      const message = `formerly ${quoted(name)} ${other === undefined ? "is no key's identifier" : `is taken by ${other}`}`;
      problems.push({ feature, key: id, rule: "formerly", message, fix: "name what this key was before, and no other" });
    }
  }
  return problems;
}
