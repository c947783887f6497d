import { visible } from "../../base/log/redaction.ts";
import { commandGroups, commandNames, loadCommand } from "./command-table.ts";
import {
  type CommandContext,
  complained,
  listed,
  meanToo,
  UsageError,
} from "./setup/define-command.ts";
import { nearestName } from "./setup/nearest-name.ts";
import { ownVersion } from "./setup/own-version.ts";

/** Runs `keelson <args>` and returns its exit code: 0, 1 found or failed, 2 wrong usage. */
export async function runCommand(args: readonly string[], given: CommandContext): Promise<number> {
  const context = forTerminal(given);
  const [name = "help", ...others] = args;
  if (["--version", "-v"].includes(name)) {
    context.print(await ownVersion());
    return 0;
  }
  if (!helps.includes(name)) return await runNamed(name, others, context);
  const [topic] = others;
  if (topic !== undefined && !helps.includes(topic))
    return await runNamed(topic, ["--help"], context);
  printOverview(context);
  return 0;
}

const helps: readonly string[] = ["--help", "-h", "help"];

async function runNamed(name: string, args: readonly string[], context: CommandContext) {
  const command = await loadCommand(name);
  if (command !== undefined) return await command.run(args, context);
  const meant = meanToo(nearestName(name, [...commandNames, "help"]));
  const error = name.startsWith("-")
    ? `there is no option ${name}; options come after a command`
    : `there is no command ${JSON.stringify(name)}${meant}`;
  return complained(new UsageError(error), "keelson --help", context);
}

function printOverview({ print }: CommandContext): void {
  print("Usage: keelson <command> [options]");
  for (const { title, commands } of commandGroups) {
    print(`\n${title}:`, "bold");
    const lines = Object.entries(commands).map(([name, [summary]]) => [name, summary]);
    print(listed(Object.fromEntries(lines)));
  }
  print("\nOptions:", "bold");
  print(
    listed({
      "-h, --help": "print this text, or after a command its options",
      "-v, --version": "print keelson's version",
    }),
  );
  print("\nRun `keelson <command> --help` for the options of a command.");
}

/**
 * Escapes control characters in data, which could act on a terminal. The escapes are JSON's, so
 * JSON output stays equivalent. Clears shown progress before a line, which would continue it.
 */
export function forTerminal(given: CommandContext): CommandContext {
  const { progress, ask, print, complain } = given;
  let isShown = false;
  const show = (text: string) => {
    isShown = text !== "";
    progress?.(visible(text));
  };
  const clear = () => {
    if (isShown) show("");
  };
  return {
    ...given,
    print: (line, style) => {
      clear();
      print(printable(line), style);
    },
    complain: (line) => {
      clear();
      complain(printable(line));
    },
    progress: progress && show,
    ask: ask && ((question) => ask(printable(question))),
  };
}

function printable(text: string) {
  return text.replaceAll("\r\n", "\n").replace(/[^\n\t]+/g, visible);
}
