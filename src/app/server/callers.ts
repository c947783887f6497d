import type { AuthOptions } from "../../base/identity/auth-options.ts";
import type { Authenticator } from "../../base/identity/authenticator.ts";
import { type Lazy, lazy } from "../../base/process/lazy.ts";
import type { ApiKeys } from "../../parts/api-keys/api-keys.ts";
import type { createSuspensionsOf } from "../run/suspended-tenants.ts";
import type { Runtime } from "../runtime/runtime.ts";

/** The verifier of API keys, loaded with the first key. */
export function verifying(parts: () => Pick<Runtime, "adapters" | "clock" | "log">): Lazy<ApiKeys> {
  return lazy(async () =>
    (await import("../callers/api-key-verifier.ts")).createApiKeyVerifier(parts()),
  );
}

/** Loaded with the first caller who has a tenant. */
export function suspending(parts: () => Parameters<typeof createSuspensionsOf>[0]) {
  return lazy(async () =>
    (await import("../run/suspended-tenants.ts")).createSuspensionsOf(parts()),
  );
}

/** Other schemes than tokens are loaded with the first request. */
export function identifying(
  { apiKeys, server }: Pick<Runtime, "server"> & { readonly apiKeys: Lazy<ApiKeys> },
  auth: AuthOptions | undefined,
  tokens: Authenticator,
): Authenticator {
  if (!auth?.apiKeys && !auth?.resolve) return tokens;
  const callers = lazy(async () =>
    (await import("../callers/callers.ts")).createCallers({
      ...{ auth, tokens, apiKeys },
      cors: server.options.cors,
    }),
  );
  return {
    readsAll: true,
    authenticate: async (credentials) => (await callers.open()).authenticate(credentials),
    recognize: async (credentials) => (await callers.open()).recognize(credentials),
  };
}
