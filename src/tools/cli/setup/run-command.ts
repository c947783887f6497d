import type { CommandContext } from "./command-context.ts";

export class UsageError extends Error {}

export interface Command<Values> {
  /** Help message. Wrong usage prints it after the reason. */
  readonly usage: string;
  /** Parses options with `parseArgs`, which throws for unknown ones. */
  readonly parse: (args: readonly string[]) => {
    readonly values: Values;
    readonly positionals: readonly string[];
  };
  /** Maximum number of arguments. Default 1. */
  readonly maxArguments?: number;
  /** @returns the exit code: 0, or 1 if the command completed and found a problem. */
  readonly run: (
    values: Values,
    argument: string | undefined,
    more: readonly string[],
  ) => Promise<number>;
}

/** Runs a command and returns its exit code: its own, 1 if it failed, 2 if its usage was wrong. */
export async function runCommand<Values extends { readonly help: boolean }>(
  { usage, parse, maxArguments = 1, run }: Command<Values>,
  args: readonly string[],
  { print, complain }: CommandContext,
): Promise<number> {
  try {
    const { values, positionals } = parsed(parse, args);
    const [argument, ...more] = positionals;
    const [unexpected] = positionals.slice(maxArguments);
    if (!values.help && unexpected !== undefined)
      throw new UsageError(`unexpected argument ${JSON.stringify(unexpected)}`);
    if (!values.help) return await run(values, argument, more);
    print(usage);
    return 0;
  } catch (error) {
    const { message } = error as Error; // safe: loadModule wraps every value that a module throws in an error
    const isUsage = error instanceof UsageError;
    complain(isUsage ? `keelson: ${message}\n\n${usage}` : `keelson: ${message}`);
    return isUsage ? 2 : 1;
  }
}

function parsed<Result>(
  parse: (args: readonly string[]) => Result,
  args: readonly string[],
): Result {
  try {
    return parse(args);
  } catch (error) {
    throw new UsageError((error as Error).message); // safe: parseArgs only throws errors
  }
}
