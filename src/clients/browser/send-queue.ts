import { listen, page } from "./browser-page.ts";
import type { ClientLoggerOptions } from "./options.ts";

export interface SendQueue {
  add(record: string): void;
  flush(): Promise<void>;
  close(): Promise<void>;
}

/** Number of records per request. The server accepts one more. */
const maxBatch = 99; // leaves room for one record about dropped records
/** Stays below 64 KiB, the limit on all `keepalive` requests that a page has in flight. */
const keepaliveBytes = 60_000;
const batchBytes = 28_000;
/** Timeout of a request or of a token lookup, in milliseconds. */
const timeoutMs = 30_000;
/** First and longest backoff after failures, in milliseconds. */
const [firstPauseMs, longestPauseMs] = [1_000, 60_000];
/** Longest wait that a server can request with `retry-after`, in milliseconds. */
const longestWaitMs = 3_600_000;

export function createSendQueue({
  url,
  token,
  flushAfterMs = 2_000,
  maxQueued = 500,
}: ClientLoggerOptions): SendQueue {
  let queue: string[] = [];
  let dropped = 0;
  let failures = 0;
  /** Time before which the server asked for no requests, in milliseconds since the epoch. */
  let notBeforeMs = 0;
  let inFlightBytes = 0;
  let lastToken = typeof token === "string" ? token : undefined;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let sending: Promise<void> | undefined;

  const schedule = (ms: number) => {
    timer ??= setTimeout(() => {
      timer = undefined;
      void flush();
    }, ms);
  };

  const takeBatch = (limit: number): string[] => {
    let bytes = 100; // brackets and the record about dropped records
    let count = 0;
    for (const record of queue) {
      bytes += new TextEncoder().encode(record).length + 1;
      if (count === maxBatch || (bytes > limit && count > 0)) break;
      count += 1;
    }
    return queue.splice(0, count);
  };

  /**
   * Sends a batch. Returns `undefined` if the batch is finished, otherwise the minimum delay before
   * a retry, in milliseconds.
   */
  const post = async (batch: readonly string[]): Promise<number | undefined> => {
    // Only this batch reports the dropped records, not a concurrent one. If it fails, a later batch
    // reports them.
    const told = dropped;
    dropped = 0;
    let arrived = false;
    const notice = JSON.stringify({ level: "warn", msg: "client_log.dropped", count: told });
    const body = `[${(told > 0 ? [notice, ...batch] : batch).join()}]`;
    const bytes = new TextEncoder().encode(body).length;
    const keepalive = inFlightBytes + bytes <= keepaliveBytes;
    inFlightBytes += bytes;
    try {
      const headers = { "content-type": "application/json", authorization: `Bearer ${lastToken}` };
      const response = await fetch(url, {
        method: "POST",
        headers,
        body,
        keepalive,
        signal: AbortSignal.timeout(timeoutMs),
      });
      const { status } = response;
      arrived = status < 300;
      if (arrived) return undefined;
      // The server would reject these records again. Drops them so that the rest of the queue can
      // be sent.
      if (status < 500 && ![401, 408, 429].includes(status)) {
        dropped += batch.length;
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
      if (!arrived) dropped += told;
    }
  };

  const bound = () => {
    const over = queue.length - maxQueued;
    if (over > 0) {
      queue.splice(0, over);
      dropped += over;
    }
  };

  const refreshToken = async (): Promise<void> => {
    if (typeof token !== "function") return;
    let deadline: ReturnType<typeof setTimeout> | undefined;
    try {
      const timeout = new Promise<undefined>((resolve) => {
        deadline = setTimeout(() => resolve(undefined), timeoutMs);
      });
      lastToken = await Promise.race([token(), timeout]);
    } catch {
      lastToken = undefined;
    } finally {
      clearTimeout(deadline);
    }
  };

  const sendAll = async (): Promise<void> => {
    if (queue.length === 0) return;
    await refreshToken();
    while (queue.length > 0) {
      // The server rejects records without a token. The next attempt may obtain one.
      if (lastToken === undefined) return void again(0);
      const batch = takeBatch(batchBytes);
      const pauseMs = await post(batch);
      if (pauseMs !== undefined) {
        queue = [...batch, ...queue];
        bound();
        return void again(pauseMs);
      }
      failures = 0;
    }
  };

  const again = (pauseMs: number) => {
    failures += 1;
    const backOffMs = Math.min(longestPauseMs, firstPauseMs * 2 ** (failures - 1));
    // Replaces a timer that a newly logged record has set without regard to the backoff.
    clearTimeout(timer);
    timer = undefined;
    schedule(Math.max(pauseMs, backOffMs * (0.5 + Math.random() / 2)));
  };

  const flush = (): Promise<void> => {
    sending ??= sendAll().finally(() => {
      sending = undefined;
    });
    return sending;
  };

  /**
   * Sends everything that fits immediately, with the last known token, because the page may be
   * about to close.
   */
  const sendNow = () => {
    if (Date.now() < notBeforeMs) return;
    while (queue.length > 0 && lastToken !== undefined && keepaliveBytes - inFlightBytes > 1_000) {
      const batch = takeBatch(Math.min(batchBytes, keepaliveBytes - inFlightBytes));
      void post(batch).then((pauseMs) => {
        if (pauseMs === undefined) return;
        queue = [...batch, ...queue];
        bound();
        again(pauseMs);
      });
    }
  };
  // Provides a token in case the page closes before the first send.
  void refreshToken();
  const stops = [
    listen("pagehide", sendNow),
    listen("visibilitychange", () => {
      if (page.document?.visibilityState === "hidden") sendNow();
    }),
    // A page that was offline skips the rest of its backoff.
    listen("online", () => void flush()),
  ];

  return {
    add: (record) => {
      queue.push(record);
      bound();
      if (queue.length >= maxBatch && failures === 0) void flush();
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
