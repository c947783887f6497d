import { type SpawnOptions, spawn } from "node:child_process";

export function npmInstall(
  folder: string,
  env: Readonly<Record<string, string | undefined>>,
): Promise<boolean> {
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
