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
  const owners = new Map<string, string>();
  const problems: BootProblem[] = [];
  for (const { id, feature, definition } of configKeys.values()) {
    const report = (rule: string, message: string, fix: string) => problems.push({ feature, key: id, rule, message, fix });
    const { formerly } = Object(definition?.declared?.options);
    const names: readonly unknown[] = [formerly ?? []].flat();
    for (const name of names) {
      if (!isKeyId(name)) {
        report(
          "formerly",
          `formerly ${quoted(name)} is no key's identifier`,
          'use the one of before, such as "files:config:max-mb"',
        );
        continue;
      }
      const other = owners.get(name);
      if (configKeys.has(name)) report("formerly-declared", `formerly ${name} is declared`, "remove the one or the other");
      else if (other !== undefined)
        report("formerly-twice", `formerly ${name} is what ${other} was`, "leave it to one key, once");
      owners.set(name, id);
    }
  }
  return problems;
}
