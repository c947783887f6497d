import { listen, page } from "./browser-page.ts";
import type { ClientLoggerOptions } from "./options.ts";

/** Records per request. The server accepts one more: the record about dropped records. */
const maxBatch = 99;
/** Less than 64 KiB, a page's limit for all its concurrent `keepalive` requests. */
const keepaliveBytes = 60_000;
const batchBytes = 28_000;
const timeoutMs = 30_000;
const [firstPauseMs, longestPauseMs] = [1_000, 60_000];
/** Longest `retry-after`. */
const longestWaitMs = 3_600_000;

export function createSendQueue({
  url,
  token,
  flushAfterMs = 2_000,
  maxQueued = 500,
}: ClientLoggerOptions) {
  const waiting = createWaiting(maxQueued);
  const tokens = createTokens(token);
  const sender = createSender(url, waiting, tokens);
  let failures = 0;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let sending: Promise<void> | undefined;

  const schedule = (ms: number) => {
    timer ??= setTimeout(() => {
      timer = undefined;
      void flush();
    }, ms);
  };

  const again = (pauseMs: number) => {
    failures += 1;
    const backOffMs = Math.min(longestPauseMs, firstPauseMs * 2 ** (failures - 1));
    // Replaces the timer of a newly logged record, which ignores the backoff.
    clearTimeout(timer);
    timer = undefined;
    schedule(Math.max(pauseMs, backOffMs * (0.5 + Math.random() / 2)));
  };

  /** Puts back a batch that must be sent again. */
  const isSent = async (batch: readonly string[]): Promise<boolean> => {
    const pauseMs = await sender.post(batch);
    if (pauseMs === undefined) return true;
    waiting.putBack(batch);
    again(pauseMs);
    return false;
  };

  const sendAll = async (): Promise<void> => {
    if (waiting.size() === 0) return;
    await tokens.refresh();
    while (waiting.size() > 0) {
      // The server rejects records without a token. A later attempt may get a token.
      if (tokens.last() === undefined) return void again(0);
      if (!(await isSent(waiting.take(batchBytes)))) return;
      failures = 0;
    }
  };

  const flush = (): Promise<void> => {
    sending ??= sendAll().finally(() => {
      sending = undefined;
    });
    return sending;
  };

  /** Sends what fits now, with the last known token, because the page may be about to close. */
  const sendNow = () => {
    if (sender.isPaused()) return;
    while (waiting.size() > 0 && tokens.last() !== undefined && sender.room() > 1_000)
      void isSent(waiting.take(Math.min(batchBytes, sender.room())));
  };
  // Requests the token now, because the page may close before the first send.
  void tokens.refresh();
  const stops = [
    listen("pagehide", sendNow),
    listen("visibilitychange", () => {
      if (page.document?.visibilityState === "hidden") sendNow();
    }),
    listen("online", () => void flush()),
  ];

  return {
    add: (record: string) => {
      waiting.add(record);
      if (waiting.size() >= maxBatch && failures === 0) void flush();
      else schedule(flushAfterMs);
    },
    flush,
    close: async () => {
      for (const stop of stops) stop();
      await flush();
      clearTimeout(timer);
    },
  };
}

function createWaiting(maxQueued: number) {
  let queue: string[] = [];
  let dropped = 0;
  const bound = () => {
    const over = queue.length - maxQueued;
    if (over > 0) {
      queue.splice(0, over);
      dropped += over;
    }
  };
  return {
    size: () => queue.length,
    add: (record: string) => {
      queue.push(record);
      bound();
    },
    take: (limit: number): string[] => {
      let bytes = 100; // brackets and the record about dropped records
      let count = 0;
      for (const record of queue) {
        bytes += bytesOf(record) + 1;
        if (count === maxBatch || (bytes > limit && count > 0)) break;
        count += 1;
      }
      return queue.splice(0, count);
    },
    putBack: (batch: readonly string[]) => {
      queue = [...batch, ...queue];
      bound();
    },
    drop: (count: number) => {
      dropped += count;
    },
    takeDropped: () => {
      const count = dropped;
      dropped = 0;
      return count;
    },
  };
}

/** `refresh` requests a new token and never rejects. */
function createTokens(token: ClientLoggerOptions["token"]) {
  let last = typeof token === "string" ? token : undefined;
  const refresh = async (): Promise<void> => {
    if (typeof token !== "function") return;
    let deadline: ReturnType<typeof setTimeout> | undefined;
    try {
      const timeout = new Promise<undefined>((resolve) => {
        deadline = setTimeout(() => resolve(undefined), timeoutMs);
      });
      last = await Promise.race([token(), timeout]);
    } catch {
      last = undefined;
    } finally {
      clearTimeout(deadline);
    }
  };
  return { last: () => last, refresh };
}

function createSender(
  url: string,
  waiting: ReturnType<typeof createWaiting>,
  tokens: ReturnType<typeof createTokens>,
) {
  let inFlightBytes = 0;
  let notBeforeMs = 0;

  /** Resolves to the least delay before a retry, in ms; `undefined` if none is needed. */
  const post = async (batch: readonly string[]): Promise<number | undefined> => {
    // Only one batch at a time reports the dropped records. If that fails, a later batch does.
    const told = waiting.takeDropped();
    let arrived = false;
    const notice = JSON.stringify({ level: "warn", msg: "client_log.dropped", count: told });
    const body = `[${(told > 0 ? [notice, ...batch] : batch).join()}]`;
    const bytes = bytesOf(body);
    const keepalive = inFlightBytes + bytes <= keepaliveBytes;
    inFlightBytes += bytes;
    try {
      const authorization = `Bearer ${tokens.last()}`;
      const headers = { "content-type": "application/json", authorization };
      const signal = AbortSignal.timeout(timeoutMs);
      const response = await fetch(url, { method: "POST", headers, body, keepalive, signal });
      const { status } = response;
      arrived = status < 300;
      if (arrived) return undefined;
      // The server would reject these records again, and retries would block the queue.
      if (status < 500 && ![401, 408, 429].includes(status)) {
        waiting.drop(batch.length);
        return undefined;
      }
      const seconds = Number(response.headers.get("retry-after"));
      if (!(seconds > 0)) return 0;
      const waitMs = Math.min(seconds * 1_000, longestWaitMs);
      notBeforeMs = Date.now() + waitMs;
      return waitMs;
    } catch {
      return 0;
    } finally {
      inFlightBytes -= bytes;
      if (!arrived) waiting.drop(told);
    }
  };
  return {
    post,
    isPaused: () => Date.now() < notBeforeMs,
    room: () => keepaliveBytes - inFlightBytes,
  };
}

function bytesOf(text: string): number {
  return new TextEncoder().encode(text).length;
}
