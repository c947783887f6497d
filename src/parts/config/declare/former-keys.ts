import type { ConfigKeyRegistry, RegisteredConfigKey } from "./key.ts";

/** Returns the key that was once named `id`. */
export function successorOf(
  id: string,
  { configKeys }: ConfigKeyRegistry,
): RegisteredConfigKey | undefined {
  return [...configKeys.values()].find(({ definition }) => definition?.formerly?.includes(id));
}
