import type { Environment, Variables } from "../../base/process/environment.ts";
import type { Awaitable, HandlerDeclaration } from "../handlers/handler.ts";
import type { ServerOptions } from "./options.ts";
import { type Registry, usesMessages } from "./registry.ts";

/** Closes a resource at shutdown. */
export type Closer = () => Awaitable<void>;

/** Checks whether a resource is ready. Returning `false` or throwing means that it is not. */
export type ReadyCheck = () => unknown;

/** A server before a host binds it. */
export interface DeclaredServer {
  readonly options: ServerOptions;
  readonly environment: Environment;
  readonly registry: Registry;
  readonly closers: ReadonlyMap<string, Closer>;
  readonly checks: ReadonlyMap<string, ReadyCheck>;
}

/** Declarations whose handlers use the SDK. */
const needsSdk = ["tables", "rateLimits", "quotas"] as const;

/**
 * Returns the handlers that only read configuration or claim a write in DynamoDB, which a cold
 * start answers without loading the AWS SDK: the handlers of features without tables, rate
 * limits and quotas, on a server without SSM, key ring, custom endpoint, registered tenants, API keys or costs
 * in its lines. Writes only if they have no hooks and the server has no messages, because a commit
 * needs the SDK.
 */
export function configReaders({
  registry,
  options,
}: DeclaredServer): ReadonlySet<HandlerDeclaration> {
  const { ssm, keyRing, dynamodb, auth, log } = options;
  const others = [
    ssm,
    keyRing,
    dynamodb?.endpoint,
    auth?.apiKeys || undefined,
    options.tenants || undefined,
  ];
  if (log?.cost === true || others.some((one) => one !== undefined)) return new Set();
  const isQuiet = !usesMessages(registry);
  return new Set(
    registry.features
      .filter((feature) => needsSdk.every((kind) => feature[kind].length === 0))
      .flatMap(({ handlers, rateLimit = options.rateLimit }) =>
        handlers.filter((handler) => (handler.rateLimit ?? rateLimit) === undefined),
      )
      .filter(({ kind, name }) => kind === "query" || (isQuiet && !registry.hooks.has(name))),
  );
}

export const isolationVariable = "KEELSON_ISOLATION_ROLE";

/**
 * Returns the ARN of the role whose sessions reach only the rows of one tenant, or `undefined` if
 * AWS does not enforce isolation.
 * @param isDeployed - production in an AWS account. Elsewhere, only the environment variable can
 * name a role, because the embedded stack does not have roles.
 * @throws Error if a deployed server requests isolation without a role.
 */
export function isolationRole(
  { isolation }: Pick<ServerOptions, "isolation">,
  variables: Variables,
  isDeployed: boolean,
): string | undefined {
  if (isolation === undefined) return undefined;
  const named = variables[isolationVariable] || undefined;
  if (!isDeployed) return named;
  const role = isolation.role ?? named;
  if (role === undefined) {
    throw new Error(
      `isolation: there is no role; set ${isolationVariable} to its ARN, or isolation.role of buildServer`,
    );
  }
  return role;
}
