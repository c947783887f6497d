import type { Logger, LogLevel } from "../../base/log/logger.ts";
import { metricNames, renaming } from "../../base/log/record-names.ts";
import { listen, page } from "./browser-page.ts";
import type { ClientLoggerOptions } from "./options.ts";
import { recordText } from "./record-text.ts";
import { createSendQueue } from "./send-queue.ts";

/** The browser logger (specification 2.5). */
export interface ClientLogger extends Logger {
  /** Sends the queued records and waits for the responses. Unsent records stay queued. */
  flush(): Promise<void>;
  /** Sends the queued records and stops listening to the page. */
  close(): Promise<void>;
}

/** Names that context and data fields cannot have, as on the server. */
const fixed: readonly string[] = ["level", "msg", "time", "clientTime", ...metricNames];
const levels: readonly LogLevel[] = ["debug", "info", "warn", "error"];

/**
 * Creates a page's logger, which sends batches of records to `POST /log` (specification 4.2), with
 * `keepalive` when the page is hidden. Logging never throws.
 *
 * @example
 * const log = createClientLogger({ url: "/log", token: () => session.token, captureErrors: true });
 * log.info("cart.opened", { items: 3 });
 */
export function createClientLogger(options: ClientLoggerOptions): ClientLogger {
  const isDevelopment = options.environment === "development";
  const { context = {}, level = isDevelopment ? "debug" : "info" } = options;
  const queue = isDevelopment ? undefined : createSendQueue(options);
  const threshold = levels.indexOf(level);
  const write = (
    at: LogLevel,
    fields: Record<string, unknown>,
    msg: string,
    data?: Record<string, unknown>,
  ) => {
    if (levels.indexOf(at) < threshold) return;
    try {
      const named = recordFields(fields, data);
      if (queue === undefined) page.console?.[at](msg, named);
      else
        queue.add(recordText(at, String(msg), { clientTime: new Date().toISOString(), ...named }));
    } catch {
      // A logged value may throw when it is read.
      queue?.add(recordText("warn", "client_log.unreadable", { level: at }));
    }
  };
  const create = (fields: Record<string, unknown>): Logger => ({
    info: (msg, data) => write("info", fields, msg, data),
    warn: (msg, data) => write("warn", fields, msg, data),
    error: (msg, data) => write("error", fields, msg, data),
    debug: (msg, data) => write("debug", fields, msg, data),
    child: (more) => {
      try {
        return create({ ...fields, ...more });
      } catch {
        return create(fields); // callers always receive a logger
      }
    },
  });
  const log = create(context);
  const release = options.captureErrors === true ? captureErrors(log) : () => {};
  return {
    ...log,
    flush: async () => queue?.flush(),
    close: async () => {
      release();
      await queue?.close();
    },
  };
}

function recordFields(
  context: Record<string, unknown>,
  given: Record<string, unknown> | null | undefined,
) {
  const data = given ?? {}; // plain JavaScript may pass null
  const contextName = renaming("context", Object.keys(context), (name) => fixed.includes(name));
  const written = Object.entries(context)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => [contextName(name), value] as const);
  const taken = new Set([...fixed, ...written.map(([name]) => name)]);
  const dataName = renaming("data", Object.keys(data), (name) => taken.has(name));
  return Object.fromEntries([
    ...written,
    ...Object.entries(data).map(([name, value]) => [dataName(name), value] as const),
  ]);
}

function captureErrors(log: Logger): () => void {
  const stopErrors = listen("error", ({ error, message }) =>
    log.error("uncaught.error", { error: error ?? message }),
  );
  const stopRejections = listen("unhandledrejection", ({ reason }) =>
    log.error("unhandled.rejection", { error: reason }),
  );
  return () => {
    stopErrors();
    stopRejections();
  };
}
