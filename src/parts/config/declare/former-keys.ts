import type { ConfigKeyRegistry, RegisteredConfigKey } from "./key.ts";

/** The key that `id` has become; `undefined` where none was ever called so. */
export function successorOf(
  id: string,
  { configKeys }: ConfigKeyRegistry,
): RegisteredConfigKey | undefined {
  return [...configKeys.values()].find(({ definition }) => definition?.formerly?.includes(id));
}
