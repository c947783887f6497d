import {
  appendFileSync,
  closeSync,
  openSync,
  readFileSync,
  renameSync,
  writeFileSync,
} from "node:fs";
import { systemCode } from "../../base/errors/system-code.ts";

/** A file is not rewritten before it is this large. */
const smallestCompactionBytes = 4 * 1024 * 1024;
/** Nor before it is this many times what was live in it when it was rewritten last. */
const growth = 4;

/** A key with its newest value; without one, the key is gone. */
type Change<Value> = readonly [key: string, value?: Value];

/** Values by key that outlive the process, kept as a list of changes. */
export interface Journal<Value> {
  /** What was live when the journal was opened, in the order of the first changes. */
  readonly opened: readonly Value[];
  /** Takes a change, which is kept with the next {@link Journal.flush}. */
  put(key: string, value: Value): void;
  delete(key: string): void;
  /** Writes the changes since the last time, all or none of them. */
  flush(): void;
  close(): void;
}

/**
 * Opens a journal: a file of JSON lines, one a flush. What a process wrote is there when it has been
 * killed, as the operating system has it; a line that it was killed in counts as not written. Without
 * a path nothing is kept.
 *
 * @throws Error where the file is not what was written.
 */
export function openJournal<Value>(
  path?: string,
  compactionBytes: number = smallestCompactionBytes,
): Journal<Value> {
  if (path === undefined) return { opened: [], put() {}, delete() {}, flush() {}, close() {} };
  const live = replay<Value>(path);
  let pending: Change<Value>[] = [];
  let compactedBytes = compact(path, live);
  let bytes = compactedBytes;
  let file: number | undefined = openSync(path, "a");
  return {
    opened: [...live.values()],
    put(key, value) {
      live.set(key, value);
      pending.push([key, value]);
    },
    delete(key) {
      if (live.delete(key)) pending.push([key]);
    },
    flush() {
      if (pending.length === 0) return;
      if (file === undefined) throw new Error(`${path} is closed`);
      const line = lineOf(pending);
      pending = [];
      appendFileSync(file, line);
      bytes += Buffer.byteLength(line);
      if (bytes <= Math.max(compactionBytes, growth * compactedBytes)) return;
      closeSync(file);
      bytes = compactedBytes = compact(path, live);
      file = openSync(path, "a");
    },
    close() {
      if (file !== undefined) closeSync(file);
      file = undefined;
    },
  };
}

function replay<Value>(path: string): Map<string, Value> {
  const live = new Map<string, Value>();
  const lines = read(path).split("\n");
  lines.pop(); // nothing, or what the process was killed in
  for (const [index, line] of lines.entries()) {
    for (const [key, value] of changesOf<Value>(line, `${path}:${index + 1}`)) {
      if (value === undefined) live.delete(key);
      else live.set(key, value);
    }
  }
  return live;
}

function read(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    if (systemCode(error) === "ENOENT") return "";
    throw error;
  }
}

function changesOf<Value>(line: string, place: string): readonly Change<Value>[] {
  let cause: unknown;
  try {
    const changes: unknown = JSON.parse(line);
    if (
      Array.isArray(changes) &&
      changes.every((change) => Array.isArray(change) && typeof change[0] === "string")
    ) {
      return changes as Change<Value>[]; // this module alone writes the file
    }
  } catch (error) {
    cause = error;
  }
  throw new Error(
    `${place} is not what the embedded stack wrote; delete the file to begin with nothing in it`,
    { cause },
  );
}

/** Replaces the file by what is live, and says how large it is. */
function compact<Value>(path: string, live: ReadonlyMap<string, Value>): number {
  const text = Array.from(live, (change) => lineOf([change])).join("");
  writeFileSync(`${path}.draft`, text, { mode: 0o600 });
  renameSync(`${path}.draft`, path);
  return Buffer.byteLength(text);
}

function lineOf<Value>(changes: readonly Change<Value>[]): string {
  return `${JSON.stringify(changes)}\n`;
}
