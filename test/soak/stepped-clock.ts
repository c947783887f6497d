// Loaded into a process with `--import`: its dates follow the clock whose offset is in the file SOAK_CLOCK, in milliseconds.
import { readFileSync } from "node:fs";

const file = process.env["SOAK_CLOCK"];
const everyMs = 100;
let [offset, readMs] = [0, Number.NEGATIVE_INFINITY];

function offsetMs(): number {
  const nowMs = performance.now();
  if (file === undefined || nowMs - readMs < everyMs) return offset;
  readMs = nowMs;
  offset = Number(readFileSync(file, "utf8"));
  return offset;
}

const RealDate = Date;
class SteppedDate extends RealDate {
  constructor(...given: [] | [number | string | Date]) {
    if (given.length === 0) super(SteppedDate.now());
    // Safe: dates of several numbers take the same way.
    else super(...(given as [number]));
  }

  static override now(): number {
    return RealDate.now() + offsetMs();
  }
}
// Safe: only a call without `new` differs, and there are no such calls.
globalThis.Date = SteppedDate as DateConstructor;
