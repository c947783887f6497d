import type { CommandContext } from "./command-context.ts";

/** The command was used wrongly. */
export class UsageError extends Error {}

/** A command with options and arguments. */
export interface Command<Values> {
  /** What `--help` prints, and wrong usage after its reason. */
  readonly usage: string;
  /** What `parseArgs` reads; it throws for options that there are not. */
  readonly parse: (args: readonly string[]) => {
    readonly values: Values;
    readonly positionals: readonly string[];
  };
  /** How many arguments there may be. Default 1. */
  readonly maxArguments?: number;
  /** @returns the exit code: 0, or 1 where it did its work and found something wrong. */
  readonly run: (
    values: Values,
    argument: string | undefined,
    more: readonly string[],
  ) => Promise<number>;
}

/** Runs a command and returns its exit code: its own, 1 where it failed, 2 where it was used wrongly. */
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
    const { message } = error as Error; // safe: what a module has thrown is wrapped in one
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
    throw new UsageError((error as Error).message); // safe: parseArgs throws errors only
  }
}
