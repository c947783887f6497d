import { createWriteStream } from "node:fs";
import { type FileHandle, mkdtemp, open, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";

export type LogFiles = Awaited<ReturnType<typeof openLogFiles>>;

/** A collector can write a whole document in one line. */
const longestLine = 16_777_216;
const chunkBytes = 1_048_576;

/** Reads each file up to its size at the time of opening. The path `-` means standard input. */
export async function openLogFiles(paths: readonly string[], stdin?: Readable) {
  const files: LogFile[] = [];
  let spool: string | undefined;
  const close = async () => {
    for (const { file } of files) await file.close();
    if (spool !== undefined) await rm(spool, { recursive: true, force: true });
  };
  try {
    for (const path of paths) {
      let from = path;
      if (path === "-" && stdin !== undefined) {
        // Standard input is read several times, so it is copied to a file instead of memory.
        spool = await mkdtemp(join(tmpdir(), "keelson-trace-"));
        from = join(spool, "stdin");
        await pipeline(stdin, createWriteStream(from, { mode: 0o600 }));
      }
      const file = await open(from);
      files.push({ file, bytes: (await file.stat()).size });
    }
  } catch (error) {
    await close();
    throw error;
  }
  return {
    bytes: files.reduce((sum, { bytes }) => sum + bytes, 0),
    each: async (
      matches: (text: string) => boolean,
      take: (line: string) => void,
      show?: (bytes: number) => void,
    ) => {
      let done = 0;
      for (const file of files) {
        for await (const { text, at } of wholeLines(file)) {
          if (matches(text)) for (const line of text.split("\n")) if (matches(line)) take(line);
          show?.(done + at);
        }
        done += file.bytes;
      }
    },
    /** The first of a file's last lines can be incomplete. */
    lastLines: async () => (await Promise.all(files.map(endOf))).flat(),
    close,
  };
}

interface LogFile {
  readonly file: FileHandle;
  readonly bytes: number;
}

/** Each chunk ends after a whole line. */
async function* wholeLines({ file, bytes }: LogFile) {
  let rest = "";
  const decoder = new TextDecoder();
  for (let at = 0; at < bytes; ) {
    const chunk = Buffer.allocUnsafe(Math.min(chunkBytes, bytes - at));
    const { bytesRead, buffer } = await file.read(chunk, { position: at });
    if (bytesRead === 0) break;
    at += bytesRead;
    const text = rest + decoder.decode(buffer.subarray(0, bytesRead), { stream: true });
    const end = at >= bytes ? text.length : text.lastIndexOf("\n") + 1;
    rest = text.slice(end);
    if (rest.length > longestLine) rest = "";
    yield { text: text.slice(0, end), at };
  }
}

async function endOf({ file, bytes }: LogFile): Promise<readonly string[]> {
  const end = Buffer.allocUnsafe(Math.min(bytes, 65_536));
  const { buffer, bytesRead } = await file.read(end, { position: bytes - end.length });
  return buffer.toString("utf8", 0, bytesRead).split("\n").slice(-100);
}
