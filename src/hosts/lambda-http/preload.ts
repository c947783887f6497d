import { configReaders, type DeclaredServer } from "../../app/registry/declared-server.ts";
import { readsWithoutSdk } from "../../aws/light/light-database.ts";
import * as always from "./lambda-runtime.ts";

/**
 * Loads the DynamoDB client before the first request needs it, unless every handler only reads
 * configuration, which needs no client, and a caller waits for the cold start.
 *
 * @param name - the only handler that the function calls; default: every handler with a route.
 */
export function loadSdk(
  { registry, ...server }: DeclaredServer,
  name?: string,
): Promise<unknown> | undefined {
  const readers = configReaders({ registry, ...server });
  const called = [...registry.handlers.values()].filter((handler) =>
    name === undefined ? handler.route : handler.name === name,
  );
  const isOnDemand = (process.env["AWS_LAMBDA_INITIALIZATION_TYPE"] ?? "on-demand") === "on-demand";
  const needsNoSdk =
    isOnDemand && readsWithoutSdk(process.env) && called.every((handler) => readers.has(handler));
  return needsNoSdk ? undefined : always.loadSdk();
}
