import { constants } from "node:fs";
import { type FileHandle, open, rm } from "node:fs/promises";

/**
 * Creates a file that only its owner may read, and replaces an existing file. Never writes through
 * a link: the target of a link, and a file that another user has prepared under this name, stay
 * unchanged.
 *
 * @throws Error if another process creates the file at the same time, or the existing one cannot be
 * removed.
 */
export async function createPrivateFile(path: string): Promise<FileHandle> {
  // An existing file would keep its permissions, and a process that already has it open could read
  // the new content.
  await rm(path, { force: true });
  return open(path, "wx", 0o600);
}

/** Mode bits that a file must not have, by the access that other users are allowed. */
const forbidden = { nothing: 0o077, read: 0o022 } as const;

/**
 * Opens a file created by {@link createPrivateFile}, to read and write.
 *
 * @param others - maximum access that other users may have: a copy of the file may have lost its
 * mode.
 * @throws Error if it is a link, belongs to another user, or gives other users more access.
 */
export async function openPrivateFile(
  path: string,
  others: keyof typeof forbidden,
): Promise<FileHandle> {
  const file = await open(path, constants.O_RDWR | noFollow).catch(
    (error: NodeJS.ErrnoException) => {
      throw error.code === "ELOOP"
        ? new Error(`${path} is a link; ${remedy}`, { cause: error })
        : error;
    },
  );
  try {
    const stats = await file.stat();
    if (!stats.isFile() || stats.nlink !== 1)
      throw new Error(`${path} is no file with one name alone; ${remedy}`);
    const isOurs =
      ownUser === undefined || (stats.uid === ownUser && (stats.mode & forbidden[others]) === 0);
    if (!isOurs) throw new Error(`${path} is not yours alone; ${remedy}`);
    return file;
  } catch (error) {
    await file.close();
    throw error;
  }
}

const remedy = "remove it and the state, and begin anew";

/* v8 ignore next -- Windows has no such flag, and few users there may create a link */
const noFollow = constants.O_NOFOLLOW ?? 0;
/** `undefined` on Windows, whose files have no mode. */
const ownUser = process.geteuid?.();
