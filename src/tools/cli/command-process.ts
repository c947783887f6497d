/* v8 ignore file -- process wiring: the sessions of the documentation and npm start run it in a child process */
import { setTimeout as sleep } from "node:timers/promises";
import { styleText } from "node:util";
import { systemClock } from "../../base/process/clock.ts";
import { runCommand } from "./command.ts";
import type { LineStyle } from "./setup/define-command.ts";

// A closed pipe (`| head`) must not interrupt a rotation or cause a stack trace.
for (const stream of [process.stdout, process.stderr]) {
  stream.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code !== "EPIPE") throw error;
  });
}

process.exitCode = await runCommand(process.argv.slice(2), {
  env: process.env,
  clock: systemClock,
  input: process.stdin.isTTY ? undefined : () => process.stdin,
  print: (line, style) => process.stdout.write(`${styled(line, style)}\n`),
  complain: (line) => process.stderr.write(`${line}\n`),
  progress: process.stderr.isTTY ? progress : undefined,
  stopping,
  wait: (ms) => sleep(ms),
  ask: process.stdin.isTTY && process.stdout.isTTY ? ask : undefined,
  // Loaded lazily: with a secret in the environment, nothing is read from the disk.
  developmentSecret: async () => {
    const { developmentSecret } = await import("../../embedded/service/development-secret.ts");
    return developmentSecret(process.env["KEELSON_DIRECTORY"] || ".keelson", process.env);
  },
});

// Ends the process 1 s after all output is written, because an open handle of the module would
// block it, and a CI pipeline, forever.
process.stdout.write("", () => setTimeout(endStarted, 1_000).unref());

function endStarted() {
  process.stderr.write(
    "keelson: the module has started something that goes on; name one that only builds the server\n",
    () => process.exit(),
  );
}

/** Plain text without a terminal, and with `NO_COLOR`. */
function styled(line: string, style: LineStyle | undefined): string {
  return style === undefined ? line : styleText(style, line, { stream: process.stdout });
}

/** Shows `text` cut to one line, because a wrapped line cannot be cleared. */
function progress(text: string) {
  process.stderr.write(`\r\u001b[2K${text.slice(0, (process.stderr.columns || 80) - 1)}`);
}

/** The first SIGINT or SIGTERM aborts the signal; the second ends the process immediately. */
function stopping(): AbortSignal {
  const controller = new AbortController();
  for (const name of ["SIGINT", "SIGTERM"] as const)
    process.once(name, () => controller.abort(new Error(`stopped by ${name}`)));
  return controller.signal;
}

async function ask(question: string) {
  const { createInterface } = await import("node:readline/promises");
  const terminal = createInterface({ input: process.stdin, output: process.stdout });
  let isAnswered = false;
  // Ctrl+C and Ctrl+D close the terminal without an answer and end the command.
  terminal.once("close", () => {
    if (!isAnswered) process.exit(130);
  });
  const answer = await terminal.question(question);
  isAnswered = true;
  terminal.close();
  return answer;
}
