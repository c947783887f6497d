import type { ServerInternals } from "../../../app/server/server.ts";
import { endpointOf } from "../../../aws/adapters/adapters.ts";
import {
  embeddedDirectory,
  environmentOf,
  type Variables,
} from "../../../base/process/environment.ts";
import type { CommandContext } from "./command-context.ts";

/**
 * Runs a command against the server's data: in development without an endpoint, on the embedded
 * stack, shared with a running server; otherwise with unchanged variables.
 *
 * @throws Error if the embedded stack's directory has no data.
 */
export async function onItsStack<Result>(
  context: CommandContext,
  server: Pick<ServerInternals, "environment" | "options"> | undefined,
  work: (context: CommandContext) => Promise<Result>,
): Promise<Result> {
  const { env } = context;
  const directory = stackDirectory(env, server);
  if (directory === undefined) return work(context);
  const [{ readHolder }, { developmentSecret, startEmbeddedStack }] = await Promise.all([
    import("../../../embedded/service/data-directory.ts"),
    import("../../../embedded/stack/index.ts"),
  ]);
  if (readHolder(directory) === undefined) {
    throw new Error(
      `${directory} has no data, and in development the server's are there: start the server first, or set KEELSON_DIRECTORY, AWS_ENDPOINT_URL or NODE_ENV as it has them`,
    );
  }
  const stack = await startEmbeddedStack({ directory, env });
  try {
    const secret = env["KEELSON_AUTH_SECRET"] || developmentSecret(directory, env);
    return await work({ ...context, env: { ...env, ...stack.env, KEELSON_AUTH_SECRET: secret } });
  } finally {
    await stack.close();
  }
}

/** Directory of the embedded stack, if the server's container would start that stack. */
function stackDirectory(
  env: Variables,
  server: Parameters<typeof onItsStack>[1],
): string | undefined {
  const isNamed = (server?.options.dynamodb?.endpoint ?? endpointOf(env, "DYNAMODB")) !== undefined;
  if (isNamed || environmentOf(env) === "production") return undefined;
  return embeddedDirectory(env, server?.environment);
}
