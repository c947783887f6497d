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
import { systemCode } from "../../base/errors/errors.ts";

interface DirectoryHolder {
  readonly pid: number;
  /** Process that started the holder, which users know. */
  readonly parentPid: number;
  readonly shared?: SharedHolder;
  /** The holder has yet to share its stack. */
  readonly isStarting?: true;
  /** The holder is about to release the directory. */
  readonly isEnding?: true;
}

interface SharedHolder {
  readonly port: number;
  /** Proves that a client can read the directory. */
  readonly key: string;
  readonly region: string;
}

/**
 * Creates a directory that only its owner can read and that git ignores, or restricts an existing
 * one. @throws Error if it or a file in it belongs to another user, or if others can read it and it
 * holds files, but none of keelson's.
 */
export function createDataDirectory(directory: string) {
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  closeToOthers(directory);
  try {
    writeFileSync(join(directory, ".gitignore"), "*\n", { flag: "wx" });
  } catch (error) {
    if (systemCode(error) !== "EEXIST") throw error;
  }
}

function closeToOthers(directory: string) {
  const { uid, mode } = statSync(directory);
  const self = process.getuid?.();
  if (self === undefined) return; // Windows has no user IDs and modes
  const refuse = (why: string) =>
    new Error(
      `The data directory ${resolve(directory)} ${why}: it keeps secrets; name another by KEELSON_DIRECTORY`,
    );
  if (uid !== self) throw refuse("belongs to another user");
  if ((mode & 0o077) !== 0) {
    const names = readdirSync(directory);
    if (names.length > 0 && !names.some((name) => ownNames.includes(name))) {
      const shown = (mode & 0o777).toString(8);
      throw refuse(`can be read by others (mode ${shown}) and holds other files`);
    }
    chmodSync(directory, 0o700);
  }
  // A planted secret would be known. Checked last, when no one else can add a file.
  const isForeign = (name: string) => {
    // Processes that share the directory remove their drafts at any time.
    const file = lstatSync(join(directory, name), { throwIfNoEntry: false });
    return file !== undefined && file.uid !== self;
  };
  const foreign = readdirSync(directory).find(isForeign);
  if (foreign !== undefined) throw refuse(`holds ${JSON.stringify(foreign)} of another user`);
}

const ownNames = ["development-secret", "holder.json"];

/** Result of {@link openExclusively} if another process shares its stack. */
export const shared = Symbol("shared");

/**
 * Opens a database exclusively, by LevelDB's lock, which ends with its process, unless the holder
 * shares a stack of `region`; `undefined` is any region. Waits up to `patienceMs` for a holder that
 * starts, ends or has lost its parent. @throws Error that names the holder.
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
      if (other !== undefined && sharedOf(other, region) && isAlive(other.pid)) return shared;
      if (Date.now() >= deadline || (other !== undefined && isStaying(other)))
        throw inUse(directory, other, error);
      await delay(50);
    }
  }
}

/** Also `undefined` if the stack is of another region; `undefined` stands for any. */
export function sharedOf(holder: DirectoryHolder | undefined, region: string | undefined) {
  const stack = holder?.shared;
  return region === undefined || stack?.region === region ? stack : undefined;
}

function isStaying({ pid, parentPid, shared, isStarting, isEnding }: DirectoryHolder) {
  return !isStarting && !isEnding && isAlive(pid) && (shared !== undefined || isAlive(parentPid));
}

/** Atomic, because other processes read the file at any time. */
export function writeHolder(directory: string, holder: DirectoryHolder) {
  const draft = join(directory, `holder.json.${process.pid}`);
  writeFileSync(draft, JSON.stringify(holder), { mode: 0o600 });
  renameSync(draft, join(directory, "holder.json"));
}

export function isAlive(pid: number) {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return systemCode(error) === "EPERM"; // the process exists and belongs to another user
  }
}

function isLocked(error: unknown): boolean {
  return error instanceof Error && (systemCode(error) === "LEVEL_LOCKED" || isLocked(error.cause));
}

export function readHolder(directory: string): DirectoryHolder | undefined {
  try {
    const holder = JSON.parse(readFileSync(join(directory, "holder.json"), "utf8"));
    return Number.isInteger(holder.pid) && Number.isInteger(holder.parentPid) ? holder : undefined;
  } catch {
    return undefined;
  }
}

export function servedFrom(directory: string): SharedHolder | undefined {
  const holder = readHolder(directory);
  return holder !== undefined && isAlive(holder.pid) ? holder.shared : undefined;
}

export function readIfPresent(path: string) {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    if (systemCode(error) === "ENOENT") return undefined;
    throw error;
  }
}

function inUse(directory: string, other: DirectoryHolder | undefined, cause: unknown) {
  const holder = other === undefined ? "another process" : nameOf(other);
  const ofRegion = other?.shared === undefined ? "" : `, or AWS_REGION=${other.shared.region}`;
  return new Error(
    `The data directory ${resolve(directory)} is in use by ${holder}: stop that one first, or use another directory for this one${ofRegion}`,
    { cause },
  );
}

function nameOf({ pid, parentPid, shared }: DirectoryHolder) {
  return shared === undefined
    ? `process ${parentPid} (its store is process ${pid})`
    : `the embedded stack of ${shared.region} (process ${pid})`;
}
