import {
  chmodSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join, resolve } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { systemCode } from "../../base/errors/system-code.ts";

/** A process that works on a data directory, written down for other processes. */
export interface DirectoryHolder {
  readonly pid: number;
  /** The process that started it, which is the one that people know. */
  readonly parentPid: number;
  /** How others use it as well, if they may. */
  readonly shared?: SharedHolder;
  /** Whether it is about to say how others use it. */
  readonly isStarting?: true;
  /** Whether it is about to let go. */
  readonly isEnding?: true;
}

/** What a process needs to use a stack that another one has started. */
export interface SharedHolder {
  /** On 127.0.0.1. */
  readonly port: number;
  /** Proves that a client can read the directory. */
  readonly key: string;
  /** What its ARNs name. */
  readonly region: string;
}

/**
 * Creates a data directory that only its owner can read and that git leaves alone. One that is there and open to others is
 * closed, where it is empty or a data directory.
 *
 * @throws Error where it belongs to somebody else, or holds what somebody else has put there; where it is open to others and
 * holds something else: that is not ours to close.
 */
export function createDataDirectory(directory: string): void {
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  closeToOthers(directory);
  try {
    writeFileSync(join(directory, ".gitignore"), "*\n", { flag: "wx" });
  } catch (error) {
    if (systemCode(error) !== "EEXIST") throw error;
  }
}

function closeToOthers(directory: string): void {
  const { uid, mode } = statSync(directory);
  const self = process.getuid?.();
  if (self === undefined) return; // Windows has neither owners nor modes of this kind
  const refuse = (why: string) =>
    new Error(
      `The data directory ${resolve(directory)} ${why}: it keeps secrets; name another by KEELSON_DIRECTORY`,
    );
  if (uid !== self) throw refuse("belongs to another user");
  if ((mode & 0o077) !== 0) {
    const names = readdirSync(directory);
    if (names.length > 0 && !names.some((name) => ownNames.includes(name))) {
      throw refuse(
        `can be read by others (mode ${(mode & 0o777).toString(8)}) and holds other files`,
      );
    }
    chmodSync(directory, 0o700);
  }
  // While it was open somebody may have left a secret there that they know: looked for once nobody can add one.
  const foreign = readdirSync(directory).find(
    (name) => lstatSync(join(directory, name)).uid !== self,
  );
  if (foreign !== undefined) throw refuse(`holds ${JSON.stringify(foreign)} of another user`);
}

/** What is found in a data directory alone. */
const ownNames = ["development-secret", "holder.json"];

/** A directory whose stack another process has started, and which can be used as well. */
export const shared = Symbol("shared");

/**
 * Opens a directory's database for this process alone. The lock is LevelDB's own: the operating
 * system's lock on a file, which ends with the process that holds it, so nothing can go stale
 * and nobody has to delete it. `holder.json` names its holder.
 *
 * @param region - what the ARNs of a stack that is shared have to name; any will do where it is `undefined`
 * @returns {@link shared} where the holder shares such a stack.
 * @throws Error naming the directory and its holder where another process has it. One that is on its way in or out is waited
 * for, 5 seconds by default: it says so, or its parent is gone.
 */
export async function openExclusively<Opened>(
  directory: string,
  holder: DirectoryHolder,
  region: string | undefined,
  open: () => Promise<Opened>,
  patienceMs = 5000,
): Promise<Opened | typeof shared> {
  const deadline = Date.now() + patienceMs;
  for (;;) {
    try {
      const opened = await open();
      writeHolder(directory, holder);
      return opened;
    } catch (error) {
      if (!isLocked(error)) throw error;
      const other = readHolder(directory);
      if (isOfRegion(other?.shared, region) && other !== undefined && isAlive(other.pid))
        return shared;
      if (Date.now() >= deadline || (other !== undefined && isStaying(other)))
        throw inUse(directory, other, error);
      await delay(50);
    }
  }
}

/** Whether a stack is shared that a process with this region can use, which is any where it has none. */
export function isOfRegion(
  shared: SharedHolder | undefined,
  region: string | undefined,
): shared is SharedHolder {
  return shared !== undefined && (region === undefined || shared.region === region);
}

/** Whether nothing says that a holder lets go soon, or shares what it has. */
function isStaying({ pid, parentPid, shared, isStarting, isEnding }: DirectoryHolder): boolean {
  return (
    isStarting === undefined &&
    isEnding === undefined &&
    isAlive(pid) &&
    (shared !== undefined || isAlive(parentPid))
  );
}

/** Writes down who holds a directory. It appears with its whole content: others read it at any time. */
export function writeHolder(directory: string, holder: DirectoryHolder): void {
  const draft = join(directory, `holder.json.${process.pid}`);
  writeFileSync(draft, JSON.stringify(holder), { mode: 0o600 });
  renameSync(draft, join(directory, "holder.json"));
}

/** Whether a process with this id exists. */
export function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return systemCode(error) === "EPERM"; // it exists and is somebody else's
  }
}

function isLocked(error: unknown): boolean {
  return error instanceof Error && (systemCode(error) === "LEVEL_LOCKED" || isLocked(error.cause));
}

/** Who holds a directory, or has held it last. */
export function readHolder(directory: string): DirectoryHolder | undefined {
  try {
    const holder = JSON.parse(readFileSync(join(directory, "holder.json"), "utf8"));
    return Number.isInteger(holder.pid) && Number.isInteger(holder.parentPid) ? holder : undefined;
  } catch {
    return undefined; // not there yet
  }
}

/** Where the stack of a directory answers on 127.0.0.1; `undefined` where no process serves it. */
export function servedFrom(directory: string): Pick<SharedHolder, "port" | "region"> | undefined {
  const holder = readHolder(directory);
  return holder !== undefined && isAlive(holder.pid) ? holder.shared : undefined;
}

function inUse(directory: string, other: DirectoryHolder | undefined, cause: unknown): Error {
  const holder = other === undefined ? "another process" : nameOf(other);
  const ofRegion = other?.shared === undefined ? "" : `, or AWS_REGION=${other.shared.region}`;
  return new Error(
    `The data directory ${resolve(directory)} is in use by ${holder}: stop that one first, or give this one a directory of its own${ofRegion}`,
    { cause },
  );
}

function nameOf({ pid, parentPid, shared }: DirectoryHolder): string {
  return shared === undefined
    ? `process ${parentPid} (its store is process ${pid})`
    : `the embedded stack of ${shared.region} (process ${pid})`;
}
