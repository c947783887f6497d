import {
  appendFileSync,
  closeSync,
  ftruncateSync,
  openSync,
  renameSync,
  writeFileSync,
} from "node:fs";
import { readIfPresent } from "./data-directory.ts";

/** A file is compacted if it exceeds this size and four times its last compacted size. */
const smallestCompactionBytes = 4 * 1024 * 1024;

type Change<Value> = readonly [key: string, value?: Value];

interface Journal<Value> {
  /** Values at opening, in the order of their first changes. */
  readonly opened: readonly Value[];
  put(key: string, value: Value): void;
  delete(key: string): void;
  flush(): void;
  close(): void;
}

/**
 * Opens a file of JSON lines, one for each flush. Flushed changes survive a killed process; an
 * incomplete last line is ignored. A flush that fails leaves its changes to the next one.
 * @throws Error if the file is corrupt.
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
      append(file, line, bytes);
      pending = [];
      bytes += Buffer.byteLength(line);
      if (bytes <= Math.max(compactionBytes, 4 * compactedBytes)) return;
      closeSync(file); // Windows does not replace an open file
      file = undefined;
      try {
        bytes = compactedBytes = compact(path, live);
      } finally {
        file = openSync(path, "a");
      }
    },
    close() {
      if (file !== undefined) closeSync(file);
      file = undefined;
    },
  };
}

/** Leaves no half line on a full disk: with more after it, the file would be corrupt. */
function append(file: number, line: string, bytesBefore: number) {
  try {
    appendFileSync(file, line);
  } catch (error) {
    ftruncateSync(file, bytesBefore);
    throw error;
  }
}

function replay<Value>(path: string): Map<string, Value> {
  const live = new Map<string, Value>();
  const lines = (readIfPresent(path) ?? "").split("\n");
  lines.pop(); // empty, or incomplete because the process was killed
  for (const [index, line] of lines.entries()) {
    for (const [key, value] of changesOf<Value>(line, `${path}:${index + 1}`)) {
      if (value === undefined) live.delete(key);
      else live.set(key, value);
    }
  }
  return live;
}

function changesOf<Value>(line: string, place: string): readonly Change<Value>[] {
  let cause: unknown;
  try {
    const changes: unknown = JSON.parse(line);
    if (
      Array.isArray(changes) &&
      changes.every((change) => Array.isArray(change) && typeof change[0] === "string")
    ) {
      return changes as Change<Value>[]; // only this module writes the file
    }
  } catch (error) {
    cause = error;
  }
  throw new Error(
    `${place} was not written by the embedded stack; delete the file to start with an empty one`,
    { cause },
  );
}

function compact<Value>(path: string, live: ReadonlyMap<string, Value>) {
  const text = Array.from(live, (change) => lineOf([change])).join("");
  writeFileSync(`${path}.draft`, text, { mode: 0o600 });
  renameSync(`${path}.draft`, path);
  return Buffer.byteLength(text);
}

function lineOf<Value>(changes: readonly Change<Value>[]) {
  return `${JSON.stringify(changes)}\n`;
}
