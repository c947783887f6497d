// Installs a separate package of this repository, so that `npm ci` of the repository itself stays small.
import { spawnSync } from "node:child_process";
import { existsSync, statSync } from "node:fs";
import { join } from "node:path";

const root = join(import.meta.dirname, "..");

/**
 * Installs the packages of the folder's package-lock.json, unless they are installed.
 *
 * @param folder - relative to the root of the repository.
 * @throws Error if npm fails.
 */
export function installPackage(folder, say) {
  const path = join(root, folder);
  const installed = join(path, "node_modules", ".package-lock.json");
  const lock = statSync(join(path, "package-lock.json"));
  if (existsSync(installed) && statSync(installed).mtimeMs >= lock.mtimeMs) return;
  say(`installing ${folder}/, a separate package`);
  const began = performance.now();
  // These packages do not need install scripts.
  const args = ["ci", "--prefix", path, "--ignore-scripts", "--no-audit", "--no-fund", "--silent"];
  const { status } = spawnSync("npm", args, {
    cwd: root,
    stdio: "inherit",
    shell: process.platform === "win32",
  });
  if (status !== 0) throw new Error(`npm ${args.join(" ")} failed`);
  say(`installed after ${((performance.now() - began) / 1000).toFixed(1)} s`);
}
