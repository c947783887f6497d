import { allTables, usesMessages } from "../../app/registry/registry.ts";
import type { Adapters } from "../../app/runtime/adapters.ts";
import type { Runtime } from "../../app/runtime/runtime.ts";
import type { RuntimeOptions } from "../../app/server/runtime-options.ts";
import { type Server, serverInternals } from "../../app/server/server.ts";
import { endpointOf, openAwsAdapters } from "../../aws/adapters/adapters.ts";
import { ensureTables } from "../../aws/tables/tables.ts";
import {
  type Environment,
  embeddedDirectory,
  environmentOf,
  type Variables,
} from "../../base/process/environment.ts";

export interface Binding
  extends Pick<RuntimeOptions, "openAdapters" | "developmentSecret" | "keepRecord"> {
  /** Endpoint of each adapter, `aws` or the embedded stack, for the boot log. */
  readonly adapters: Readonly<Record<string, string>>;
}

/**
 * Chooses the adapters: a configured endpoint; otherwise the AWS account in production, and in
 * development the embedded stack, stored in `KEELSON_DIRECTORY` (default `.keelson`).
 */
export async function bindAdapters(server: Server, variables: Variables): Promise<Binding> {
  const { environment, options, registry } = serverInternals(server);
  const endpoint = options.dynamodb?.endpoint ?? endpointOf(variables, "DYNAMODB");
  const directory = embeddedDirectory(variables, environment);
  const local = directory === undefined ? {} : await openLocal(directory, variables, environment);
  const usesSsm = options.ssm !== undefined || options.keyRing !== undefined;
  const hasQueues = usesMessages(registry);
  const others = (place: string) => ({
    ...(usesSsm ? { ssm: endpointOf(variables, "SSM") ?? place } : {}),
    ...(hasQueues ? { sqs: endpointOf(variables, "SQS") ?? place } : {}),
    ...(hasQueues ? { eventbridge: endpointOf(variables, "EVENTBRIDGE") ?? place } : {}),
  });
  if (endpoint !== undefined) {
    return {
      ...local,
      adapters: { dynamodb: endpoint, ...others("aws") },
      openAdapters: (runtime) => openChecked(runtime, variables, tableMode(endpoint)),
    };
  }
  if (directory === undefined) {
    return {
      adapters: { dynamodb: "aws", ...others("aws") },
      openAdapters: (runtime) => openChecked(runtime, variables, "check"),
    };
  }
  return {
    ...local,
    adapters: { dynamodb: `embedded (${directory})`, ...others(`embedded (${directory})`) },
    openAdapters: (runtime) => openEmbedded(runtime, variables, directory),
  };
}

async function openLocal(
  directory: string,
  variables: Variables,
  environment: Environment,
): Promise<Pick<Binding, "developmentSecret" | "keepRecord">> {
  const secret = { developmentSecret: await loadDevelopmentSecret(directory, variables) };
  const isDeveloping = environment === "development" && environmentOf(variables) === "development";
  return isDeveloping ? { ...secret, keepRecord: await openLog(directory, variables) } : secret;
}

/** Opens the AWS adapters. Creates their tables on an emulator, and checks them on AWS. */
export async function openChecked(
  runtime: Runtime,
  variables: Variables,
  mode: "create" | "check",
): Promise<Adapters> {
  const adapters = await openAwsAdapters(runtime, variables, mode);
  try {
    await ensureTables(adapters.database, requiredTables(runtime), mode);
  } catch (error) {
    await adapters.close();
    throw new Error(`DynamoDB: ${String(error)}${hint(mode)}`, { cause: error });
  }
  return adapters;
}

/** Returns a hint for a developer who forgot to set `NODE_ENV=development`. */
function hint(mode: "create" | "check"): string {
  return mode === "check"
    ? "; production takes the AWS account of the environment, NODE_ENV=development an embedded stack"
    : "";
}

async function openEmbedded(
  runtime: Runtime,
  variables: Variables,
  directory: string,
): Promise<Adapters> {
  const { startEmbeddedStack } = await loadEmbedded();
  const stack = await startEmbeddedStack({ directory, env: variables, log: runtime.log });
  try {
    const adapters = await openChecked(runtime, { ...variables, ...stack.env }, "create");
    const { endPolls } = await import("../../embedded/queues/long-polls.ts");
    return {
      ...adapters,
      // With another endpoint for SQS, the queues are not the stack's, so it cannot end their
      // polls.
      ...(endpointOf(variables, "SQS") === undefined ? { endPolls } : {}),
      close: async () => {
        await adapters.close();
        await stack.close();
      },
    };
  } catch (error) {
    await stack.close();
    throw error;
  }
}

async function loadDevelopmentSecret(directory: string, variables: Variables): Promise<string> {
  const { developmentSecret } = await loadEmbedded();
  return developmentSecret(directory, variables);
}

/** Opens the log that keeps records for `keelson trace`. */
async function openLog(directory: string, variables: Variables): Promise<(record: string) => void> {
  const { openDevelopmentLog } = await import("../../embedded/stack/development-log.ts");
  return openDevelopmentLog(directory, variables).keep;
}

// Imported dynamically, because the embedded stack is a layer above the hosts, and production
// processes must not load it.
function loadEmbedded() {
  return import("../../embedded/stack/index.ts");
}

function requiredTables(runtime: Runtime) {
  return allTables(runtime.server.registry).map((table) => ({
    ...table,
    tableName: runtime.tableName(table.name),
  }));
}

/**
 * Returns `create` for an emulator: an endpoint on this machine, or with plain HTTP outside AWS.
 */
export function tableMode(endpoint: string): "create" | "check" {
  const { protocol, hostname } = new URL(endpoint);
  const isLocal = ["localhost", "127.0.0.1", "[::1]"].includes(hostname);
  return isLocal || (protocol === "http:" && !/\.(amazonaws\.com(\.cn)?|aws)$/.test(hostname))
    ? "create"
    : "check";
}
