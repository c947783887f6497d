import { listen, page } from "./browser-page.ts";
import type { ClientLoggerOptions } from "./options.ts";

/** Records on their way to the server. */
export interface SendQueue {
  add(record: string): void;
  flush(): Promise<void>;
  close(): Promise<void>;
}

/** The server takes so many records at once. */
const maxBatch = 99; // and one that says what was dropped
/** All requests with `keepalive` that a page has in flight share 64 KiB. */
const keepaliveBytes = 60_000;
const batchBytes = 28_000;
/** How long one request may take, or a token, in milliseconds. */
const timeoutMs = 30_000;
/** The pauses after failures, in milliseconds. */
const [firstPauseMs, longestPauseMs] = [1_000, 60_000];
/** A server that wants more than this is not waited for. */
const longestWaitMs = 3_600_000;

/** Creates the send queue of one logger. */
export function createSendQueue({
  url,
  token,
  flushAfterMs = 2_000,
  maxQueued = 500,
}: ClientLoggerOptions): SendQueue {
  let queue: string[] = [];
  let dropped = 0;
  let failures = 0;
  /** The server has asked for nothing before. */
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

  /** Takes a batch from the queue. */
  const takeBatch = (limit: number): string[] => {
    let bytes = 100; // the brackets, and room to say what was dropped
    let count = 0;
    for (const record of queue) {
      bytes += new TextEncoder().encode(record).length + 1;
      if (count === maxBatch || (bytes > limit && count > 0)) break;
      count += 1;
    }
    return queue.splice(0, count);
  };

  /** Sends a batch; `undefined` where it is done with, else after how many milliseconds it may be tried again. */
  const post = async (batch: readonly string[]): Promise<number | undefined> => {
    // What was dropped is told with this batch and no other that is under way; where it does not arrive, with a later one.
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
      // What the server refuses as it is, it would refuse again: the rest of the queue goes on.
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
      // Without a token nothing would be taken; one may come with the next try.
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
    // Instead of the timer of a record that was logged meanwhile, which knows nothing of the pause.
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

  /** The page may be gone in a moment: everything that fits is sent at once, with the token of last time. */
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
  // So that there is one, should the page go before anything was sent.
  void refreshToken();
  const stops = [
    listen("pagehide", sendNow),
    listen("visibilitychange", () => {
      if (page.document?.visibilityState === "hidden") sendNow();
    }),
    // A page that was offline does not wait for the rest of its pause.
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
