import { visible } from "../../../base/log/quoted-text.ts";
import type { CommandContext } from "./command-context.ts";

/**
 * Printed data must not act on a terminal: table rows, logs, modules and their errors. JSON stays
 * equivalent, because the escapes are JSON's.
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

function printable(text: string): string {
  return text.replaceAll("\r\n", "\n").replace(/[^\n\t]+/g, (part) => visible(part));
}
