import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import type { Variables } from "../../base/process/environment.ts";
import type { StackProcessMessage, StackProcessOptions } from "./stack-process.ts";

/** How long a process that says nothing may take to end before it is killed. */
const stopMs = 5000;

/** The child process of a stack that listens. */
export interface StackChild {
  readonly child: ChildProcess;
  /** What it has told. */
  readonly told: Exclude<StackProcessMessage, { readonly failure: string }>;
}

/**
 * Starts the process of a stack and waits until it listens. It does not keep this process running.
 *
 * @throws Error saying why it did not start.
 */
export async function startStackChild(
  options: StackProcessOptions,
  ownRegion: string,
): Promise<StackChild> {
  // Beside this file, and like it TypeScript in the repository and JavaScript in the package.
  const extension = import.meta.url.slice(import.meta.url.lastIndexOf("."));
  const entry = fileURLToPath(new URL(`./stack-process${extension}`, import.meta.url));
  const parameters = [entry, JSON.stringify(options)];
  const env = { ...stackVariables(process.env), AWS_REGION: ownRegion }; // dynalite's table ARNs name it
  const child =
    options.idleMs === undefined ? startOwn(parameters, env) : startDetached(parameters, env);
  const told = await messageOf(child);
  if ("failure" in told) {
    await stopStackChild(child);
    throw new Error(`The embedded stack did not start: ${told.failure}`);
  }
  child.unref();
  child.channel?.unref?.(); // in Bun a channel has no such methods, and keeps no process running
  return { child, told };
}

/** Lets go of the process of a stack. It ends, unless others use it; then it is nobody's child. */
export async function leaveStackChild(child: ChildProcess): Promise<void> {
  if (!child.connected) return stopStackChild(child);
  child.ref();
  child.channel?.ref?.();
  const killer = setTimeout(() => child.kill("SIGKILL"), stopMs);
  child.send("leave", () => {}); // one that has gone gets nothing
  await messageOf(child); // that others use it, or its end
  clearTimeout(killer);
  if (child.connected) child.disconnect();
  child.unref();
}

/** Leaves a process alone that does not count its parent as a user. */
export function releaseStackChild(child: ChildProcess): void {
  /* v8 ignore next -- one that has died in between has let go by itself */
  if (child.connected) child.disconnect();
  child.unref();
}

/** Ends a process that is no stack which anybody uses. */
export async function stopStackChild(child: ChildProcess): Promise<void> {
  if (child.connected) child.disconnect();
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.ref();
  const exit = once(child, "exit");
  const killer = setTimeout(() => child.kill("SIGKILL"), stopMs);
  await exit;
  clearTimeout(killer);
}

function startOwn(parameters: readonly string[], env: NodeJS.ProcessEnv): ChildProcess {
  return spawn(process.execPath, parameters, {
    stdio: ["ignore", "ignore", "inherit", "ipc"],
    env,
  });
}

/**
 * In a session of its own, and nobody's child: tools that restart a process signal its whole group, or all that stands
 * below it, and wait until that has ended.
 */
function startDetached(parameters: readonly string[], env: NodeJS.ProcessEnv): ChildProcess {
  const options = {
    stdio: ["ignore", "ignore", "ignore", "ipc"] as ["ignore", "ignore", "ignore", "ipc"],
    env,
    detached: true,
  };
  /* v8 ignore next -- Windows knows no shell of this kind, and Bun's channel ends with the shell */
  if (process.platform === "win32" || process.versions["bun"] !== undefined)
    return spawn(process.execPath, parameters, options);
  return spawn("/bin/sh", ["-c", '"$0" "$@" &', process.execPath, ...parameters], options);
}

async function messageOf(child: ChildProcess): Promise<StackProcessMessage> {
  const stopped = new AbortController();
  const { signal } = stopped;
  try {
    return await Promise.race([
      once(child, "message", { signal }).then(([told]) => told as StackProcessMessage), // stack-process.ts sends nothing else
      // Its end of the channel goes with it, also where it is not the child itself.
      Promise.all([once(child, "exit", { signal }), once(child, "disconnect", { signal })]).then(
        ([[code, killedBy]]) => ({
          failure: `its process ended with ${killedBy ?? code} before it listened`,
        }),
      ),
    ]);
  } finally {
    stopped.abort();
  }
}

/** What a Node process may need of its parent's environment to run at all. */
const needed = new Set([
  ...["PATH", "HOME", "USERPROFILE", "TMPDIR", "TEMP", "TMP", "TZ", "LANG", "LC_ALL"],
  ...["SYSTEMROOT", "WINDIR", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "ELECTRON_RUN_AS_NODE"],
  ...["NODE_PATH", "NODE_COMPILE_CACHE", "NODE_DISABLE_COMPILE_CACHE"],
]);

/**
 * The variables of the parent that its stack gets: none that change what Node does, as those of watchers, debuggers and
 * loaders do. `node --watch` would have the process tell about its imports where it is to tell its port. With Plug'n'Play
 * nothing is found without the loader in `NODE_OPTIONS`.
 */
export function stackVariables(
  variables: Variables,
  hasPlugAndPlay = process.versions["pnp"] !== undefined,
): Record<string, string | undefined> {
  return Object.fromEntries(
    Object.entries(variables).filter(
      ([name]) => needed.has(name.toUpperCase()) || (hasPlugAndPlay && name === "NODE_OPTIONS"),
    ),
  );
}
