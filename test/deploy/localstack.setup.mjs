// For all files of tests: a LocalStack, given or started here; in it the packaged stack of a stage of its own; the archive,
// unpacked; Lambda's emulator and runtime; MiniStack; the AWS CLI, the CDK and osls.
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { deployToLocalStack } from "../../scripts/deploy-localstack.mjs";
import { installPackage } from "../../scripts/install.mjs";
import { getLocalStack } from "../../scripts/localstack/run.mjs";
import {
  installAwsCli,
  installMiniStack,
  installRuntime,
} from "../../scripts/package-emulator.mjs";

const root = join(import.meta.dirname, "../..");
const say = (line) => console.log(`deploy: ${line}`);
let localStack;
let directory;

export async function setup(project) {
  try {
    await prepare(project);
  } catch (error) {
    await teardown(); // nobody else would
    throw error;
  }
}

async function prepare(project) {
  installPackage("test/deploy/tools", say);
  const programs = {
    ...installRuntime(say),
    miniStack: installMiniStack(say),
    awsCli: installAwsCli(say),
  };
  const interruption = new AbortController();
  localStack = await getLocalStack({ signal: interruption.signal }, say);
  directory = mkdtempSync(join(tmpdir(), "keelson-deploy-"));
  // One name per run, because a given LocalStack has the stacks of earlier runs.
  const stage = `run${Date.now().toString(36).slice(-6)}`;
  run(process.execPath, [
    "scripts/package.mjs",
    "--package",
    directory,
    "--stage",
    stage,
    "--shape",
    "each",
  ]);
  run("python3", ["-m", "zipfile", "-e", join(directory, "code.zip"), join(directory, "task")]);
  const file = join(directory, `all-${stage}.json`);
  const variables = await deployToLocalStack(localStack.endpoint, { stage, file }, say);
  project.provide("deployed", {
    endpoint: localStack.endpoint,
    prefix: `keelson-files-${stage}`,
    variables,
    resources: JSON.parse(readFileSync(file, "utf8")).Resources,
    task: join(directory, "task"),
    ...programs,
  });
}

export async function teardown() {
  await localStack?.stop();
  if (directory !== undefined) rmSync(directory, { recursive: true, force: true, maxRetries: 20 });
}

function run(command, args) {
  const { status, stdout, stderr } = spawnSync(command, args, { cwd: root, encoding: "utf8" });
  if (status !== 0) throw new Error(`${command} ${args.join(" ")} failed: ${stdout}${stderr}`);
}
