import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { afterAll, inject } from "vitest";
import { copyInstallation } from "./copied-installation.ts";
import { consumerEnvironment, shell } from "./environment.ts";

/** Parts of a project. */
export interface ProjectOptions {
  /** Name of its folder and its package. */
  readonly name: string;
  /** Its dependencies besides keelson, which it always has. A version of `keelson` here replaces the tarball. */
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly devDependencies?: Readonly<Record<string, string>>;
  /** Contents of its files, by path. */
  readonly files: Readonly<Record<string, string>>;
  /** More of its `package.json`. */
  readonly packageJson?: Readonly<Record<string, unknown>>;
  /**
   * Whether npm chooses all versions. Otherwise the project starts as a copy of an installed
   * project that depends only on keelson, and npm adds the rest. Default: false.
   */
  readonly isFresh?: boolean;
  /**
   * Whether a watcher restarts when its files change. Its dependencies are then copies instead of
   * hard links, because Node counts each new hard link to a file as a change. Default: false.
   */
  readonly isWatched?: boolean;
}

/** Result of a command. `code` is null after a signal. */
export interface Outcome {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface RunOptions {
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** After that its process group is killed. Default 240,000. */
  readonly timeoutMs?: number;
}

/** A process that stays. It ends with the test file at the latest. */
export interface StartedCommand {
  readonly child: ChildProcess;
  /** Output so far, of both streams. */
  readonly output: () => string;
  /** Resolves with the match once the output has it; rejects when the process ends before, or after `timeoutMs`. */
  readonly printed: (pattern: RegExp, timeoutMs?: number) => Promise<RegExpMatchArray>;
  readonly exited: Promise<{
    readonly code: number | null;
    readonly signal: NodeJS.Signals | null;
  }>;
  /** Sends SIGTERM, or another signal, to its process group and waits until it has ended. */
  readonly stop: (
    signal?: NodeJS.Signals,
  ) => Promise<{ readonly code: number | null; readonly signal: NodeJS.Signals | null }>;
}

/** A project outside this repository that has installed the package. */
export interface Project {
  readonly directory: string;
  /** Runs a command to its end; a program of `node_modules/.bin` is given by its name. */
  readonly run: (
    command: string,
    args: readonly string[],
    options?: RunOptions,
  ) => Promise<Outcome>;
  readonly start: (
    command: string,
    args: readonly string[],
    options?: Pick<RunOptions, "env">,
  ) => StartedCommand;
  /** Writes a file of the project, and the folders that it is in. */
  readonly write: (path: string, text: string) => void;
}

const started = new Set<StartedCommand>();
afterAll(() => Promise.all([...started].map((command) => command.stop("SIGKILL"))));

/**
 * Creates a project in a separate folder outside this repository, in which npm installs the packed package and the other
 * dependencies. All projects are removed when the tests have ended.
 *
 * @throws Error with npm's output if the installation fails.
 */
export async function createProject(options: ProjectOptions): Promise<Project> {
  const { tarball, projects, installed } = inject("consumer");
  const directory = mkdtempSync(join(projects, `${options.name}-`));
  const project = projectIn(directory);
  const manifest = {
    name: options.name,
    version: "1.0.0",
    private: true,
    type: "module",
    dependencies: { keelson: `file:${tarball}`, ...options.dependencies },
    devDependencies: options.devDependencies ?? {},
    ...options.packageJson,
  };
  for (const [path, text] of Object.entries(options.files)) project.write(path, text);
  project.write("package.json", `${JSON.stringify(manifest, null, 2)}\n`);
  if (options.isFresh !== true) copyInstallation(installed, directory, options.isWatched !== true);
  const hasMore = options.dependencies !== undefined || options.devDependencies !== undefined;
  if (options.isFresh === true || hasMore) await install(project, options.name);
  return project;
}

/** @throws Error with npm's output if the installation fails. */
async function install({ run }: Project, name: string): Promise<void> {
  const args = ["install", "--no-audit", "--no-fund"];
  const { code, stdout, stderr } = await run("npm", args, { timeoutMs: 540_000 });
  if (code !== 0)
    throw new Error(`npm install of ${name} ended with ${code}:\n${stdout}\n${stderr}`);
}

/** The project in an existing folder. */
export function projectIn(directory: string): Project {
  return {
    directory,
    run: (command, args, runOptions) => run(directory, command, args, runOptions),
    start: (command, args, startOptions) => start(directory, command, args, startOptions?.env),
    write: (path, text) => {
      mkdirSync(dirname(join(directory, path)), { recursive: true });
      writeFileSync(join(directory, path), text);
    },
  };
}

async function run(
  directory: string,
  command: string,
  args: readonly string[],
  options: RunOptions = {},
): Promise<Outcome> {
  const { child, exited } = spawned(directory, command, args, options.env);
  const [stdout, stderr] = [collect(child.stdout), collect(child.stderr)];
  const timeoutMs = options.timeoutMs ?? 240_000;
  let isLate = false;
  const late = setTimeout(() => {
    isLate = true;
    kill(child, "SIGKILL");
  }, timeoutMs);
  try {
    const { code } = await exited;
    if (isLate)
      throw new Error(
        `${command} ${args.join(" ")} took over ${timeoutMs} ms:\n${stdout()}\n${stderr()}`,
      );
    return { code, stdout: stdout(), stderr: stderr() };
  } finally {
    clearTimeout(late);
  }
}

function start(
  directory: string,
  command: string,
  args: readonly string[],
  env: RunOptions["env"],
): StartedCommand {
  const { child, exited } = spawned(directory, command, args, env);
  let output = "";
  const waiting = new Set<() => void>();
  for (const stream of [child.stdout, child.stderr]) {
    stream?.on("data", (chunk: Buffer) => {
      output += chunk.toString();
      for (const look of waiting) look();
    });
  }
  const printed = (pattern: RegExp, timeoutMs = 120_000) =>
    new Promise<RegExpMatchArray>((resolve, reject) => {
      const settle = (because?: string) => {
        const match = output.match(pattern);
        if (match === null && because === undefined) return;
        waiting.delete(look);
        clearTimeout(late);
        if (match !== null) resolve(match);
        else
          reject(
            new Error(
              `${command} ${args.join(" ")} ${because} without printing ${pattern}:\n${output}`,
            ),
          );
      };
      const look = () => settle();
      const late = setTimeout(() => settle(`ran ${timeoutMs} ms`), timeoutMs);
      waiting.add(look);
      void exited.then(
        ({ code, signal }) => settle(`ended (${code ?? signal})`),
        (error: Error) => settle(`did not start (${error.message})`),
      );
      look();
    });
  const stop = (signal: NodeJS.Signals = "SIGTERM") => {
    kill(child, signal);
    return exited;
  };
  const startedCommand = { child, output: () => output, printed, exited, stop };
  started.add(startedCommand);
  void exited.finally(() => started.delete(startedCommand)).catch(() => {});
  return startedCommand;
}

/** A process in a separate group, so that its children end with it. Resolves once its streams have ended too. */
function spawned(
  directory: string,
  command: string,
  args: readonly string[],
  env: RunOptions["env"],
) {
  const child = spawn(command, args, {
    cwd: directory,
    env: withPrograms(directory, consumerEnvironment(env)),
    detached: process.platform !== "win32",
    stdio: ["ignore", "pipe", "pipe"],
    shell: shell && command !== "node",
  });
  const exited: StartedCommand["exited"] = once(child, "close").then(([code, signal]) => ({
    code,
    signal,
  }));
  exited.catch(() => {}); // callers that wait receive it
  return { child, exited };
}

/** With the project's own programs at the end: in front they would hide the machine's own, such as its Node. */
function withPrograms(directory: string, env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return { ...env, PATH: [env["PATH"], join(directory, "node_modules", ".bin")].join(delimiter) };
}

function collect(stream: NodeJS.ReadableStream | null): () => string {
  const chunks: Buffer[] = [];
  stream?.on("data", (chunk: Buffer) => chunks.push(chunk));
  return () => Buffer.concat(chunks).toString();
}

function kill(child: ChildProcess, signal: NodeJS.Signals): void {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
  try {
    if (process.platform === "win32") child.kill(signal);
    else process.kill(-child.pid, signal);
  } catch {
    // It has already ended.
  }
}
