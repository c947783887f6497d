import type { HandlerDeclaration } from "../handlers/handler.ts";
import type { DeclaredServer } from "./declared-server.ts";

/**
 * Returns the handlers that by their declarations read only configuration from DynamoDB: queries of
 * features without tables, on a server without SSM, key ring or custom endpoint. A cold start
 * answers them without loading the AWS SDK.
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
