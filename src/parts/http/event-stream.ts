import { jsonText } from "./response.ts";
import type { SseItem, StreamForm } from "./streamed-output.ts";

export const mediaTypes: Readonly<Record<StreamForm["kind"], string>> = Object.freeze({
  sse: "text/event-stream",
  jsonLines: "application/jsonl",
});

/** End of a stream before the end of its source. */
export interface EarlyEnd {
  /** Calls back when a stream of events has to end. Returns a function that stops watching. */
  watch(end: () => void): () => void;
  /** Called before the source is closed, because a generator that waits closes only afterwards. */
  abort(): void;
}

/** Returns items as encoded chunks, one each, at the pace of the reader. */
export function itemTexts(
  { kind, heartbeatMs }: Pick<StreamForm, "kind" | "heartbeatMs">,
  items: AsyncIterable<unknown>,
  { watch, abort }: EarlyEnd,
): AsyncIterable<string> {
  return kind === "jsonLines"
    ? mapped(items, (item) => `${jsonText(item)}\n`, abort)
    : eventTexts(mapped(items, eventText, abort), heartbeatMs, watch);
}

/** Applies a function to each item. An error closes the source. */
export function mapped<Item, Result>(
  items: AsyncIterable<Item>,
  map: (item: Item) => Result | Promise<Result>,
  abort?: EarlyEnd["abort"],
): AsyncIterable<Result> {
  return {
    [Symbol.asyncIterator]: () => {
      const source = items[Symbol.asyncIterator]();
      const close = async () => {
        abort?.();
        await source.return?.();
      };
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
    throw new TypeError(`sse: \`${name}\` of an event is not a string without line breaks and NUL`);
  return `${name}: ${text}\n`;
}

/** Clients ignore an ID with a NUL. */
const unsendable = /[\r\n\0]/;

/** Comment that keeps a connection open. */
const heartbeat = ":\n\n";

/** Time to wait for the first event, or its error, before the response starts, in milliseconds. */
const openMs = 250;

/** Shortest time after which clients reconnect, and the range that spreads them, in milliseconds. */
const [retryMs, spreadMs] = [1_000, 2_000];

/**
 * Adds heartbeats, and ends with a `retry` when it has to. `Promise.race` with a promise of the
 * whole stream would keep about 400 bytes of each event until the end.
 */
function eventTexts(
  events: AsyncIterable<string>,
  heartbeatMs: number,
  watch: EarlyEnd["watch"],
): AsyncIterable<string> {
  return {
    [Symbol.asyncIterator]: () => {
      const source = events[Symbol.asyncIterator]();
      let wake = () => {};
      let [isAsking, isEnding, isOver] = [false, false, false];
      let arrived: Arrived | undefined;
      let waitMs = Math.min(openMs, heartbeatMs);
      const arrive = (given: Arrived) => {
        arrived = given;
        wake();
      };
      const ask = () => {
        if (isAsking) return;
        isAsking = true;
        source.next().then(
          (item) => arrive({ item }),
          (error: unknown) => arrive({ error }),
        );
      };
      const unwatch = watch(() => {
        isEnding = true;
        wake();
      });
      const end = () => {
        isOver = true;
        unwatch();
      };
      const close = () => {
        end();
        wake();
        void source.return?.().catch(() => undefined);
      };
      const take = (given: Arrived) => {
        [arrived, isAsking] = [undefined, false];
        if ("error" in given) {
          close();
          throw given.error;
        }
        if (given.item.done === true) end();
        return given.item;
      };
      return {
        next: async () => {
          if (isOver) return finished;
          ask();
          if (arrived === undefined && !isEnding)
            await awoken(waitMs, (given) => {
              wake = given;
            });
          if (isOver) return finished;
          waitMs = heartbeatMs;
          if (isEnding) {
            close();
            const ms = Math.round(retryMs + Math.random() * spreadMs);
            return { done: false, value: `retry: ${ms}\n\n` };
          }
          return arrived === undefined ? { done: false, value: heartbeat } : take(arrived);
        },
        return: async () => {
          close();
          return finished;
        },
      };
    },
  };
}

/** A result of the source that the reader has not yet taken. */
type Arrived = { readonly item: IteratorResult<string> } | { readonly error: unknown };

/** Resolves when `wake` is called, or after a time. */
async function awoken(mostMs: number, waking: (wake: () => void) => void): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  waking(resolve);
  const timer = setTimeout(resolve, mostMs);
  await promise;
  clearTimeout(timer);
}
