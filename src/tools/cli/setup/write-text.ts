import { mkdir, writeFile } from "node:fs/promises";
import { dirname, resolve } from "node:path";

/** @throws Error naming the file and the reason. */
export async function writeText(file: string, text: string): Promise<void> {
  try {
    await mkdir(dirname(resolve(file)), { recursive: true });
    await writeFile(file, text);
  } catch (error) {
    // Safe cast: the file system only throws errors.
    const { code = "", message } = error as NodeJS.ErrnoException;
    throw new Error(`${JSON.stringify(file)} cannot be written: ${reasons[code] ?? message}`, {
      cause: error,
    });
  }
}

const reasons: Readonly<Record<string, string>> = {
  EISDIR: "it is a directory; name a file in it",
  EEXIST: "what should be its directory is a file",
  ENOTDIR: "what should be its directory is a file",
  EACCES: "you have no right to",
  EROFS: "the file system is read-only",
};
