import type { Readable } from "node:stream";
import { type ParseArgsConfig, parseArgs } from "node:util";
import type { Clock } from "../../../base/process/clock.ts";
import type { Variables } from "../../../base/process/environment.ts";
import { accountProblem } from "./account-problem.ts";
import { nearestName } from "./nearest-name.ts";

/** The look of a line on a terminal. Elsewhere, and with `NO_COLOR`, the line is plain text. */
export type LineStyle = "bold" | "red" | "yellow";

export interface CommandContext {
  readonly env: Variables;
  readonly clock: Clock;
  /** Opens standard input. Absent if it is a terminal, so nothing is piped in. */
  readonly input?: (() => Readable) | undefined;
  readonly print: (line: string, style?: LineStyle) => void;
  /** To standard error. */
  readonly complain: (line: string) => void;
  /** Replaces the progress text; `""` clears it. Absent without a terminal. */
  readonly progress?: ((text: string) => void) | undefined;
  /** Aborts when the user stops the command, which ends after its current step. */
  readonly stopping?: () => AbortSignal;
  readonly wait: (ms: number) => Promise<void>;
  /** Absent without a terminal. */
  readonly ask?: ((question: string) => Promise<string>) | undefined;
  /** Secret of the embedded stack. Throws in production. */
  readonly developmentSecret: () => Promise<string>;
}

export class UsageError extends Error {}

export function refuse(message: string): never {
  throw new UsageError(message);
}

type Flags = NonNullable<ParseArgsConfig["options"]>;

export type ValuesOf<Declared extends Flags> = ReturnType<
  typeof parseArgs<{ options: Declared; allowPositionals: true }>
>["values"];

/** Returns the exit code: 0, 1 for a failure or a found problem, 2 for wrong usage. */
export type RunCommand = (args: readonly string[], context: CommandContext) => Promise<number>;

/** An option with a value. `form` and `says` are its line in the usage. */
export const text = (form: string, says: string) => ({ type: "string", form, says }) as const;
export const textOr = (byDefault: string, form: string, says: string) => ({
  ...text(form, `${says} (default: ${byDefault})`),
  default: byDefault,
});
export const texts = (form: string, says: string, byDefault: string[] = []) =>
  ({ ...text(form, says), multiple: true, default: byDefault }) as const;
export const flag = (says: string) =>
  ({ type: "boolean", default: false, form: "", says }) as const;
const help = { ...flag("print this text"), short: "h" } as const;

type Options = Readonly<Record<string, { readonly form: string; readonly says: string }>>;

export function options(own: Options): string {
  return `Options:\n${optionLines({ ...own, help })}`;
}

export function optionLines(options: Options): string {
  const lines = Object.entries(options).map(([name, { form, says }]) => [
    `--${name} ${form}`,
    says,
  ]);
  return listed(Object.fromEntries(lines));
}

export function listed(names: Readonly<Record<string, string>>): string {
  const lines = Object.entries(names).map(([name, says]) => `${name.padEnd(26)}  ${says}`);
  return lines.map((line) => `  ${line.replaceAll("\n", `\n${" ".repeat(30)}`)}`).join("\n");
}

export const moduleArgument = listed({
  "<module>": "exports the result of buildServer as `server`; it must not start anything",
});
export const itsEnvironment =
  "Region, credentials, endpoints and names come from the environment: run it with the server's variables.";

