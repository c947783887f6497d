import type { Runtime } from "../../../app/runtime/runtime.ts";
import { createRuntime } from "../../../app/server/create-runtime.ts";
import { serverInternals } from "../../../app/server/server.ts";
import { openAwsAdapters } from "../../../aws/adapters/adapters.ts";
import type { CommandContext } from "./command-context.ts";
import { onItsStack } from "./embedded-stack.ts";
import { findServer } from "./load-server.ts";

export async function onItsServer<Result>(
  module: string,
  context: CommandContext,
  work: (runtime: Runtime, context: CommandContext) => Promise<Result>,
): Promise<Result> {
  const server = await findServer(module);
  return onItsStack(context, serverInternals(server), async (there) => {
    const { env, clock, complain } = there;
    const openAdapters = (runtime: Runtime) => openAwsAdapters(runtime, env);
    const runtime = createRuntime(server, { variables: env, clock, write: complain, openAdapters });
    try {
      return await work(runtime, there);
    } finally {
      await runtime.close();
    }
  });
}
