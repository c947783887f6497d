import { visible } from "../../../base/log/quoted-text.ts";
import type { CommandContext } from "./command-context.ts";

/**
 * A context in which nothing that is printed acts on a terminal, whoever wrote it: rows of tables, logs, modules and their errors.
 * Every command gets this one. What is JSON stays the same JSON, since the escapes are JSON's.
 */
export function forTerminal(given: CommandContext): CommandContext {
  const { progress, stopping, ask, print, complain } = given;
  return {
    env: given.env,
    clock: given.clock,
    // Asked for where it is needed: whoever reads it opens standard input.
    get input() {
      return given.input;
    },
    print: (line) => print(printable(line)),
    complain: (line) => complain(printable(line)),
    ...(progress === undefined ? {} : { progress: (text: string) => progress(visible(text)) }),
    ...(stopping === undefined ? {} : { stopping }),
    wait: given.wait,
    ...(ask === undefined ? {} : { ask: (question: string) => ask(printable(question)) }),
    developmentSecret: given.developmentSecret,
  };
}

/** A text of any number of lines, which it keeps, and its tabs. */
function printable(text: string): string {
  return text.replaceAll("\r\n", "\n").replace(/[^\n\t]+/g, (part) => visible(part));
}
