/* v8 ignore file -- the course of a process: the documents' sessions and npm start run it as one of their own */
import { systemClock } from "../../base/process/clock.ts";
import { runCommand } from "./command.ts";

// A reader that has seen enough (`| head`) ends neither a rotation in the middle nor the command with a stack trace.
for (const stream of [process.stdout, process.stderr]) {
  stream.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code !== "EPIPE") throw error;
  });
}

process.exitCode = await runCommand(process.argv.slice(2), {
  env: process.env,
  clock: systemClock,
  get input() {
    return process.stdin;
  },
  print: (line) => process.stdout.write(`${line}\n`),
  complain: (line) => process.stderr.write(`${line}\n`),
  ...(process.stderr.isTTY ? { progress } : {}),
  stopping,
  wait: (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
  ...(process.stdin.isTTY && process.stdout.isTTY ? { ask } : {}),
  // Loaded only where it is asked for: with a secret in the environment nothing is read from the disk.
  developmentSecret: async () => {
    const { developmentSecret } = await import("../../embedded/service/development-secret.ts");
    return developmentSecret(process.env["KEELSON_DIRECTORY"] || ".keelson", process.env);
  },
});

// A module that starts something would keep the process for ever, and a pipeline of CI with it. Asked for once all is written.
process.stdout.write("", () => setTimeout(endStarted, 1_000).unref());

function endStarted(): void {
  process.stderr.write(
    "keelson: the module has started something that goes on; name one that only builds the server\n",
    () => process.exit(),
  );
}

/** Back to the line's beginning, which is cleared; a text that goes on in the next line could not be. */
function progress(text: string): void {
  process.stderr.write(`\r\u001b[2K${text.slice(0, (process.stderr.columns || 80) - 1)}`);
}

/** From here on the first signal ends the command where it can go on another time, and the second at once. */
function stopping(): AbortSignal {
  const controller = new AbortController();
  for (const name of ["SIGINT", "SIGTERM"] as const)
    process.once(name, () => controller.abort(new Error(`stopped by ${name}`)));
  return controller.signal;
}

async function ask(question: string): Promise<string> {
  const { createInterface } = await import("node:readline/promises");
  const terminal = createInterface({ input: process.stdin, output: process.stdout });
  let isAnswered = false;
  // Ctrl+C and Ctrl+D end the command: nobody has answered.
  terminal.once("close", () => {
    if (!isAnswered) process.exit(130);
  });
  const answer = await terminal.question(question);
  isAnswered = true;
  terminal.close();
  return answer;
}
