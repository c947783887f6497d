import type { HandlerDeclaration } from "../handlers/handler.ts";
import type { DeclaredServer } from "./declared-server.ts";

/**
 * Returns the handlers that read only configuration from DynamoDB, as far as declarations tell:
 * queries of features without tables, on a server without SSM, a key ring or a custom endpoint. A
 * cold start answers them without the SDK.
 */
export function configReaders({
  registry,
  options,
}: DeclaredServer): ReadonlySet<HandlerDeclaration> {
  const { ssm, keyRing, dynamodb } = options;
  if (ssm !== undefined || keyRing !== undefined || dynamodb?.endpoint !== undefined)
    return new Set();
  const withTables = new Set(
    registry.features.filter(({ tables }) => tables.length > 0).map(({ name }) => name),
  );
  const readsOnly = ({ kind, feature }: HandlerDeclaration) =>
    kind === "query" && !withTables.has(feature);
  return new Set([...registry.handlers.values()].filter(readsOnly));
}
