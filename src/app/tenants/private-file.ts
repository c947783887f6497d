import { constants } from "node:fs";
import { type FileHandle, open, rm } from "node:fs/promises";

/**
 * Creates or replaces a file that only its owner may read. Never writes through a link, or into a
 * file that another user has prepared under this name.
 * @throws Error if another process creates it at the same time, or the existing one cannot be
 * removed.
 */
export async function createPrivateFile(path: string): Promise<FileHandle> {
  // An existing file would keep its permissions and its readers.
  await rm(path, { force: true });
  return open(path, "wx", 0o600);
}

/** Forbidden mode bits, by the access that other users may have. */
const forbidden = { nothing: 0o077, read: 0o022 } as const;

/**
 * Opens a file of {@link createPrivateFile} to read and write.
 * @param others - access that other users may have. `read` allows a copied file, which may have
 * lost its mode.
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
/** ID of the process's user. `undefined` on Windows, whose files have no mode. */
const ownUser = process.geteuid?.();
