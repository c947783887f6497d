import { promisify } from "node:util";

/** What came of a write, as its caller gets it. */
export interface Answer {
  readonly status: number;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  /** Values of `set-cookie`; an answer that has them is not stored. */
  readonly cookies: readonly string[];
  readonly body: string | Uint8Array | undefined;
  /** What was asked for was done, though the status says otherwise: there is no answer that could say so. */
  readonly isDone?: boolean;
}

/** Whether an answer says that nothing was done, so that a repeat has to try. */
export function saysNotDone({ status, isDone = false }: Answer): boolean {
  return status >= 400 && !isDone;
}

/** Headers that a repeat gets too, beside those a write declares; all others are made anew. */
const replayedHeaders: readonly string[] = Object.freeze(["content-type", "location", "etag", "link", "cache-control"]);

/** The answer as a repeat gets it: status, body, and the headers that are part of what was answered. */
export function replayOf({ status, headers, body }: Answer, declared: readonly string[]): Answer {
  const kept: Record<string, string> = {};
  for (const name of Object.keys(headers)) {
    // Safe: it is one of the names.
    if (replayedHeaders.includes(name) || declared.includes(name)) kept[name] = headers[name] as string;
  }
  return { status, headers: kept, cookies: [], body };
}

/** What the first byte of a stored answer says of the rest. */
const [plain, gzipped] = [0, 1];
/** Below this size compressing gains nothing. */
const compressFrom = 1_024;

/** Writes an answer as bytes, compressed where it is large. */
export async function encodeAnswer({ status, headers, body }: Answer): Promise<Uint8Array> {
  const isText = typeof body === "string" || body === undefined;
  const stored = isText ? { status, headers, body } : { status, headers, bytes: Buffer.from(body).toString("base64") };
  const text = JSON.stringify(stored);
  if (text.length < compressFrom) return Buffer.from(String.fromCharCode(plain) + text);
  const { gzip } = await import("node:zlib");
  return Buffer.concat([Buffer.of(gzipped), await promisify(gzip)(text, { level: 1 })]);
}

/** @throws Error where the bytes are no stored answer. */
export async function decodeAnswer(data: Uint8Array): Promise<Answer> {
  let text = data.subarray(1);
  if (data[0] === gzipped) {
    const { gunzip } = await import("node:zlib");
    text = await promisify(gunzip)(text);
  }
  // Safe: only `encodeAnswer` writes what is read here, in a record that only its owner completes.
  const stored = JSON.parse(Buffer.from(text).toString("utf8")) as Omit<Answer, "cookies"> & { readonly bytes?: string };
  const { status, headers, body, bytes } = stored;
  return { status, headers, cookies: [], body: bytes === undefined ? body : Buffer.from(bytes, "base64") };
}
