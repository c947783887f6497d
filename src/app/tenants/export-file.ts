import { lstat, rename } from "node:fs/promises";
import { createPrivateFile, openPrivateFile } from "./private-file.ts";

/**
 * Opens the file `<path>.part`, which only its owner may read. `finish` renames it to `path`.
 * @param bytes - number of bytes to keep of an interrupted export. Default: creates a new file.
 * @throws Error if the file has fewer bytes, or other users may read or write it.
 */
export async function openExportFile(path: string, bytes?: number) {
  const part = `${path}.part`;
  const file =
    bytes === undefined ? await createPrivateFile(part) : await openPrivateFile(part, "nothing");
  const { ino, size } = await file.stat();
  let written = bytes ?? 0;
  if (size < written) {
    await file.close();
    throw new Error(
      `${part} has less than the ${written} bytes that were written; remove the state, and begin anew`,
    );
  }
  await file.truncate(written);
  return {
    get bytes() {
      return written;
    },
    write: async (text: string) => {
      const bytes = Buffer.from(text);
      for (let from = 0; from < bytes.length; ) {
        const { bytesWritten } = await file.write(bytes, from, bytes.length - from, written);
        from += bytesWritten;
        written += bytesWritten;
      }
    },
    /**
     * Renames the complete file to `path`. @throws Error if another export of this name has begun.
     */
    finish: async () => {
      await file.datasync();
      await file.close();
      if ((await lstat(part)).ino !== ino)
        throw new Error(`${part} is another file by now: another export has begun`);
      await rename(part, path);
    },
    /** Closes the incomplete file, so that a later export can continue it. */
    close: () => file.close(),
  };
}
