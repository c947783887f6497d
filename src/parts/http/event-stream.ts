import { jsonText } from "./response.ts";
import type { SseItem, StreamForm } from "./streamed-output.ts";

export const mediaTypes: Readonly<Record<StreamForm["kind"], string>> = Object.freeze({
  sse: "text/event-stream",
  jsonLines: "application/jsonl",
});

/** Calls back when a stream of events has to end. Returns a function that stops watching. */
export type Watch = (end: () => void) => () => void;

/** Returns items as text, one chunk each, at the pace of the reader. */
export function itemTexts(
  { kind, heartbeatMs }: Pick<StreamForm, "kind" | "heartbeatMs">,
  items: AsyncIterable<unknown>,
  watch: Watch,
): AsyncIterable<string> {
  if (kind === "jsonLines") return mapped(items, (item) => `${jsonText(item)}\n`);
  return eventTexts(mapped(items, eventText), heartbeatMs, watch);
}

/** Applies a function to each item. An error closes the source. */
export function mapped<Item, Result>(
  items: AsyncIterable<Item>,
  map: (item: Item) => Result | Promise<Result>,
): AsyncIterable<Result> {
  return {
    [Symbol.asyncIterator]: () => {
      const source = items[Symbol.asyncIterator]();
      const close = async () => void (await source.return?.());
      return {
        next: async () => {
          const { done, value } = await source.next();
          if (done === true) return finished;
          try {
            return { done: false, value: await map(value) };
          } catch (error) {
            close().catch(() => undefined);
            throw error;
          }
        },
        return: async () => {
          await close();
          return finished;
        },
      };
    },
  };
}

const finished: IteratorReturnResult<undefined> = Object.freeze({ done: true, value: undefined });

/** @throws TypeError for an event that the format cannot carry. */
export function eventText(item: unknown): string {
  const { data, id, event, retry }: Partial<SseItem<unknown>> = Object(item);
  const fields = [fieldOf("id", id), fieldOf("event", event)];
  if (retry !== undefined) {
    if (!Number.isSafeInteger(retry) || retry < 0)
      throw new TypeError("sse: `retry` of an event is not a whole number of milliseconds");
    fields.push(`retry: ${retry}\n`);
  }
  return `${fields.join("")}data: ${jsonText(data)}\n\n`;
}

/** The message does not quote the text, which may be secret. */
function fieldOf(name: "id" | "event", text: unknown): string {
  if (text === undefined) return "";
  if (typeof text !== "string" || unsendable.test(text))
    throw new TypeError(`sse: \`${name}\` of an event is not a text without line breaks and NUL`);
  return `${name}: ${text}\n`;
}

/** Clients ignore an ID with a NUL. */
const unsendable = /[\r\n\0]/;

/** Comment that keeps a connection open. */
const heartbeat = ":\n\n";

/** Time to wait for the first event, or its error, before the response begins, in milliseconds. */
const openMs = 250;

/** Shortest time after which clients reconnect, and the range that spreads them, in milliseconds. */
const [retryMs, spreadMs] = [1_000, 2_000];

/** Adds heartbeats, and ends with a `retry` when it has to. */
function eventTexts(
  events: AsyncIterable<string>,
  heartbeatMs: number,
  watch: Watch,
): AsyncIterable<string> {
  return {
    [Symbol.asyncIterator]: () => {
      const source = events[Symbol.asyncIterator]();
      const ending = Promise.withResolvers<"ending">();
      const unwatch = watch(() => ending.resolve("ending"));
      let waiting: Promise<IteratorResult<string>> | undefined;
      let waitMs = Math.min(openMs, heartbeatMs);
      let isOver = false;
      const close = () => {
        isOver = true;
        unwatch();
        waiting?.catch(() => undefined);
        void source.return?.().catch(() => undefined);
      };
      return {
        next: async () => {
          if (isOver) return finished;
          waiting ??= source.next();
          const turn = await firstOf(waiting, ending.promise, waitMs).catch((error: unknown) => {
            close();
            throw error;
          });
          waitMs = heartbeatMs;
          if (turn === "late") return { done: false, value: heartbeat };
          if (turn === "ending") {
            close();
            const ms = Math.round(retryMs + Math.random() * spreadMs);
            return { done: false, value: `retry: ${ms}\n\n` };
          }
          waiting = undefined;
          if (turn.done === true) close();
          return turn;
        },
        return: async () => {
          close();
          return finished;
        },
      };
    },
  };
}

/** Resolves to the item, or to why it is not waited for any longer. */
async function firstOf<Item, Ending>(
  item: Promise<Item>,
  ending: Promise<Ending>,
  waitMs: number,
): Promise<Item | Ending | "late"> {
  const late = Promise.withResolvers<"late">();
  const timer = setTimeout(late.resolve, waitMs, "late");
  try {
    return await Promise.race([ending, item, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}
