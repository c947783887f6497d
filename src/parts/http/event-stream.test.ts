import fc from "fast-check";
import { expect, test, vi } from "vitest";
import { allOf } from "../../../test/support/all-of.ts";
import { waitFor } from "../../../test/support/wait-for.ts";
import { type EarlyEnd, eventText, itemTexts, mapped } from "./event-stream.ts";

const ignored: EarlyEnd = { watch: () => () => undefined, abort: () => undefined };
const sse = { kind: "sse", heartbeatMs: 600_000 } as const;
const lines = { kind: "jsonLines", heartbeatMs: Number.POSITIVE_INFINITY } as const;

async function* of<Item>(...items: readonly Item[]) {
  yield* items;
}
const all = allOf<string>;
/** Items that come when they are pushed; notes whether they were closed. */
function pushed() {
  const waiting: ((result: IteratorResult<unknown>) => void)[] = [];
  const source = {
    isClosed: false,
    push: (value: unknown) => waiting.shift()?.({ done: false, value }),
    [Symbol.asyncIterator]: () => ({
      next: () => new Promise<IteratorResult<unknown>>((resolve) => void waiting.push(resolve)),
      return: async () => {
        source.isClosed = true;
        return { done: true as const, value: undefined };
      },
    }),
  };
  return source;
}

test.each([
  [{ data: "text" }, 'data: "text"\n\n'],
  [{ data: { a: [1] } }, 'data: {"a":[1]}\n\n'],
  [{ data: null }, "data: null\n\n"],
  [{ data: 1, id: "7", event: "ping", retry: 5 }, "id: 7\nevent: ping\nretry: 5\ndata: 1\n\n"],
  [{ data: 1, id: "", retry: 0 }, "id: \nretry: 0\ndata: 1\n\n"],
  [{ data: "a\nb\r\u2028c" }, 'data: "a\\nb\\r\u2028c"\n\n'],
  [{ data: 1, other: "left out" }, "data: 1\n\n"],
])("writes %j as an event", (item, text) => {
  expect(eventText(item)).toBe(text);
});

test.each([
  [{ data: 1, id: "a\nb" }, "`id`"],
  [{ data: 1, id: "a\rb" }, "`id`"],
  [{ data: 1, id: "a\0b" }, "`id`"],
  [{ data: 1, id: 7 }, "`id`"],
  [{ data: 1, event: "a\ndata: forged" }, "`event`"],
  [{ data: 1, event: "a\0" }, "`event`"],
  [{ data: 1, retry: 1.5 }, "`retry`"],
  [{ data: 1, retry: -1 }, "`retry`"],
  [{ data: undefined }, "undefined"],
  [{}, "undefined"],
  ["text", "undefined"],
  [null, "undefined"],
])("refuses %j", (item, named) => {
  expect(() => eventText(item)).toThrow(named);
});

test("an event has only the lines of its own fields, whatever its data contains", () => {
  fc.assert(
    fc.property(fc.jsonValue(), (data) => {
      const [line, ...rest] = eventText({ data }).split(/\r\n|\r|\n/);
      expect(rest).toEqual(["", ""]);
      expect(JSON.parse(String(line).slice("data: ".length))).toEqual(
        JSON.parse(JSON.stringify(data)),
      );
    }),
  );
});

test("JSON lines are values on lines of their own", async () => {
  const texts = itemTexts(lines, of<unknown>({ a: "b\nc" }, 1, null), ignored);
  expect(await all(texts)).toEqual(['{"a":"b\\nc"}\n', "1\n", "null\n"]);
});

test("events come in order, and the end of the source ends the stream and the watch", async () => {
  const [unwatch, abort] = [vi.fn(), vi.fn()];
  const texts = itemTexts(sse, of({ data: 1 }, { data: 2 }), { watch: () => unwatch, abort });
  expect(await all(texts)).toEqual(["data: 1\n\n", "data: 2\n\n"]);
  expect(unwatch).toHaveBeenCalledTimes(1);
  expect(abort).not.toHaveBeenCalled();
});

test("without an event, the stream soon opens with a comment, and then sends one per heartbeat", async () => {
  const source = pushed();
  const texts = itemTexts({ kind: "sse", heartbeatMs: 5 }, source, ignored);
  const reader = texts[Symbol.asyncIterator]();
  for (let times = 0; times < 3; times++)
    expect(await reader.next()).toEqual({ done: false, value: ":\n\n" });
  const next = reader.next();
  source.push({ data: "late" });
  expect(await next).toEqual({ done: false, value: 'data: "late"\n\n' });
  await reader.return?.();
  expect(source.isClosed).toBe(true);
  expect(await reader.next()).toEqual({ done: true, value: undefined });
});

test("when it has to end, it sends a retry, closes its source and is over", async () => {
  const source = pushed();
  let end: () => void = () => undefined;
  const unwatch = vi.fn();
  const abort = vi.fn(() => expect(source.isClosed).toBe(false));
  const watch: EarlyEnd["watch"] = (given) => {
    end = given;
    return unwatch;
  };
  const reader = itemTexts(sse, source, { watch, abort })[Symbol.asyncIterator]();
  const first = reader.next();
  source.push({ data: 1 });
  expect(await first).toMatchObject({ value: "data: 1\n\n" });
  const waiting = reader.next();
  end();
  const { value } = await waiting;
  expect(value).toMatch(/^retry: [123]\d{3}\n\n$/);
  expect(await reader.next()).toEqual({ done: true, value: undefined });
  expect(source.isClosed).toBe(true);
  expect([unwatch.mock.calls.length, abort.mock.calls.length]).toEqual([1, 1]);
});

test.each([sse, lines])(
  "a reader that leaves a stream of $kind ends its wait, and aborts its run",
  async (form) => {
    const source = pushed();
    const abort = vi.fn(() => expect(source.isClosed).toBe(false));
    const reader = itemTexts(form, source, { ...ignored, abort })[Symbol.asyncIterator]();
    const first = reader.next();
    source.push({ data: 0 });
    await first;
    const waiting = reader.next(); // for as long as a heartbeat
    await reader.return?.();
    expect([source.isClosed, abort.mock.calls.length]).toEqual([true, 1]);
    source.push({ data: 1 }); // JSON lines wait for their source
    expect((await waiting).done).toBe(form === sse);
  },
);

test("an event that cannot be sent, or an error of the source, ends the stream with an error", async () => {
  const source = pushed();
  const reader = itemTexts(sse, source, ignored)[Symbol.asyncIterator]();
  const next = reader.next();
  source.push({ data: 1, id: "\n" });
  await expect(next).rejects.toThrow("`id` of an event");
  await waitFor(() => expect(source.isClosed).toBe(true));
  async function* broken() {
    yield { data: 1 };
    throw new Error("the source is broken");
  }
  await expect(all(itemTexts(sse, broken(), ignored))).rejects.toThrow("the source is broken");
  await expect(all(itemTexts(lines, broken(), ignored))).rejects.toThrow("the source is broken");
});

test("a mapped stream closes its source with its reader, also one without return", async () => {
  const source = pushed();
  const reader = mapped(source, (item) => item)[Symbol.asyncIterator]();
  await reader.return?.();
  expect(source.isClosed).toBe(true);
  const plain = {
    [Symbol.asyncIterator]: () => ({ next: async () => ({ done: true as const, value: 1 }) }),
  };
  expect(await allOf(mapped(plain, (item) => item))).toEqual([]);
  await mapped(plain, (item) => item)
    [Symbol.asyncIterator]()
    .return?.();
});
