import { delimiter, join } from "node:path";
import { pathToFileURL } from "node:url";
import { type MiniStack, startMiniStack } from "../../deploy/mini-stack.ts";
import { consumerEnvironment } from "./environment.ts";

/** An account on this machine for projects outside the repository, with the AWS CLI on its PATH. */
export async function startAccount(): Promise<MiniStack> {
  const script = join(import.meta.dirname, "../../../scripts/package-emulator.mjs");
  // Safe: the script, which has no types, declares both.
  const { installMiniStack, installAwsCli } = (await import(pathToFileURL(script).href)) as Record<
    "installMiniStack" | "installAwsCli",
    (say: (line: string) => void) => string
  >;
  const account = await startMiniStack({
    miniStack: installMiniStack(console.log),
    awsCli: installAwsCli(console.log),
  });
  const { PATH, ...own } = consumerEnvironment();
  const variables = Object.entries(account.env).filter(([name]) => name.startsWith("AWS_"));
  const path = [installAwsCli(console.log), PATH].join(delimiter);
  return { ...account, env: { ...own, PATH: path, ...Object.fromEntries(variables) } };
}
