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
  ];
  return given.flatMap(([key, handle, rule, type]) => {
    const { id } = Object(handle);
    const declared = registry.configKeys.get(id)?.definition;
    const isFit = declared?.type === type && (type === "text" || declared.scope !== "user");
    if (typeof id !== "string" || isFit) return [];
    const shared = type === "text" ? "" : " that users share";
    const message = `${JSON.stringify(id)} is not a ${type} key of this server${shared}`;
    return [serverProblem(key, rule, message, "pass the handle of a key that is")];
  });
}
