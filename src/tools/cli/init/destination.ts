import { type SpawnOptions, spawn } from "node:child_process";
import { readdir } from "node:fs/promises";
import { basename, resolve } from "node:path";
import type { Variables } from "../../../base/process/environment.ts";

const shown = 5;

export async function obstacleIn(folder: string): Promise<string | undefined> {
  let entries: string[];
  try {
    entries = await readdir(folder);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException; // safe cast: readdir throws system errors
    if (code === "ENOENT") return undefined;
    return code === "ENOTDIR"
      ? `${folder} is a file; name a folder`
      : `${folder} cannot be read (${code})`;
  }
  const there = entries.filter((entry) => entry !== ".git").sort();
  if (there.length === 0) return undefined;
  const names = there.slice(0, shown).join(", ");
  const more = there.length > shown ? ` and ${there.length - shown} more` : "";
  return `${folder} is not empty: it has ${names}${more}; name a new folder`;
}

export function isPackageName(name: string): boolean {
  return (
    name.length <= 214 && /^(?:@[a-z0-9~-][a-z0-9._~-]*\/)?[a-z0-9~-][a-z0-9._~-]*$/.test(name)
  );
}

export function packageNameFor(folder: string): string {
  const name = basename(resolve(folder))
    .toLowerCase()
    .replaceAll(/[^a-z0-9._~-]+/g, "-")
    .replaceAll(/^[._-]+|-+$/g, "");
  return isPackageName(name) ? name : "keelson-app";
}

export function npmInstall(folder: string, env: Variables): Promise<boolean> {
  // npm's output goes to stderr, because stdout is for the command's own output. On Windows, npm is
  // a batch file, which only a shell runs.
  const options: SpawnOptions = {
    cwd: folder,
    env,
    stdio: ["ignore", 2, 2],
    shell: process.platform === "win32",
  };
  return new Promise((resolve) => {
    const npm = spawn("npm", ["install", "--include=dev", "--no-audit", "--no-fund"], options);
    npm.once("error", () => resolve(false));
    npm.once("exit", (code) => resolve(code === 0));
  });
}
