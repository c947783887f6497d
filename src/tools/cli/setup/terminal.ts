import { visible } from "../../../base/log/redaction.ts";
import type { CommandContext } from "./command-context.ts";

/**
 * Escapes control characters, so that data from tables, logs and modules cannot act on a terminal.
 * The escapes are JSON's, so JSON output stays equivalent.
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
