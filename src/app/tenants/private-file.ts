import { constants } from "node:fs";
import { type FileHandle, open, rm } from "node:fs/promises";

/**
 * Creates a file that only its owner may read, in the place of one that is there. Never writes through a link: what a link leads to,
 * and what another has prepared under the name, stays as it is.
 *
 * @throws Error where somebody else creates one at the same time, or the one that is there cannot be removed.
 */
export async function createPrivateFile(path: string): Promise<FileHandle> {
  // Its rights stay those that it was created with, and whoever has it open already goes on reading it.
  await rm(path, { force: true });
  return open(path, "wx", 0o600);
}

/** What others may do with a file, as bits of its mode that must not be there. */
const forbidden = { nothing: 0o077, read: 0o022 } as const;

/**
 * Opens a file that {@link createPrivateFile} has created, to read and write.
 *
 * @param others - what they may do with it at the most: a copy may have lost its mode.
 * @throws Error where it is none: a link, a file of somebody else's, or one that others may do more with.
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

/* v8 ignore next -- Windows has no such flag, and creating a link there takes rights that few have */
const noFollow = constants.O_NOFOLLOW ?? 0;
/** `undefined` on Windows, whose files have no mode. */
const ownUser = process.geteuid?.();
