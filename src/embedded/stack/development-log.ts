import { appendFileSync, renameSync, statSync } from "node:fs";
import { join } from "node:path";
import type { Variables } from "../../base/process/environment.ts";
import { createDataDirectory } from "../service/data-directory.ts";
import { refuseInProduction } from "../service/refusal.ts";

/** The log records of a process in development, kept for `keelson trace`. */
export interface DevelopmentLog {
  /** Takes a record, which is written within {@link delayMs}. Never throws. */
  readonly keep: (record: string) => void;
  /** Writes what was taken, and takes nothing more. */
  close(): void;
}

/** How large a file may become, and there are two; how much waits to be written. */
const [fileBytes, waitingCharacters] = [4_194_304, 262_144];
/** Records are written together: a request waits for none of them. */
const delayMs = 50;

/** The files of a data directory, the older first. */
export function developmentLogFiles(directory: string): readonly [before: string, current: string] {
  const current = join(directory, "log.jsonl");
  return [`${current}.1`, current];
}

/**
 * Keeps log records in `<directory>/log.jsonl`, as JSON lines. At 4 MiB it becomes `log.jsonl.1`, in place of the one before.
 *
 * @throws Error in production and in Lambda, and where the directory cannot be used.
 */
export function openDevelopmentLog(
  directory: string,
  env: Variables,
  limitBytes: number = fileBytes,
): DevelopmentLog {
  refuseInProduction("The development log", env);
  createDataDirectory(directory);
  const [before, current] = developmentLogFiles(directory);
  let waiting = "";
  let timer: NodeJS.Timeout | undefined;
  let isOpen = true;
  const flush = () => {
    clearTimeout(timer);
    process.off("exit", flush);
    timer = undefined;
    const text = waiting;
    waiting = "";
    if (text === "") return;
    try {
      // Opened anew: another process on the directory may have begun a file.
      appendFileSync(current, text, { mode: 0o600 });
      if (statSync(current).size >= limitBytes) renameSync(current, before);
    } catch {
      isOpen = false; // a full disk is no reason to stop serving
    }
  };
  return {
    keep: (record) => {
      if (!isOpen) return;
      waiting += `${record}\n`;
      if (waiting.length >= waitingCharacters) return flush();
      if (timer !== undefined) return;
      timer = setTimeout(flush, delayMs).unref();
      process.once("exit", flush); // a process that ends before has its last lines, too
    },
    close: () => {
      flush();
      isOpen = false;
    },
  };
}
