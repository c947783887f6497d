import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { type CodeBlock, codeBlocks, placeOf, textOf } from "../../docs/markdown.ts";
import { answers, type Step, stepsOf } from "../../docs/session.ts";
import { consumerEnvironment } from "./environment.ts";
import { projectIn, type StartedCommand } from "./project.ts";

const mark = "keelson-tutorial-end-of-command";

/** A command that only reads. A reader repeats it until work in the background is done. */
const reads = /^curl -s -H \S+ \S+$|keelson trace/;

/** A file to save, or a command to run. */
export type TutorialStep = { readonly file: string; readonly block: CodeBlock } | Step;

/** The steps of a page in their order. A `ts` block is a file whose first line is its path; a `console` block has commands. */
export function tutorialSteps(page: string): TutorialStep[] {
  return codeBlocks(page, textOf(page)).flatMap((block): TutorialStep[] => {
    if (block.language === "console") return stepsOf(block);
    if (block.language !== "ts") return [];
    const [, file] = /^\/\/ ([\w/.-]+)\n/.exec(block.code) ?? [];
    if (file === undefined) throw new Error(`${placeOf(block)}: the first line is not a path`);
    return [{ file, block }];
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
      projectIn(join(this.#folder, "lending")).write(step.file, `${step.block.code}\n`);
      return;
    }
    const deadline = Date.now() + (reads.test(step.command) ? 30_000 : 0);
    for (;;) {
      const printed = step.command === "npm start" ? await this.#start() : await this.#run(step);
      if (answers(step, printed)) return;
      if (Date.now() < deadline) continue;
      throw new Error(`${step.place}: ${step.command}\nprinted:\n${printed}\n${this.#complaints}`);
    }
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
