import type { EventBridgeClient, PutEventsCommandInput, PutEventsCommandOutput } from "@aws-sdk/client-eventbridge";
import fc from "fast-check";
import { expect, test } from "vitest";
import { eventBridgeBus } from "./event-bus.ts";

type Sent = NonNullable<PutEventsCommandInput["Entries"]>;
type Answered = NonNullable<PutEventsCommandOutput["Entries"]>;
type Said = (entries: Sent, call: number) => Answered | undefined;

const taken: Said = (entries) => entries.map(() => ({ EventId: "b1" }));

/** A bus whose client answers as `said` has it. */
function busOf(said: Said) {
  const calls: Sent[] = [];
  const pauses: number[] = [];
  const client = {
    send: async ({ input }: { readonly input: PutEventsCommandInput }) => {
      const entries = input.Entries ?? [];
      calls.push(entries);
      return { Entries: said(entries, calls.length) };
    },
  } as unknown as EventBridgeClient; // nothing else is asked of it
  const bus = eventBridgeBus(client, {
    busName: "main",
    source: "keelson.test",
    pause: async (attempt) => void pauses.push(attempt),
  });
  return { bus, calls, pauses, texts: () => calls.map((entries) => entries.map(({ Detail }) => Detail)) };
}

const numbered = (count: number) =>
  Array.from({ length: count }, (_, index) => ({ type: "file.created", text: `{"n":${index}}` }));
const nothing = (count: number) => Array.from({ length: count }, () => undefined);

test("an event is put under its type, with the source and the bus that rules look for", async () => {
  const { bus, calls, pauses } = busOf(taken);
  expect(await bus.put([{ type: "file.created", text: '{"n":1}' }])).toEqual([undefined]);
  expect(calls).toEqual([[{ EventBusName: "main", Source: "keelson.test", DetailType: "file.created", Detail: '{"n":1}' }]]);
  expect(pauses).toEqual([]);
});

test("no events are no call", async () => {
  const { bus, calls } = busOf(taken);
  expect(await bus.put([])).toEqual([]);
  expect(calls).toEqual([]);
});

test.each([
  [1, [1]],
  [10, [10]],
  [11, [10, 1]],
  [25, [10, 10, 5]],
])("%i events go ten at a time, in their order", async (count, sizes) => {
  const { bus, calls, texts } = busOf(taken);
  expect(await bus.put(numbered(count))).toEqual(nothing(count));
  expect(calls.map(({ length }) => length)).toEqual(sizes);
  expect(texts().flat()).toEqual(numbered(count).map(({ text }) => text));
});

test("a call has at most 262,144 bytes, and each event that fits by itself goes", async () => {
  const sizes = fc.array(fc.oneof(fc.integer({ min: 2, max: 300 }), fc.integer({ min: 2, max: 130_000 })), { maxLength: 40 });
  await fc.assert(
    fc.asyncProperty(sizes, async (lengths) => {
      const { bus, calls, texts } = busOf(taken);
      const events = lengths.map((length, index) => ({ type: "file.created", text: `${index}${"ä".repeat(length)}` }));
      await bus.put(events);
      expect(texts().flat()).toEqual(events.map(({ text }) => text));
      for (const entries of calls) {
        const bytes = entries.reduce((sum, { Detail = "" }) => sum + Buffer.byteLength(Detail) + 512, 0);
        expect(bytes).toBeLessThanOrEqual(262_144);
        expect(entries.length).toBeGreaterThan(0);
      }
    }),
    { numRuns: 50 },
  );
});

test("two events that fill a call go in one, and one byte more makes it two", async () => {
  const half = 262_144 / 2 - 512;
  const sized = (bytes: number) => ({ type: "file.created", text: "x".repeat(bytes) });
  const full = busOf(taken);
  await full.bus.put([sized(half), sized(half)]);
  expect(full.calls).toHaveLength(1);
  const over = busOf(taken);
  await over.bus.put([sized(half), sized(half + 1)]);
  expect(over.calls).toHaveLength(2);
});

test("only the events that failed are put again, after a pause", async () => {
  const { bus, texts, pauses } = busOf((entries, call) =>
    entries.map(({ Detail }) => (call === 1 && Detail?.includes("1") ? { ErrorCode: "ThrottlingException" } : { EventId: "b1" })),
  );
  expect(await bus.put(numbered(3))).toEqual(nothing(3));
  expect(texts()).toEqual([['{"n":0}', '{"n":1}', '{"n":2}'], ['{"n":1}']]);
  expect(pauses).toEqual([1]);
});

test("what failed in several calls is put again together", async () => {
  const { bus, texts } = busOf((entries, call) =>
    entries.map((_, index) => (call <= 3 && index === 0 ? { ErrorCode: "InternalFailure" } : { EventId: "b1" })),
  );
  expect(await bus.put(numbered(25))).toEqual(nothing(25));
  expect(texts().at(-1)).toEqual(['{"n":0}', '{"n":10}', '{"n":20}']);
  expect(texts()).toHaveLength(4);
});

test("an event that fails four times is given up with the reason of the last time, in its place", async () => {
  const { bus, texts, pauses } = busOf((entries, call) =>
    entries.map(({ Detail }) =>
      Detail === '{"n":1}' ? { ErrorCode: "InternalFailure", ErrorMessage: `attempt ${call}` } : { EventId: "b1" },
    ),
  );
  expect(await bus.put(numbered(3))).toEqual([undefined, "InternalFailure attempt 4", undefined]);
  expect(texts().map(({ length }) => length)).toEqual([3, 1, 1, 1]);
  expect(pauses).toEqual([1, 2, 3]);
});

test.each<[string, Answered | undefined, (string | undefined)[]]>([
  ["no entries", undefined, ["no answer", "no answer"]],
  ["fewer entries", [{ EventId: "b1" }], [undefined, "no answer"]],
  ["entries that say nothing", [{}, { ErrorMessage: "odd" }], ["no answer", "no answer odd"]],
  ["a code alone", [{ EventId: "b1" }, { ErrorCode: "InternalFailure" }], [undefined, "InternalFailure"]],
])("an answer with %s is no success", async (_what, answered, reasons) => {
  let isFirst = true;
  const { bus } = busOf((entries) => {
    // The second event alone is put again where the first was taken.
    const now = isFirst || entries.length === 2 ? answered : answered?.slice(1);
    isFirst = false;
    return now;
  });
  expect(await bus.put(numbered(2))).toEqual(reasons);
});

test.each([1, 2])("a call that throws, here call %i, is the caller's", async (failing) => {
  const { bus } = busOf((entries, call) => {
    if (call === failing) throw new Error("connect ECONNREFUSED");
    return taken(entries, call);
  });
  await expect(bus.put(numbered(20))).rejects.toThrow("connect ECONNREFUSED");
});
