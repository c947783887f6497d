import type { Clock } from "../../base/process/clock.ts";

/** Generates IDs, at the time that is given or else at that of its clock, in milliseconds since the epoch. */
export type RequestIds = (nowMs?: number) => string;

/** The ID of a request, and the length of what came in its place if that could not be taken. */
export interface AdoptedRequestId {
  readonly requestId: string;
  /** Present only where a header was refused: its length, the only thing to be logged of it. */
  readonly rejectedLength?: number;
}

/**
 * Adopts the value of `X-Request-ID` or generates an ID (specification 4.4). Accepted are 1 to 128
 * characters of `A-Z a-z 0-9 . _ : = + / @ -`; so neither an empty header nor several joined by `, `.
 */
export function adoptRequestId(
  header: string | undefined,
  generate: RequestIds,
  nowMs?: number,
): AdoptedRequestId {
  if (header === undefined) return { requestId: generate(nowMs) };
  if (header !== "" && header.length <= maxLength && !unaccepted.test(header))
    return { requestId: header };
  return { requestId: generate(nowMs), rejectedLength: header.length };
}

/** The form of an ID, of requests and of what keelson names itself, as a part of regular expressions and of documents. */
export const idForm = "[A-Za-z0-9._:=+/@-]{1,128}";
const maxLength = 128;
/** What is looked for is found in half the time that it takes to count what may be there. */
const unaccepted = /[^A-Za-z0-9._:=+/@-]/;

const poolBytes = 4096;
const idBytes = 10;

/**
 * Creates a generator of UUIDv7s. IDs of one millisecond are in order, as long as there are fewer than
 * some 2,000 of them. Random bytes are drawn 4 KiB at a time, since one draw an ID would cost more than the rest of it.
 */
export function createRequestIds(clock: Clock, fill = fillAtRandom): RequestIds {
  const pool = new Uint8Array(poolBytes);
  const view = new DataView(pool.buffer);
  let [offset, lastMs, counter, time] = [poolBytes, -1, 0, ""];

  return function nextRequestId(now = clock.now()) {
    if (offset + idBytes > poolBytes) {
      fill(pool);
      offset = 0;
    }
    if (now !== lastMs) {
      lastMs = now;
      time = timeDigits(now);
      // RFC 9562 6.2, method 1: a counter where the first random bits would be, starting in its lower half.
      counter = view.getUint16(offset) & 0x7ff;
    }
    view.setUint16(offset, counter);
    counter += 1;
    const id = layout(time, view, offset);
    offset += idBytes;
    return id;
  };
}

/** The global `crypto`, since an import of `node:crypto` costs 4 ms of a cold start and this 0.6 ms. */
function fillAtRandom(pool: Uint8Array<ArrayBuffer>): void {
  crypto.getRandomValues(pool);
}

/**
 * Makes a UUID of version 7 (RFC 9562 5.7).
 *
 * @param now milliseconds since the epoch
 * @param random gives that many random bytes
 */
export function uuidv7(now: number, random: (count: number) => Uint8Array): string {
  const bytes = random(idBytes);
  return layout(timeDigits(now), new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength), 0);
}

/** The 48 bits of time, as they stand in a UUID. */
function timeDigits(now: number): string {
  const digits = (Math.max(0, Math.floor(now)) % 2 ** 48).toString(16).padStart(12, "0");
  return `${digits.slice(0, 8)}-${digits.slice(8)}-`;
}

/** Puts ten bytes from `at` behind the time; four of their bits give way to the version and two to the variant. */
function layout(time: string, bytes: DataView, at: number): string {
  const hex = (index: number, keep = 0xff, set = 0) =>
    octets[(bytes.getUint8(at + index) & keep) | set];
  const last = `${hex(4)}${hex(5)}${hex(6)}${hex(7)}${hex(8)}${hex(9)}`;
  return `${time}${hex(0, 0x0f, 0x70)}${hex(1)}-${hex(2, 0x3f, 0x80)}${hex(3)}-${last}`;
}

const octets: readonly string[] = Object.freeze(
  Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, "0")),
);
