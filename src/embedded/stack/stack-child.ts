import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import type { Variables } from "../../base/process/environment.ts";
import type { StackProcessMessage, StackProcessOptions } from "./stack-process.ts";

/** Timeout for an unresponsive process to exit before it is killed, in milliseconds. */
const stopMs = 5000;

/** Child process of a listening stack. */
export interface StackChild {
  readonly child: ChildProcess;
  /** First message from the process. */
  readonly told: Exclude<StackProcessMessage, { readonly failure: string }>;
}

/**
 * Starts the process of a stack and waits until it listens. The child does not keep this process
 * alive.
 *
 * @throws Error with the reason if it does not start.
 */
export async function startStackChild(
  options: StackProcessOptions,
  ownRegion: string,
): Promise<StackChild> {
  // The entry is next to this file: TypeScript in the repository, JavaScript in the package.
  const extension = import.meta.url.slice(import.meta.url.lastIndexOf("."));
  const entry = fileURLToPath(new URL(`./stack-process${extension}`, import.meta.url));
  const parameters = [entry, JSON.stringify(options)];
  const env = { ...stackVariables(process.env), AWS_REGION: ownRegion }; // dynalite's table ARNs contain it
  const child =
    options.idleMs === undefined ? startOwn(parameters, env) : startDetached(parameters, env);
  const told = await messageOf(child);
  if ("failure" in told) {
    await stopStackChild(child);
    throw new Error(`The embedded stack did not start: ${told.failure}`);
  }
  child.unref();
  child.channel?.unref?.(); // Bun's channel has no such method and does not keep the process alive
  return { child, told };
}

/**
 * Leaves the process of a stack. It exits unless other processes use it; otherwise it continues
 * detached.
 */
export async function leaveStackChild(child: ChildProcess): Promise<void> {
  if (!child.connected) return stopStackChild(child);
  child.ref();
  child.channel?.ref?.();
  const killer = setTimeout(() => child.kill("SIGKILL"), stopMs);
  child.send("leave", () => {}); // ignores the error of a process that has exited
  await messageOf(child); // resolves when other users remain, or when the process exits
  clearTimeout(killer);
  if (child.connected) child.disconnect();
  child.unref();
}

/** Disconnects from a process that does not count its parent as a user. */
export function releaseStackChild(child: ChildProcess): void {
  /* v8 ignore next -- a process that has exited since is already disconnected */
  if (child.connected) child.disconnect();
  child.unref();
}

/** Stops a process that is not a stack in use. */
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
 * Starts the process in its own session and without a parent. Tools that restart a process signal
 * its whole group or all its descendants, and wait until they exit.
 */
function startDetached(parameters: readonly string[], env: NodeJS.ProcessEnv): ChildProcess {
  const options = {
    stdio: ["ignore", "ignore", "ignore", "ipc"] as ["ignore", "ignore", "ignore", "ipc"],
    env,
    detached: true,
  };
  /* v8 ignore next -- Windows has no such shell, and Bun's channel ends with the shell */
  if (process.platform === "win32" || process.versions["bun"] !== undefined)
    return spawn(process.execPath, parameters, options);
  return spawn("/bin/sh", ["-c", '"$0" "$@" &', process.execPath, ...parameters], options);
}

async function messageOf(child: ChildProcess): Promise<StackProcessMessage> {
  const stopped = new AbortController();
  const { signal } = stopped;
  try {
    return await Promise.race([
      once(child, "message", { signal }).then(([told]) => told as StackProcessMessage), // stack-process.ts sends only these messages
      // The disconnect event covers a process that is not the direct child: its end of the channel
      // closes when it exits.
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

/** Variables of the parent's environment that a Node process may need in order to run. */
const needed = new Set([
  ...["PATH", "HOME", "USERPROFILE", "TMPDIR", "TEMP", "TMP", "TZ", "LANG", "LC_ALL"],
  ...["SYSTEMROOT", "WINDIR", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "ELECTRON_RUN_AS_NODE"],
  ...["NODE_PATH", "NODE_COMPILE_CACHE", "NODE_DISABLE_COMPILE_CACHE"],
]);

/**
 * Selects the parent's variables for its stack. Excludes variables that change Node's behavior,
 * such as those of watchers, debuggers and loaders: under `node --watch`, the process would report
 * its imports in place of its port. With Plug'n'Play, no import resolves without the loader in
 * `NODE_OPTIONS`.
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
