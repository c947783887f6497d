import type { BootProblem } from "../../base/errors/boot.ts";
import { isScheme } from "../../parts/webhooks/scheme.ts";
import type { ServerOptions } from "../registry/options.ts";
import { type Registry, serverProblem } from "../registry/registry.ts";

/** Problems of options that take the handle of a key: the server has to declare the key. */
export function keyProblems(registry: Registry, options: ServerOptions): BootProblem[] {
  const limits = [...registry.jobs.values(), ...registry.consumers.values()].flatMap(
    ({ name, concurrency }) =>
      Object.entries(concurrency ?? {}).map(
        ([limit, handle]) =>
          [`${name}: concurrency.${limit}`, handle, "limit-key", "number"] as const,
      ),
  );
  const secrets = [...registry.handlers.values()].flatMap(({ name, webhook }) =>
    isScheme(webhook?.verify)
      ? webhook.verify.secrets.map(
          (secret) => [`${name}: verify`, secret, "secret-key", "text"] as const,
        )
      : [],
  );
  const named: readonly Limiting[] = [
    { name: "rateLimit", rateLimit: options?.rateLimit },
    ...registry.features,
    ...registry.handlers.values(),
    ...registry.rateLimits.values(),
  ];
  const rates = named.flatMap(({ name, rateLimit, limit = rateLimit }) =>
    [limit ?? []].flat().map((one) => {
      const { per, requests = one } = Object(one);
      // A user's own value must not decide about others.
      const scope = per === "user" ? "any" : "shared";
      return [name, requests, "limit-key", "number", scope] as const;
    }),
  );
  // The option of a quota refuses a user's key itself.
  const quotas = [...registry.quotas.values()].map(
    ({ name, limit }) => [name, limit, "limit-key", "number", "any"] as const,
  );
  const given = [
    ["delivery.webhook.secret", options?.delivery?.webhook?.secret, "secret-key", "text"] as const,
    [
      "limits.inFlightPerTenant",
      options?.limits?.inFlightPerTenant,
      "limit-key",
      "number",
    ] as const,
    ...limits,
    ...secrets,
    ...rates,
    ...quotas,
  ];
  return given.flatMap(([key, handle, rule, type, scope = type === "text" ? "any" : "shared"]) => {
    const { id, definition } = Object(handle);
    const declared = registry.configKeys.get(id)?.definition;
    const isFit = declared?.type === type && (scope === "any" || declared.scope !== "user");
    // A declaration in place of its handle has no ID.
    if ((typeof id !== "string" && definition === undefined) || isFit) return [];
    const shared = scope === "any" ? "" : " that users share";
    const message = `${JSON.stringify(id ?? "a declaration")} is not a ${type} key of this server${shared}`;
    return [serverProblem(key, rule, message, "pass the handle of a key that is")];
  });
}

interface Limiting {
  readonly name: string;
  readonly rateLimit?: unknown;
  readonly limit?: unknown;
}
