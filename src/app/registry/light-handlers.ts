import type { HandlerDeclaration } from "../features/handler.ts";
import type { DeclaredServer } from "./declared-server.ts";

/**
 * The handlers that read configuration and nothing else of DynamoDB, as far as declarations tell: queries of features
 * without tables, on a server that reads nothing from SSM and has no endpoint of its own. A cold start that answers one of them does not wait for the SDK.
 */
export function lightHandlers({
  registry,
  options,
}: DeclaredServer): ReadonlySet<HandlerDeclaration> {
  const { ssm, keyRing, dynamodb } = options;
  if (ssm !== undefined || keyRing !== undefined || dynamodb?.endpoint !== undefined)
    return new Set();
  const withTables = new Set(
    registry.features.filter(({ tables }) => tables.length > 0).map(({ name }) => name),
  );
  const isLight = ({ kind, feature }: HandlerDeclaration) =>
    kind === "query" && !withTables.has(feature);
  return new Set([...registry.handlers.values()].filter(isLight));
}
