import type { ConfigKeyRegistry, RegisteredConfigKey } from "./key.ts";

/** Returns the key that replaced `id`; `undefined` if no key had that name. */
export function successorOf(
  id: string,
  { configKeys }: ConfigKeyRegistry,
): RegisteredConfigKey | undefined {
  return [...configKeys.values()].find(({ definition }) => definition?.formerly?.includes(id));
}
