import { runCommand } from "../../src/tools/cli/command.ts";
import type { CommandContext } from "../../src/tools/cli/setup/define-command.ts";

/**
 * Runs a command in this process and returns its exit code, the lines that it prints, and its
 * complaints. It has no variables, must not wait, and must not use the development secret, unless
 * `context` says otherwise.
 */
export async function ranCommand(args: readonly string[], context: Partial<CommandContext> = {}) {
  const [out, err]: [string[], string[]] = [[], []];
  const code = await runCommand(args, {
    env: {},
    clock: { now: () => Date.now() },
    print: (line) => out.push(line),
    complain: (line) => err.push(line),
    wait: () => Promise.reject(new Error("nothing is waited for")),
    developmentSecret: () => Promise.reject(new Error("not to be asked for")),
    ...context,
  });
  return { code, out, err: err.join("\n") };
}
