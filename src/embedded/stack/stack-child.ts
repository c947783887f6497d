import { type ChildProcess, type SpawnOptions, spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import type { Variables } from "../../base/process/environment.ts";
import type { StackProcessMessage, StackProcessOptions } from "./stack-process.ts";

const stopMs = 5000;

/** The child does not keep this process alive. Waits until it listens or another process shares. */
export async function startStackChild(options: StackProcessOptions, ownRegion: string) {
  // The entry is TypeScript in the repository, JavaScript in the package.
  const extension = import.meta.url.slice(import.meta.url.lastIndexOf("."));
  const entry = fileURLToPath(new URL(`./stack-process${extension}`, import.meta.url));
  const parameters = [entry, JSON.stringify(options)];
  const env = { ...stackVariables(process.env), AWS_REGION: ownRegion }; // dynalite's table ARNs contain the region
  const child =
    options.idleMs === undefined
      ? spawn(process.execPath, parameters, { stdio: ["ignore", "ignore", "inherit", "ipc"], env })
      : startDetached(parameters, env);
  const told = await messageOf(child);
  if ("failure" in told) {
    await stopStackChild(child);
    throw new Error(`The embedded stack did not start: ${told.failure}`);
  }
  child.unref();
  child.channel?.unref?.(); // Bun's channel has no `unref` and does not keep the process alive
  return { child, told };
}

/** Leaves the stack: the child process exits, or continues detached if others use it. */
export async function leaveStackChild(child: ChildProcess) {
  if (!child.connected) return stopStackChild(child);
  child.ref();
  child.channel?.ref?.();
  const killer = setTimeout(() => child.kill("SIGKILL"), stopMs);
  child.send("leave", () => {}); // ignores the error of a process that has exited
  await messageOf(child); // resolves when other users remain, or when the process exits
  clearTimeout(killer);
  releaseStackChild(child);
}

/** For a process that does not count its parent as a user. */
export function releaseStackChild(child: ChildProcess) {
  /* v8 ignore next -- the process may have exited and disconnected in the meantime */
  if (child.connected) child.disconnect();
  child.unref();
}

export async function stopStackChild(child: ChildProcess) {
  if (child.connected) child.disconnect();
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.ref();
  const killer = setTimeout(() => child.kill("SIGKILL"), stopMs);
  await once(child, "exit");
  clearTimeout(killer);
}

/**
 * Starts the stack without a parent process, because tools that restart a process signal its
 * descendants and wait for them.
 */
function startDetached(parameters: readonly string[], env: NodeJS.ProcessEnv) {
  const options: SpawnOptions = {
    stdio: ["ignore", "ignore", "ignore", "ipc"],
    env,
    detached: true,
  };
  /* v8 ignore next -- Windows has no /bin/sh, and Bun's channel ends with the shell */
  if (process.platform === "win32" || process.versions["bun"] !== undefined)
    return spawn(process.execPath, parameters, options);
  return spawn("/bin/sh", ["-c", '"$0" "$@" &', process.execPath, ...parameters], options);
}

async function messageOf(child: ChildProcess): Promise<StackProcessMessage> {
  const stopped = new AbortController();
  const event = (name: string) => once(child, name, { signal: stopped.signal });
  try {
    return await Promise.race([
      event("message").then(([told]) => told as StackProcessMessage), // the process sends no other messages
      // If the direct child is the shell, only the disconnect shows that the stack has ended.
      Promise.all([event("exit"), event("disconnect")]).then(([[code, killedBy]]) => ({
        failure: `its process ended with ${killedBy ?? code} before it listened`,
      })),
    ]);
  } finally {
    stopped.abort();
  }
}

const needed = new Set([
  ...["PATH", "HOME", "USERPROFILE", "TMPDIR", "TEMP", "TMP", "TZ", "LANG", "LC_ALL"],
  ...["SYSTEMROOT", "WINDIR", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "ELECTRON_RUN_AS_NODE"],
  ...["NODE_PATH", "NODE_COMPILE_CACHE", "NODE_DISABLE_COMPILE_CACHE"],
]);

/**
 * Returns the variables for the child process, without those of watchers, debuggers and loaders:
 * under `node --watch`, the process would report its imports instead of its port. Only Plug'n'Play
 * keeps `NODE_OPTIONS`, which names its loader.
 */
export function stackVariables(
  variables: Variables,
  hasPlugAndPlay = process.versions["pnp"] !== undefined,
) {
  return Object.fromEntries(
    Object.entries(variables).filter(
      ([name]) => needed.has(name.toUpperCase()) || (hasPlugAndPlay && name === "NODE_OPTIONS"),
    ),
  );
}
