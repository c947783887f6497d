// The kept data of a version, as small JSON: long strings and bytes are compressed.
import { readFileSync } from "node:fs";
import {
  brotliCompressSync,
  brotliDecompressSync,
  constants,
  gunzipSync,
  gzipSync,
} from "node:zlib";

/** Reads a file that `record.ts` has written. */
export function keptJson<Kept>(path: string): Kept {
  return unpacked(readFileSync(path, "utf8")) as Kept; // each file has one shape, which its name tells
}

/** From this length on, strings and bytes are compressed. */
const longFrom = 1_500;

/** A long value in the JSON. */
type Packed =
  | { readonly $bytes: string }
  | { readonly $text: string }
  | { readonly $slice: readonly [blob: number, from: number, to: number] };

/** Long bytes, of one value or of several that go on in each other. */
interface Blob {
  /** What stands before what was compressed by the version that is kept. Absent: nothing was. */
  readonly prefix?: string;
  /** Its length, uncompressed. */
  readonly length: number;
}

interface Document {
  readonly value: unknown;
  readonly blobs: readonly Blob[];
  /** All of them, uncompressed and one after the other, compressed, because they are similar. */
  readonly bytes: string;
}

/** An answer's parts are so long, but for the last. */
const partLength = 350_000;

/** Writes a value, bytes among it, as JSON. */
export function packed(value: unknown): string {
  const runs: Uint8Array[][] = [[]];
  const walk = (part: unknown): unknown => {
    if (typeof part === "string")
      return part.length < longFrom ? part : { $text: compressed(Buffer.from(part)) };
    if (part instanceof Uint8Array) {
      if (part.byteLength < longFrom) return { $bytes: Buffer.from(part).toString("base64") };
      const run = runs.at(-1) as Uint8Array[]; // safe: the list starts with one
      const from = run.reduce((sum, { byteLength }) => sum + byteLength, 0);
      run.push(part);
      const slice = { $slice: [runs.length - 1, from, from + part.byteLength] };
      if (part.byteLength !== partLength) runs.push([]);
      return slice;
    }
    if (typeof part !== "object" || part === null) return part;
    if (Array.isArray(part)) return part.map(walk);
    return Object.fromEntries(Object.entries(part).map(([name, member]) => [name, walk(member)]));
  };
  const walked = walk(value);
  const all = runs.map((run) => uncompressed(Buffer.concat(run)));
  const blobs = all.map(({ prefix, bytes }) => ({
    ...(prefix === undefined ? {} : { prefix }),
    length: bytes.byteLength,
  }));
  const bytes = compressed(Buffer.concat(all.map((blob) => blob.bytes)));
  return `${JSON.stringify({ value: walked, blobs, bytes } satisfies Document)}\n`;
}

/** Reads what {@link packed} has written. */
function unpacked(text: string): unknown {
  const { value, blobs, bytes } = JSON.parse(text) as Document; // `packed` has written it
  const all = decompressed(bytes);
  let from = 0;
  const whole = blobs.map(({ prefix, length }) => {
    from += length;
    const blob = all.subarray(from - length, from);
    return prefix === undefined
      ? blob
      : Buffer.concat([Buffer.from(prefix, "base64"), gzipSync(blob, { level: 1 })]);
  });
  const walk = (part: unknown): unknown => {
    if (typeof part !== "object" || part === null) return part;
    if (Array.isArray(part)) return part.map(walk);
    const known = part as Packed; // safe to ask: nothing else that is kept has such names
    if ("$bytes" in known) return Buffer.from(known.$bytes, "base64");
    if ("$text" in known) return decompressed(known.$text).toString();
    if ("$slice" in known)
      return whole[known.$slice[0]]?.subarray(known.$slice[1], known.$slice[2]);
    return Object.fromEntries(Object.entries(part).map(([name, member]) => [name, walk(member)]));
  };
  return walk(value);
}

/** Bytes before a version has compressed them, where compressing them again gives the very same: that is far less to keep. */
function uncompressed(bytes: Buffer): { readonly bytes: Buffer; readonly prefix?: string } {
  const start = bytes.indexOf(Buffer.of(0x1f, 0x8b));
  if (start !== 0 && start !== 1) return { bytes };
  const text = gunzipSync(bytes.subarray(start));
  if (!gzipSync(text, { level: 1 }).equals(bytes.subarray(start))) return { bytes };
  return { bytes: text, prefix: bytes.subarray(0, start).toString("base64") };
}

function compressed(bytes: Buffer): string {
  return brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_LGWIN]: 22 } }).toString(
    "base64",
  );
}

function decompressed(text: string): Buffer {
  return brotliDecompressSync(Buffer.from(text, "base64"));
}
