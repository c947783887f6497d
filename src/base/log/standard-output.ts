import { writeSync } from "node:fs";
import { systemCode } from "../errors/system-code.ts";

/**
 * Writes a line to stdout and returns once the operating system has it, before Lambda freezes the
 * process or `process.exit` ends it. Blocks while the reader of a pipe is slow. If the pipe has no
 * reader left, loses only the line. Never throws.
 */
export function writeToStandardOutput(line: string): void {
  const text = `${line}\n`;
  try {
    // A test or a log collector has replaced the function.
    /* v8 ignore else -- tested in separate processes, which coverage does not follow */
    if (Object.hasOwn(process.stdout, "write")) process.stdout.write(text);
    else writeAll(text, writeSync);
  } catch {
    // The pipe has no reader left (EPIPE) or stdout is closed (EBADF). There is no other place to
    // report it.
  }
}

const standardOutput = 1;

/** Writes part of the bytes to a descriptor and returns the number of bytes written. */
type WriteSync = (descriptor: number, bytes: Uint8Array, offset: number, length: number) => number;

/**
 * Buffer for lines that fit. Faster than `writeSync` of a string, which must first compute the
 * length in bytes. A line stays in it only during its call.
 */
const scratch = Buffer.allocUnsafeSlow(16_384);
const encoder = new TextEncoder();

/**
 * Writes all of the text to stdout, in as many pieces as needed. If the pipe is full, waits a
 * millisecond and continues.
 *
 * @throws Any other error of `write`.
 */
export function writeAll(text: string, write: WriteSync): void {
  const fits = text.length * 3 <= scratch.byteLength; // a UTF-16 code unit takes at most three bytes
  const bytes = fits ? scratch : Buffer.from(text);
  const length = fits ? encoder.encodeInto(text, scratch).written : bytes.byteLength;
  let written = 0;
  while (written < length) {
    try {
      written += write(standardOutput, bytes, written, length - written);
    } catch (error) {
      // Node or another process may have made the pipe non-blocking.
      if (systemCode(error) !== "EAGAIN") throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1);
    }
  }
}
