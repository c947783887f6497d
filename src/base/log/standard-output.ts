import { writeSync } from "node:fs";
import { systemCode } from "../errors/system-code.ts";

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

/** Writes part of the bytes to a descriptor and gives how many it took. */
type WriteSync = (descriptor: number, bytes: Uint8Array, offset: number, length: number) => number;

/** For lines that fit: faster than `writeSync` of a string, whose length in bytes has to be known first. No line outlasts its call. */
const scratch = Buffer.allocUnsafeSlow(16_384);
const encoder = new TextEncoder();

/**
 * Writes all of the text to stdout, in as many pieces as it takes.
 *
 * @throws what `write` throws, unless the pipe is full: then it waits a millisecond and goes on
 */
export function writeAll(text: string, write: WriteSync): void {
  const fits = text.length * 3 <= scratch.byteLength; // no UTF-16 unit takes more bytes than three
  const bytes = fits ? scratch : Buffer.from(text);
  const length = fits ? encoder.encodeInto(text, scratch).written : bytes.byteLength;
  let written = 0;
  while (written < length) {
    try {
      written += write(standardOutput, bytes, written, length - written);
    } catch (error) {
      // A pipe is non-blocking where somebody, Node among them, made it so.
      if (systemCode(error) !== "EAGAIN") throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1);
    }
  }
}
