import { lstat, rename } from "node:fs/promises";
import { createPrivateFile, openPrivateFile } from "./private-file.ts";

/** A file that gets its name once it is whole. */
export interface ExportFile {
  /** How many bytes are written. */
  readonly bytes: number;
  write(text: string): Promise<void>;
  /** Gives it its name. @throws Error where another export has begun under it meanwhile. */
  finish(): Promise<void>;
  /** Closes it as it is: a later one may go on with it. */
  close(): Promise<void>;
}

/**
 * Opens `<path>.part`, which becomes `path`. Only its owner may read it.
 *
 * @param bytes - how much of one that was cut stays; `undefined` for a new one.
 * @throws Error where less is there, or others may read or write it.
 */
export async function openExportFile(path: string, bytes?: number): Promise<ExportFile> {
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
    write: async (text) => {
      const bytes = Buffer.from(text);
      for (let from = 0; from < bytes.length; ) {
        const { bytesWritten } = await file.write(bytes, from, bytes.length - from, written);
        from += bytesWritten;
        written += bytesWritten;
      }
    },
    finish: async () => {
      await file.datasync();
      await file.close();
      if ((await lstat(part)).ino !== ino)
        throw new Error(`${part} is another file by now: another export has begun`);
      await rename(part, path);
    },
    close: () => file.close(),
  };
}
