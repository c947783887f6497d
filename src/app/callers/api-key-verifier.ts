import { errorLog } from "../../base/errors/describe.ts";
import { type ApiKeys, createApiKeys } from "../../parts/api-keys/api-keys.ts";
import type { Runtime } from "../runtime/runtime.ts";

/** Creates the verifier of a runtime's API keys. */
export function createApiKeyVerifier({
  adapters,
  clock,
  log,
}: Pick<Runtime, "adapters" | "clock" | "log">): ApiKeys {
  return createApiKeys({
    store: async () => (await adapters.open()).apiKeys.open(),
    clock,
    onLostUse: (error) => log.warn("api_key.use_not_noted", errorLog(error).data),
  });
}
