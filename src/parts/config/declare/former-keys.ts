import type { ConfigKeyRegistry, RegisteredConfigKey } from "./key.ts";

/** Returns the key that has `id` as a former identifier. */
export function successorOf(
  id: string,
  { configKeys }: ConfigKeyRegistry,
): RegisteredConfigKey | undefined {
  return [...configKeys.values()].find(({ definition }) => definition?.formerly?.includes(id));
}