interface Command<Declared extends Flags> {
  readonly name: string;
  /** Its actions, if its first argument is one. */
  readonly actions?: Readonly<Record<string, unknown>>;
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

export interface DefinedCommand {
  readonly usage: string;
  readonly run: RunCommand;
  /** Names of its options, without hyphens. */
  readonly optionNames: readonly string[];
  readonly actionNames: readonly string[];
}

/** Commands under one heading of the help text. */
export interface CommandGroup {
  readonly title: string;
  readonly commands: Readonly<Record<string, readonly [summary: string, load: LoadCommand]>>;
}

type LoadCommand = () => Promise<{ readonly command: DefinedCommand }>;

export function defineCommand<const Declared extends Flags>(
  command: Command<Declared>,
): DefinedCommand {
  const { name, usage, actions = {}, maxArguments = 1 } = command;
  const run: RunCommand = async (args, context) => {
    try {
      const { values, positionals } = parsed(command, args);
      if (values["help"]) {
        context.print(usage);
        return 0;
      }
      refuseArgument(positionals[maxArguments]);
      // Safe cast: the values were parsed with the declared flags.
      return await command.run(values as ValuesOf<Declared>, positionals, context);
    } catch (error) {
      return complained(error, `keelson ${name} --help`, context);
    }
  };
  const optionNames = namesOf(command);
  return { usage, run, optionNames, actionNames: Object.keys(actions) };
}

/** Returns the names that the usage shows: a flag that is on by default is given as `--no-<name>`. */
function namesOf({ flags, allowNegative = false }: Command<Flags>): string[] {
  return Object.entries({ ...flags, help }).map(([name, flag]) =>
    allowNegative && flag.type === "boolean" && flag.default === undefined ? `no-${name}` : name,
  );
}

/** Prints an error and returns its exit code: 2 for wrong usage, with the command that explains it. */
export function complained(
  error: unknown,
  help: string,
  { complain }: Pick<CommandContext, "complain">,
): number {
  complain(`keelson: ${accountProblem(error) ?? messageOf(error)}`);
  if (!(error instanceof UsageError)) return 1;
  complain(`Run \`${help}\`.`);
  return 2;
}

function parsed(command: Command<Flags>, args: readonly string[]) {
  const { flags, allowNegative = false } = command;
  const options: Flags = { ...flags, help };
  try {
    return parseArgs({ args: [...args], allowPositionals: true, allowNegative, options });
  } catch (error) {
    refuse(wrongOption(messageOf(error), namesOf(command)));
  }
}

/** Says in one line what `parseArgs` says in several. */
function wrongOption(message: string, names: readonly string[]): string {
  const name = message.replace(/^[^']*'(?:-\w, )?(-[^' ]*)[\s\S]*$/, "$1");
  if (message.startsWith("Unknown option")) {
    const meant = nearestName(name.replace(/^-+/, ""), names);
    return `there is no option ${name}${meanToo(meant && `--${meant}`)}`;
  }
  if (/does not take an argument/.test(message)) return `${name} takes no value`;
  return `${name} needs a value; if it starts with a hyphen, use ${name}=<value>`;
}

export function meanToo(name: string | undefined): string {
  return name === undefined ? "" : `; did you mean ${name}?`;
}

export function required(argument: string | undefined, message: string): string {
  if (argument === undefined) refuse(message);
  return argument;
}

export function moduleOf(argument: string | undefined, command: string, others = ""): string {
  return required(argument, `no module is given; use keelson ${command} <module>${others}`);
}

export function actionOf<Name extends string>(
  actions: Readonly<Record<Name, unknown>>,
  given: string | undefined,
): Name {
  const names = Object.keys(actions);
  const advice = `; use ${oneOfNames(names)}`;
  const name = required(given, `no action is given${advice}`);
  if (Object.hasOwn(actions, name)) return name as Name; // safe cast: a key of the actions
  const meant = meanToo(nearestName(name, names)) || advice;
  refuse(`there is no action ${JSON.stringify(name)}${meant}`);
}

export function oneOfNames(names: readonly string[]): string {
  return [names.slice(0, -1).join(", "), names.at(-1)].filter(Boolean).join(" or ");
}

export function refuseArgument(unexpected: string | undefined): void {
  if (unexpected !== undefined) refuse(`unexpected argument ${JSON.stringify(unexpected)}`);
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Keeps foreign input on one line: replaces control characters with spaces. */
export function oneLine(text: string): string {
  return text.replaceAll(/\p{C}+/gu, " ");
}

export function timeoutMsOf(seconds: string): number {
  if (/^[1-9]\d{0,2}$/.test(seconds)) return Number(seconds) * 1_000;
  refuse(`--timeout-seconds ${JSON.stringify(seconds)} is not a whole number from 1 to 999`);
}

/**
 * Limits the time of `work`, because the SDK sometimes ignores its abort signal.
 *
 * @throws Error with `message` after `limitMs`.
 */
export async function inTime<Result>(
  work: Promise<Result>,
  limitMs: number,
  message: string,
): Promise<Result> {
  const { promise, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new Error(message)), limitMs);
  return Promise.race([work, promise]).finally(() => clearTimeout(timer));
}
