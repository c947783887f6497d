import { visible } from "../../../base/log/quoted-text.ts";
import type { CommandContext } from "./command-context.ts";

/**
 * Escapes control characters in all output, because data from tables, logs and modules must not act
 * on a terminal. JSON output stays equivalent, because the escapes are JSON's.
 */
export function forTerminal(given: CommandContext): CommandContext {
  const { progress, ask, print, complain } = given;
  return {
    ...given,
    print: (line) => print(printable(line)),
    complain: (line) => complain(printable(line)),
    progress: progress && ((text) => progress(visible(text))),
    ask: ask && ((question) => ask(printable(question))),
  };
}

function printable(text: string): string {
  return text.replaceAll("\r\n", "\n").replace(/[^\n\t]+/g, (part) => visible(part));
}
