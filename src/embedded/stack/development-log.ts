import { appendFileSync, renameSync, statSync } from "node:fs";
import { join } from "node:path";
import { systemCode } from "../../base/errors/errors.ts";
import type { Variables } from "../../base/process/environment.ts";
import { createDataDirectory } from "../service/data-directory.ts";
import { refuseInProduction } from "../service/development-secret.ts";

const [fileBytes, waitingCharacters] = [4_194_304, 262_144];
const delayMs = 50;

export function developmentLogFiles(directory: string): readonly [before: string, current: string] {
  const current = join(directory, "log.jsonl");
  return [`${current}.1`, current];
}

/**
 * Writes JSON lines to `<directory>/log.jsonl`, which replaces `log.jsonl.1` at 4 MiB.
 * @throws Error in production, in Lambda, and if the directory is not usable.
 */
export function openDevelopmentLog(
  directory: string,
  env: Variables,
  limitBytes: number = fileBytes,
) {
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
      // Opened for each write, because another process may have rotated the file.
      appendFileSync(current, text, { mode: 0o600 });
      if (statSync(current).size >= limitBytes) renameSync(current, before);
    } catch (error) {
      // `ENOENT`: another process has rotated the file. A full disk must not stop the server.
      isOpen = systemCode(error) === "ENOENT";
    }
  };
  return {
    /** Never throws. */
    keep: (record: string): void => {
      if (!isOpen) return;
      waiting += `${record}\n`;
      if (waiting.length >= waitingCharacters) flush();
      else if (timer === undefined) {
        timer = setTimeout(flush, delayMs).unref();
        process.once("exit", flush); // writes the last records of a process that exits earlier
      }
    },
    close: () => {
      flush();
      isOpen = false;
    },
  };
}
