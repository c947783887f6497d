import { writeSync } from "node:fs";

/**
 * Writes a line to stdout, and returns when the system has it: it is out before Lambda freezes the process
 * or `process.exit` ends it. Where the reader of a pipe is slow it waits, as a blocking write does; where there
 * is no reader any more the line is lost and nothing else. Never throws.
 */
export function writeToStandardOutput(line: string): void {
  const text = `${line}\n`;
  try {
    // Somebody listens in: a test, or a collector that put its own function in this place.
    /* v8 ignore else -- tested in processes of its own, which coverage does not follow */
    if (Object.hasOwn(process.stdout, "write")) process.stdout.write(text);
    else writeAll(text, writeSync);
  } catch {
    // Nobody reads (EPIPE), or stdout is closed (EBADF). There is no other place to say so.
  }
}

const standardOutput = 1;

/** Writes to a descriptor and gives how many bytes it took. */
interface WriteSync {
  (descriptor: number, text: string): number;
  (descriptor: number, bytes: Uint8Array): number;
}

/**
 * Writes all of the text to stdout, in as many pieces as it takes.
 *
 * @throws what `write` throws, unless the pipe is full: then it waits a millisecond and goes on
 */
export function writeAll(text: string, write: WriteSync): void {
  const length = Buffer.byteLength(text);
  let written = 0;
  while (written < length) {
    try {
      // As a string it needs no copy, and nearly always the first write takes it all.
      written += written === 0 ? write(standardOutput, text) : write(standardOutput, Buffer.from(text).subarray(written));
    } catch (error) {
      // A pipe is non-blocking where somebody, Node among them, made it so.
      if (!(error instanceof Error && "code" in error && error.code === "EAGAIN")) throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1);
    }
  }
}
