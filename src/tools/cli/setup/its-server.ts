import type { Runtime } from "../../../app/runtime/runtime.ts";
import { createRuntime } from "../../../app/server/create-runtime.ts";
import type { AdaptedRuntime } from "../../../app/server/runtime-options.ts";
import { type ServerInternals, serverInternals } from "../../../app/server/server.ts";
import { accountOf, endpointOf, openAwsAdapters } from "../../../aws/adapters/adapters.ts";
import type { ClientOptions } from "../../../aws/clients/client-options.ts";
import { closeDatabase, openDatabase } from "../../../aws/clients/dynamodb.ts";
import {
  embeddedDirectory,
  environmentOf,
  type Variables,
} from "../../../base/process/environment.ts";
import type { Database } from "../../../base/types/database.ts";
import type { CommandContext } from "./define-command.ts";
import { findServer } from "./load-server.ts";

export async function onItsServer<Result>(
  module: string,
  context: CommandContext,
  work: (runtime: Runtime, context: CommandContext) => Promise<Result>,
): Promise<Result> {
  const server = await findServer(module);
  return onItsStack(context, serverInternals(server), async (there) => {
    const { env, clock, complain } = there;
    const openAdapters = (runtime: AdaptedRuntime) => openAwsAdapters(runtime, env);
    const runtime = createRuntime(server, { variables: env, clock, write: complain, openAdapters });
    try {
      return await work(runtime, there);
    } finally {
      await runtime.close();
    }
  });
}

/**
 * Runs a command on the server's data: in development without an endpoint, on the embedded stack,
 * shared with a running server; otherwise with unchanged variables.
 *
 * @throws Error if the embedded stack's directory has no data.
 */
export async function onItsStack<Result>(
  context: CommandContext,
  server: Pick<ServerInternals, "environment" | "options"> | undefined,
  work: (context: CommandContext) => Promise<Result>,
): Promise<Result> {
  const { env } = context;
  const isNamed = (server?.options.dynamodb?.endpoint ?? endpointOf(env, "DYNAMODB")) !== undefined;
  const isAlone = isNamed || environmentOf(env) === "production";
  const directory = isAlone ? undefined : embeddedDirectory(env, server?.environment);
  if (directory === undefined) return work(context);
  const { readHolder } = await import("../../../embedded/service/data-directory.ts");
  if (readHolder(directory) === undefined)
    throw new Error(
      `${directory} has no data, and in development the server stores its data there: start the server first, or set KEELSON_DIRECTORY, AWS_ENDPOINT_URL or NODE_ENV to the server's values`,
    );
  const { developmentSecret, startEmbeddedStack } = await import(
    "../../../embedded/stack/index.ts"
  );
  const stack = await startEmbeddedStack({ directory, env });
  try {
    const secret = env["KEELSON_AUTH_SECRET"] || developmentSecret(directory, env);
    return await work({ ...context, env: { ...env, ...stack.env, KEELSON_AUTH_SECRET: secret } });
  } finally {
    await stack.close();
  }
}

/** `endpoint`, from a server's options, overrides the endpoints of the environment. */
export function awsPlace(
  env: Variables,
  service: Parameters<typeof endpointOf>[1],
  endpoint?: string,
): ClientOptions {
  return { endpoint: endpoint ?? endpointOf(env, service), ...accountOf(env) };
}

export async function withDatabase<Result>(
  place: ClientOptions,
  work: (database: Database) => Promise<Result>,
): Promise<Result> {
  const database = await openDatabase(place);
  try {
    return await work(database);
  } finally {
    closeDatabase(database);
  }
}
