// Runs osls, which lives in infra/, a package of its own: `npm ci` of the repository stays small without it.
import { spawn } from "node:child_process";
import { join } from "node:path";
import { installPackage } from "./install.mjs";

const root = join(import.meta.dirname, "..");
const infra = join(root, "infra");

/** Where `osls package` puts the templates and the archive. */
export const packageDirectory = join(".keelson", "package");

/**
 * Installs what infra/package-lock.json names, where that has not been done.
 *
 * @throws Error where npm fails.
 */
export function installInfra(say) {
  installPackage("infra", say);
}

/**
 * Runs osls to its end.
 *
 * @throws Error where it fails; what it says about that it has printed.
 */
export async function osls(command, args, env = process.env) {
  const program = join(infra, "node_modules", "osls", "bin", "serverless.js");
  const child = spawn(process.execPath, [program, command, ...args], { cwd: root, stdio: "inherit", env });
  const forward = (signal) => child.kill(signal);
  for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, forward);
  const status = await new Promise((resolve) => {
    child.once("error", resolve);
    child.once("exit", (code, signal) => resolve(signal ?? code));
  });
  for (const signal of ["SIGINT", "SIGTERM"]) process.off(signal, forward);
  if (status !== 0) throw new Error(`osls ${command} failed (${status})`);
}

export function seconds(began) {
  return `${((performance.now() - began) / 1000).toFixed(1)} s`;
}
