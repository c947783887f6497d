import type { ConfigKeyRegistry, RegisteredConfigKey } from "./key.ts";

export function successorOf(
  id: string,
  { configKeys }: ConfigKeyRegistry,
): RegisteredConfigKey | undefined {
  return [...configKeys.values()].find(({ definition }) => definition?.formerly?.includes(id));
}
