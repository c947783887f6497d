import { execFile } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readdirSync, statSync } from "node:fs";
import { basename, dirname, join, relative, resolve } from "node:path";
import { promisify } from "node:util";
import {
  allOf,
  dockerIgnore,
  execForm,
  type Instruction,
  last,
  readStages,
  root,
  type Stage,
  words,
} from "./dockerfile.ts";

const run = promisify(execFile);

/** Result of a build. */
export interface Image {
  /** The root of the files that the Dockerfile adds to its base image. */
  readonly files: string;
  /** Working directory of its process, inside of `files`. */
  readonly workingDirectory: string;
  readonly env: Readonly<Record<string, string>>;
  readonly entrypoint: readonly string[];
  readonly healthcheck: readonly string[];
}

/**
 * Executes the repository's Dockerfile without an engine: a directory stands for each stage, `COPY` sees the files
 * that .dockerignore allows, `RUN` runs on this machine. The base image is not used.
 */
export async function buildImage(into: string): Promise<Image> {
  const stages = readStages();
  for (const stage of stages) await buildStage(stage, into);
  const image = stages.at(-1);
  const said = allOf(image);
  const files = join(into, image?.name ?? "");
  return {
    files,
    workingDirectory: join(files, last(said, "WORKDIR") ?? ""),
    env: envOf(said),
    entrypoint: execForm(last(said, "ENTRYPOINT")),
    healthcheck: execForm(last(said, "HEALTHCHECK")),
  };
}

async function buildStage(
  { name, base, inherited, instructions }: Stage,
  into: string,
): Promise<void> {
  const files = join(into, name);
  mkdirSync(files, { recursive: true });
  if (existsSync(join(into, base))) cpSync(join(into, base), files, { recursive: true });
  const said = [...inherited];
  for (const instruction of instructions) {
    said.push(instruction);
    const directory = join(files, last(said, "WORKDIR") ?? "");
    mkdirSync(directory, { recursive: true });
    if (instruction.keyword === "COPY") copy(instruction, directory, files, into);
    if (instruction.keyword === "RUN") await runCommand(instruction.text, directory, envOf(said));
  }
}

function copy({ text, flags }: Instruction, directory: string, files: string, into: string): void {
  const from = flags["from"];
  const paths = words(text);
  const destination = paths.pop() ?? "";
  const target = destination.startsWith("/")
    ? join(files, destination)
    : resolve(directory, destination);
  const isDirectory = destination.endsWith("/") || paths.length > 1;
  const ignores = dockerIgnore();
  for (const path of paths) {
    const source = from === undefined ? join(root, path) : join(into, from, path);
    const isIgnored = (file: string) => from === undefined && ignores(relative(root, file));
    if (statSync(source).isDirectory()) copyDirectory(source, target, isIgnored);
    else if (isIgnored(source)) throw new Error(`COPY ${path}: .dockerignore leaves it out`);
    else copyFile(source, isDirectory ? join(target, basename(source)) : target);
  }
}

function copyDirectory(source: string, target: string, isIgnored: (file: string) => boolean): void {
  for (const entry of readdirSync(source, { withFileTypes: true })) {
    const from = join(source, entry.name);
    const to = join(target, entry.name);
    if (entry.isDirectory()) copyDirectory(from, to, isIgnored);
    else if (!isIgnored(from)) copyFile(from, to);
  }
}

function copyFile(source: string, target: string): void {
  mkdirSync(dirname(target), { recursive: true });
  cpSync(source, target, { verbatimSymlinks: true });
}

/** Runs a command as a build does, without the variables of the npm and the vitest that this process runs in. */
async function runCommand(
  command: string,
  cwd: string,
  env: Readonly<Record<string, string>>,
): Promise<void> {
  const kept = Object.entries(process.env).filter(
    ([name]) => !/^(NODE_(ENV|OPTIONS)$|VITEST|npm_(?!config_)|npm_config_local_)/.test(name),
  );
  const options = {
    cwd,
    env: { ...Object.fromEntries(kept), ...env, npm_config_prefer_offline: "true" },
    maxBuffer: 2 ** 24,
  };
  await run("sh", ["-c", command], options).catch(
    (error: Error & { stdout: string; stderr: string }) => {
      throw new Error(`RUN ${command} failed: ${error.stdout}${error.stderr}`, { cause: error });
    },
  );
}

function envOf(instructions: readonly Instruction[]): Record<string, string> {
  const pairs = instructions
    .filter(({ keyword }) => keyword === "ENV")
    .flatMap(({ text }) => words(text).map((pair) => pair.split("=", 2)));
  return Object.fromEntries(pairs);
}
