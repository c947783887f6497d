import { createWriteStream } from "node:fs";
import { type FileHandle, mkdtemp, open, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { idForm } from "../../../base/request/trace.ts";
import { type LogRecord, recordsOf, type TraceLine, traceLine } from "./log-records.ts";

/** 200,000 lines take some 200 MB. */
const [mostLines, mostRequests] = [200_000, 10_000];
const few = 16;

export async function openLogs(paths: readonly string[], stdin?: Readable, most = mostLines) {
  const files = await openLogFiles(paths, stdin);
  return {
    find: (id: string, show?: (text: string) => void) => findLines(files, id, most, show),
    lastRequest: () => lastRequest(files),
    close: files.close,
  };
}

async function findLines(files: LogFiles, id: string, most: number, show?: (text: string) => void) {
  const found = new Map<string, TraceLine>();
  // Lines that mention the ID but cannot be parsed, and matching lines beyond the limit.
  let [broken, leftOut] = [0, 0];
  const mostMb = Math.ceil(files.bytes / 1_000_000);
  const showing = (pass: number) => (bytes: number) =>
    show?.(`pass ${pass} of 3: ${Math.floor(bytes / 1_000_000)} of ${mostMb} MB of logs`);
  const pass = async (
    number: number,
    texts: ReadonlySet<string>,
    belongs: (line: TraceLine) => boolean,
  ) => {
    if (texts.size === 0) return;
    let missed = 0;
    const take = (text: string) => {
      const { records, isBroken } = recordsOf(text);
      if (isBroken && number === 1) broken += 1;
      for (const line of linesOf(records)) {
        if (!belongs(line)) continue;
        const key = JSON.stringify(line);
        if (found.size < most || found.has(key)) found.set(key, line);
        else missed += 1;
      }
    };
    await files.each(anyOf(texts), take, showing(number));
    // Not added up, because each pass finds the lines of the previous pass again.
    leftOut = Math.max(leftOut, missed);
  };
  await pass(1, new Set([id]), (line) => idsOf(line).includes(id));
  const requests = new Set([...found.values()].slice(0, mostRequests).flatMap(requestsOf));
  await pass(2, requests, (line) => requestsOf(line).some((request) => requests.has(request)));
  // Queue, bus and outbox lines have no request ID, and a message that several requests sent has
  // the ID of the first request, so the third pass searches by message ID.
  const messages = new Set([...found.values()].flatMap(messagesOf));
  await pass(3, messages, ({ eventId = "", jobId = "", mergedId = "", left = [] }) =>
    [eventId, jobId, mergedId, ...left].some((one) => messages.has(one)),
  );
  show?.("");
  return { lines: [...found.values()], broken, leftOut, lastMs: await lastMs(files) };
}

async function lastRequest(files: LogFiles): Promise<string | undefined> {
  let last: TraceLine | undefined;
  const take = (text: string) => {
    for (const line of linesOf(recordsOf(text).records)) {
      const { msg, requestId, handler, ms } = line;
      const isOwn = handler?.startsWith("keelson.");
      if (msg !== "request.completed" || requestId === undefined || isOwn) continue;
      if (last === undefined || ms >= last.ms) last = line;
    }
  };
  await files.each((text) => text.includes("request.completed"), take);
  return last?.requestId;
}

async function lastMs(files: LogFiles) {
  const lines = (await files.lastLines()).flatMap((text) => linesOf(recordsOf(text).records));
  return lines.length === 0 ? undefined : Math.max(...lines.map(({ ms }) => ms));
}

function linesOf(records: readonly LogRecord[]) {
  return records.flatMap((record) => traceLine(record) ?? []);
}

/** With many strings, looks up each ID-like part of a line instead of searching for every string. */
function anyOf(texts: ReadonlySet<string>): (text: string) => boolean {
  const all = [...texts];
  if (all.length <= few) return (text) => all.some((one) => text.includes(one));
  return (text) => {
    for (const [id] of text.matchAll(anyId)) if (texts.has(id)) return true;
    return false;
  };
}

const anyId = new RegExp(idForm, "g");

function idsOf(line: TraceLine) {
  const { trace_id, causedBy, left = [] } = line;
  return [trace_id, ...requestsOf(line), causedBy, ...messagesOf(line), ...left];
}

function requestsOf({ requestId, origRequestId }: TraceLine) {
  return [requestId, origRequestId].filter((id) => id !== undefined);
}

const messageFields = [
  ...(["eventId", "jobId", "publishedId", "enqueuedId"] as const),
  ...(["scheduledId", "canceledId", "mergedId", "deliveryId"] as const),
];

function messagesOf(line: TraceLine) {
  return messageFields.flatMap((name) => line[name] ?? []);
}

type LogFiles = Awaited<ReturnType<typeof openLogFiles>>;

/** A collector can write a whole document in one line. */
const longestLine = 16_777_216;
const chunkBytes = 1_048_576;

/** Reads each file up to its size at the time of opening. The path `-` means standard input. */
async function openLogFiles(paths: readonly string[], stdin?: Readable) {
  const files: LogFile[] = [];
  let spool: string | undefined;
  const close = async () => {
    for (const { file } of files) await file.close();
    if (spool !== undefined) await rm(spool, { recursive: true, force: true });
  };
  try {
    for (const path of paths) {
      let from = path;
      if (path === "-" && stdin !== undefined) {
        // Standard input is read several times, so it is copied to a file, not to memory.
        spool = await mkdtemp(join(tmpdir(), "keelson-trace-"));
        from = join(spool, "stdin");
        await pipeline(stdin, createWriteStream(from, { mode: 0o600 }));
      }
      const file = await open(from);
      files.push({ file, bytes: (await file.stat()).size });
    }
  } catch (error) {
    await close();
    throw error;
  }
  return {
    bytes: files.reduce((sum, { bytes }) => sum + bytes, 0),
    each: async (
      matches: (text: string) => boolean,
      take: (line: string) => void,
      show?: (bytes: number) => void,
    ) => {
      let done = 0;
      for (const file of files) {
        for await (const { text, at } of wholeLines(file)) {
          if (matches(text)) for (const line of text.split("\n")) if (matches(line)) take(line);
          show?.(done + at);
        }
        done += file.bytes;
      }
    },
    /** The first of a file's last lines can be incomplete. */
    lastLines: async () => (await Promise.all(files.map(endOf))).flat(),
    close,
  };
}

interface LogFile {
  readonly file: FileHandle;
  readonly bytes: number;
}

async function* wholeLines({ file, bytes }: LogFile) {
  let rest = "";
  const decoder = new TextDecoder();
  for (let at = 0; at < bytes; ) {
    const chunk = Buffer.allocUnsafe(Math.min(chunkBytes, bytes - at));
    const { bytesRead, buffer } = await file.read(chunk, { position: at });
    if (bytesRead === 0) break;
    at += bytesRead;
    const text = rest + decoder.decode(buffer.subarray(0, bytesRead), { stream: true });
    const end = at >= bytes ? text.length : text.lastIndexOf("\n") + 1;
    rest = text.slice(end);
    if (rest.length > longestLine) rest = "";
    yield { text: text.slice(0, end), at };
  }
}

async function endOf({ file, bytes }: LogFile): Promise<readonly string[]> {
  const end = Buffer.allocUnsafe(Math.min(bytes, 65_536));
  const { buffer, bytesRead } = await file.read(end, { position: bytes - end.length });
  return buffer.toString("utf8", 0, bytesRead).split("\n").slice(-100);
}
