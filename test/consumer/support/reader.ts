import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { codeBlocks, placeOf, textOf } from "../../docs/markdown.ts";
import { answers, type Step, stepsOf } from "../../docs/session.ts";
import { consumerEnvironment } from "./environment.ts";
import { projectIn, type StartedCommand } from "./project.ts";

const mark = "keelson-tutorial-end-of-command";

/** Commands that only read. A reader repeats a block of them until work in the background has finished. */
const reads = /^curl -s -H \S+ \S+$|keelson trace|^for f in .* aws logs /;

/** A file to save, or commands to run one after the other. */
export type TutorialStep =
  | { readonly file: string; readonly code: string }
  | { readonly commands: readonly Step[] };

/** The steps of a page in their order. A `ts` block is a file whose first line is its path; a `console` block has commands. */
export function tutorialSteps(page: string): TutorialStep[] {
  return codeBlocks(page, textOf(page)).flatMap((block): TutorialStep[] => {
    if (block.language === "console") return [{ commands: stepsOf(block) }];
    if (block.language !== "ts") return [];
    const [, file] = /^\/\/ ([\w/.-]+)\n/.exec(block.code) ?? [];
    if (file === undefined) throw new Error(`${placeOf(block)}: the first line is not a path`);
    return [{ file, code: block.code }];
  });
}

/** A reader of the tutorial, with one terminal for the server and one for everything else. */
export class Reader {
  readonly #folder: string;
  readonly #shell: ChildProcessWithoutNullStreams;
  #server: StartedCommand | undefined;
  #port = "";
  #output = "";
  #complaints = "";
  #look = () => {};

  /** Starts a shell in an empty folder. `programs` are scripts that the shell finds before others. */
  constructor(folder: string, programs: Readonly<Record<string, string>>) {
    this.#folder = folder;
    const bin = join(folder, "..", "bin");
    mkdirSync(bin);
    for (const [name, text] of Object.entries(programs)) {
      writeFileSync(join(bin, name), text);
      chmodSync(join(bin, name), 0o755);
    }
    const { PATH, ...env } = consumerEnvironment({ NO_COLOR: "1" });
    this.#shell = spawn("bash", ["-u"], {
      cwd: folder,
      env: { ...env, PATH: [bin, PATH].join(delimiter) },
      detached: true,
    });
    this.#shell.stdout.on("data", (chunk: Buffer) => {
      this.#output += chunk.toString();
      this.#look();
    });
    this.#shell.stderr.on("data", (chunk: Buffer) => {
      this.#complaints += chunk.toString();
    });
    this.#shell.on("close", () => this.#look());
  }

  /** Follows a step. Throws if a command fails, or prints something other than the page shows. */
  async follow(step: TutorialStep): Promise<void> {
    if ("file" in step) {
      projectIn(join(this.#folder, "lending")).write(step.file, `${step.code}\n`);
      return;
    }
    const isReading = step.commands.every(({ command }) => reads.test(command));
    const deadline = Date.now() + (isReading ? 180_000 : 0);
    let problem = await this.#difference(step.commands);
    while (problem !== undefined && Date.now() < deadline)
      problem = await this.#difference(step.commands);
    if (problem !== undefined) throw new Error(problem);
  }

  /** Runs commands until one prints something other than the page shows. */
  async #difference(commands: readonly Step[]): Promise<string | undefined> {
    for (const step of commands) {
      const printed = step.command === "npm start" ? await this.#start() : await this.#run(step);
      if (!answers(step, printed))
        return `${step.place}: ${step.command}\nprinted:\n${printed}\n${this.#complaints}`;
    }
    return undefined;
  }

  /** Runs a command that is not on the page. */
  async prepare(command: string): Promise<void> {
    await this.#run({ place: "preparation", command, answer: "" });
  }

  async close(): Promise<void> {
    await this.#server?.stop();
    if (this.#shell.exitCode !== null) return;
    const closed = once(this.#shell, "close");
    this.#shell.stdin.end();
    await closed;
  }

  /** Restarts the server in the other terminal. Its port is free on any machine, the page's is 3000. */
  async #start(): Promise<string> {
    await this.#server?.stop();
    const project = projectIn(join(this.#folder, "lending"));
    this.#server = project.start("npm", ["start"], { env: { PORT: "0", NO_COLOR: "1" } });
    const [, port = ""] = await this.#server.printed(/server\.started.*\bport=(\d+).*\n/);
    this.#port = port;
    return this.#server.output().trim().replaceAll(port, "3000");
  }

  async #run({ place, command }: Step): Promise<string> {
    this.#output = "";
    this.#complaints = "";
    const end = new RegExp(`([\\s\\S]*)\\n${mark} (\\d+)\\n$`);
    const ended = new Promise<RegExpExecArray>((resolve, reject) => {
      this.#look = () => {
        const match = end.exec(this.#output);
        if (match !== null) resolve(match);
        else if (this.#shell.exitCode !== null) reject(new Error(`${place}: the shell has ended`));
      };
    });
    const line = command.replaceAll("localhost:3000", `localhost:${this.#port}`);
    this.#shell.stdin.write(`${line}\nprintf '\\n%s %s\\n' ${mark} $?\n`);
    const [, printed = "", code] = await ended;
    if (code !== "0")
      throw new Error(`${place}: ${command} ended with ${code}\n${printed}\n${this.#complaints}`);
    return printed.replaceAll("\r", "").trim(); // curl prints the line ends of HTTP
  }
}
