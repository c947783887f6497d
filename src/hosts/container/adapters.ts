import { allTables, usesQueues } from "../../app/registry/registry.ts";
import type { Adapters } from "../../app/runtime/adapters.ts";
import { createRuntime } from "../../app/server/create-runtime.ts";
import type { AdaptedRuntime, RuntimeOptions } from "../../app/server/runtime-options.ts";
import { type BindAlone, type Server, serverInternals } from "../../app/server/server.ts";
import { endpointOf, openAwsAdapters } from "../../aws/adapters/adapters.ts";
import { isEmulator } from "../../aws/clients/client-options.ts";
import { ensureTables } from "../../aws/tables/tables.ts";
import { loadPowertools } from "../../base/log/load-powertools.ts";
import {
  type Environment,
  embeddedDirectory,
  environmentOf,
  type Variables,
} from "../../base/process/environment.ts";
import { webFunctionEndpoint } from "../../base/process/platform.ts";

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
  const isEmbedded = endpoint === undefined && directory !== undefined;
  const place = isEmbedded ? `embedded (${directory})` : "aws";
  const usesSsm = options.ssm !== undefined || options.keyRing !== undefined;
  const hasQueues = usesQueues(registry);
  return {
    ...local,
    adapters: {
      dynamodb: endpoint ?? place,
      ...(usesSsm ? { ssm: endpointOf(variables, "SSM") ?? place } : {}),
      ...(hasQueues ? { sqs: endpointOf(variables, "SQS") ?? place } : {}),
      ...(hasQueues ? { eventbridge: endpointOf(variables, "EVENTBRIDGE") ?? place } : {}),
    },
    openAdapters: (runtime) => {
      if (isEmbedded) return openEmbedded(runtime, variables, directory);
      const mode = endpoint === undefined ? "check" : tableMode(endpoint);
      // The roles of functions, including Web Functions, do not allow DescribeTable.
      const isTrusted = mode === "check" && webFunctionEndpoint(variables) !== undefined;
      return isTrusted
        ? openAwsAdapters(runtime, variables, mode)
        : openChecked(runtime, variables, mode);
    },
  };
}

/**
 * Returns the secret of a development directory, and the log that `keelson trace` reads. Production
 * processes load no embedded stack.
 */
async function openLocal(
  directory: string,
  variables: Variables,
  environment: Environment,
): Promise<Pick<Binding, "developmentSecret" | "keepRecord">> {
  const { developmentSecret } = await import("../../embedded/stack/index.ts");
  const secret = { developmentSecret: await developmentSecret(directory, variables) };
  if (environment !== "development" || environmentOf(variables) !== "development") return secret;
  const { openDevelopmentLog } = await import("../../embedded/stack/development-log.ts");
  return { ...secret, keepRecord: openDevelopmentLog(directory, variables).keep };
}

export async function openChecked(
  runtime: AdaptedRuntime,
  variables: Variables,
  mode: "create" | "check",
): Promise<Adapters> {
  const adapters = await openAwsAdapters(runtime, variables, mode);
  try {
    const tables = allTables(runtime.server.registry).map((table) => ({
      ...table,
      tableName: runtime.tableName(table.name),
    }));
    await ensureTables(adapters.database, tables, mode);
  } catch (error) {
    await adapters.close();
    // For a developer who forgot to set the variable.
    const hint =
      "; production takes the AWS account of the environment, NODE_ENV=development an embedded stack";
    throw new Error(`DynamoDB: ${String(error)}${mode === "check" ? hint : ""}`, { cause: error });
  }
  return adapters;
}

async function openEmbedded(
  runtime: AdaptedRuntime,
  variables: Variables,
  directory: string,
): Promise<Adapters> {
  const { startEmbeddedStack } = await import("../../embedded/stack/index.ts");
  const stack = await startEmbeddedStack({ directory, env: variables, log: runtime.log });
  try {
    const adapters = await openChecked(runtime, { ...variables, ...stack.env }, "create");
    const { endPolls } = await import("../../embedded/queues/long-polls.ts");
    return {
      ...adapters,
      // With another endpoint for SQS, the stack has no polls to end.
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

/** Returns `create` for an emulator. */
export function tableMode(endpoint: string): "create" | "check" {
  return isEmulator(endpoint) ? "create" : "check";
}

/** Creates the runtime of a server as a container does, for a script or a REPL. */
export const bindAlone: BindAlone = async (server) => {
  const variables = process.env;
  const binding = await bindAdapters(server, variables);
  return createRuntime(server, {
    variables,
    powertools: await loadPowertools(variables),
    ...binding,
  });
};
