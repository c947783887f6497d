import { visible } from "../../../base/log/quoted-text.ts";
import type { CommandContext } from "./command-context.ts";

/**
 * Wraps a context so that printed data cannot act on a terminal: table rows, logs, modules and
 * their errors. Every command gets this context. JSON output stays equivalent, because the escapes
 * are JSON's.
 */
export function forTerminal(given: CommandContext): CommandContext {
  const { progress, stopping, ask, print, complain } = given;
  return {
    env: given.env,
    clock: given.clock,
    // A getter, because reading `input` opens standard input.
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

/** Escapes a message of any number of lines. Keeps line breaks and tabs. */
function printable(text: string): string {
  return text.replaceAll("\r\n", "\n").replace(/[^\n\t]+/g, (part) => visible(part));
}
