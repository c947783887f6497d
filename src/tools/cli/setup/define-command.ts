import { type ParseArgsConfig, parseArgs } from "node:util";
import type { CommandContext } from "./command-context.ts";

export class UsageError extends Error {}

type Flags = NonNullable<ParseArgsConfig["options"]>;

export const text = { type: "string" } as const;
export const flag = { type: "boolean", default: false } as const;

export const moduleArgument =
  "  <module>                    exports the result of buildServer as `server`; it must not start anything";
export const helpOption = "  --help                      print this text";
export const itsEnvironment =
  "Region, credentials, endpoints and names come from the environment: run it with the server's variables.";

export type ValuesOf<Declared extends Flags> = ReturnType<
  typeof parseArgs<{ options: Declared; allowPositionals: true }>
>["values"];

/**
 * Runs a command. Returns the exit code: 0, 1 for a failure or a found problem, 2 for wrong usage.
 */
export type RunCommand = (args: readonly string[], context: CommandContext) => Promise<number>;

interface Command<Declared extends Flags> {
  readonly usage: string;
  readonly flags: Declared;
  readonly allowNegative?: boolean;
  readonly maxArguments?: number;
  readonly run: (
    values: ValuesOf<Declared>,
    given: readonly string[],
    context: CommandContext,
  ) => Promise<number>;
}

export function defineCommand<const Declared extends Flags>(
  command: Command<Declared>,
): RunCommand {
  const { usage, maxArguments = 1, run } = command;
  return async (args, context) => {
    try {
      const { values, positionals } = parsed(command, args);
      if (values["help"]) {
        context.print(usage);
        return 0;
      }
      refuse(positionals[maxArguments]);
      // Safe cast: the values were parsed with the declared flags.
      return await run(values as ValuesOf<Declared>, positionals, context);
    } catch (error) {
      const isUsage = error instanceof UsageError;
      context.complain(`keelson: ${messageOf(error)}${isUsage ? `\n\n${usage}` : ""}`);
      return isUsage ? 2 : 1;
    }
  };
}

function parsed({ flags, allowNegative = false }: Command<Flags>, args: readonly string[]) {
  try {
    const options: Flags = { ...flags, help: flag };
    return parseArgs({ args: [...args], allowPositionals: true, allowNegative, options });
  } catch (error) {
    throw new UsageError(messageOf(error));
  }
}

export function required(argument: string | undefined, message: string): string {
  if (argument === undefined) throw new UsageError(message);
  return argument;
}

export function moduleOf(argument: string | undefined, command: string, others = ""): string {
  return required(argument, `no module is given; use keelson ${command} <module>${others}`);
}

export function actionOf<Name extends string>(
  actions: Readonly<Record<Name, unknown>>,
  given: string | undefined,
  advice = "",
): Name {
  if (given === undefined) throw new UsageError(`no action is given${advice}`);
  if (Object.hasOwn(actions, given)) return given as Name; // safe cast: a key of the actions
  throw new UsageError(`there is no action ${JSON.stringify(given)}${advice}`);
}

export function refuse(unexpected: string | undefined): void {
  if (unexpected !== undefined)
    throw new UsageError(`unexpected argument ${JSON.stringify(unexpected)}`);
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

export function timeoutMsOf(seconds: string): number {
  if (/^[1-9]\d{0,2}$/.test(seconds)) return Number(seconds) * 1_000;
  throw new UsageError(
    `--timeout-seconds ${JSON.stringify(seconds)} is not a whole number from 1 to 999`,
  );
}
