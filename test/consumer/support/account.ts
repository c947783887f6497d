import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import { type MiniStack, startMiniStack } from "../../deploy/mini-stack.ts";
import { consumerEnvironment } from "./environment.ts";

const root = join(import.meta.dirname, "../../..");

/** An account on this machine for projects outside the repository, with the AWS CLI on its PATH. */
export async function startAccount(): Promise<MiniStack> {
  const script = pathToFileURL(join(root, "scripts/package-emulator.mjs")).href;
  // Safe: the script, which has no types, declares both.
  const { installMiniStack, installAwsCli } = (await import(script)) as Record<
    "installMiniStack" | "installAwsCli",
    (say: (line: string) => void) => string
  >;
  const programs = await oneAtATime(() => ({
    miniStack: installMiniStack(console.log),
    awsCli: installAwsCli(console.log),
  }));
  const account = await startMiniStack(programs);
  const { PATH, ...own } = consumerEnvironment();
  const variables = Object.entries(account.env).filter(([name]) => name.startsWith("AWS_"));
  const path = [programs.awsCli, PATH].join(delimiter);
  return { ...account, env: { ...own, PATH: path, ...Object.fromEntries(variables) } };
}

/** Runs an installation while no other test file runs one. */
async function oneAtATime<T>(install: () => T): Promise<T> {
  const lock = join(root, ".keelson/consumer-install.lock");
  mkdirSync(join(root, ".keelson"), { recursive: true, mode: 0o700 });
  while (!isTaken(lock)) await setTimeout(200);
  try {
    return install();
  } finally {
    rmSync(lock);
  }
}

/** Takes the lock, and removes the lock of a process that has died. */
function isTaken(lock: string): boolean {
  try {
    writeFileSync(lock, String(process.pid), { flag: "wx" });
    return true;
  } catch {
    if (!isHeld(lock)) rmSync(lock, { force: true });
    return false;
  }
}

function isHeld(lock: string): boolean {
  try {
    process.kill(Number(readFileSync(lock, "utf8")), 0);
    return true;
  } catch {
    return false;
  }
}
