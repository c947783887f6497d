import type { Readable } from "node:stream";
import { idForm } from "../../../base/request/trace.ts";
import { type TraceLine, traceLine } from "./line.ts";
import { type LogFiles, openLogFiles } from "./log-files.ts";
import { type LogRecord, recordsOf } from "./log-records.ts";

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
  // Lines of queues, bus and outbox have no request ID, and a message that several requests sent
  // has the first one's ID, so the third pass searches by message ID.
  const messages = new Set([...found.values()].flatMap(messagesOf));
  await pass(3, messages, ({ eventId = "", jobId = "", left = [] }) =>
    [eventId, jobId, ...left].some((one) => messages.has(one)),
  );
  show?.("");
  return { lines: [...found.values()], broken, leftOut, lastMs: await lastMs(files) };
}

/** ID of the last request that was not for keelson's own handlers. */
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

/** Reads only the ends of the files. */
async function lastMs(files: LogFiles): Promise<number | undefined> {
  const lines = (await files.lastLines()).flatMap((text) => linesOf(recordsOf(text).records));
  return lines.length === 0 ? undefined : Math.max(...lines.map(({ ms }) => ms));
}

function linesOf(records: readonly LogRecord[]): readonly TraceLine[] {
  return records.flatMap((record) => traceLine(record) ?? []);
}

/** With many texts, looks up each ID-like part of a line instead of searching for every text. */
function anyOf(texts: ReadonlySet<string>): (text: string) => boolean {
  const all = [...texts];
  if (all.length <= few) return (text) => all.some((one) => text.includes(one));
  return (text) => {
    for (const [id] of text.matchAll(anyId)) if (texts.has(id)) return true;
    return false;
  };
}

const anyId = new RegExp(idForm, "g");

function idsOf(line: TraceLine): readonly (string | undefined)[] {
  const { trace_id, causedBy, left = [] } = line;
  return [trace_id, ...requestsOf(line), causedBy, ...messagesOf(line), ...left];
}

function requestsOf({ requestId, origRequestId }: TraceLine): readonly string[] {
  return [requestId, origRequestId].filter((id) => id !== undefined);
}

const messageFields = [
  ...(["eventId", "jobId", "publishedId", "enqueuedId"] as const),
  ...(["scheduledId", "unscheduledId", "deliveryId"] as const),
];

function messagesOf(line: TraceLine): readonly string[] {
  return messageFields.flatMap((name) => line[name] ?? []);
}
