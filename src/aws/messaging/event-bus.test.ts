import {
  type EventBridgeClient,
  PutEventsCommand,
  type PutEventsCommandInput,
  type PutEventsCommandOutput,
} from "@aws-sdk/client-eventbridge";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
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
  const bus = eventBridgeBus({ PutEventsCommand }, client, {
    busName: "main",
    source: "keelson.test",
    pause: async (attempt) => void pauses.push(attempt),
  });
  return {
    bus,
    calls,
    pauses,
    texts: () => calls.map((entries) => entries.map(({ Detail }) => Detail)),
  };
}

const numbered = (count: number) =>
  Array.from({ length: count }, (_, index) => ({ type: "file.created", text: `{"n":${index}}` }));
const passing = (reason: string) => ({ reason, isFinal: false });
const final = (reason: string) => ({ reason, isFinal: true });
const nothing = (count: number) => Array.from({ length: count }, () => undefined);

test.each([
  [100, 10],
  [1_000, 100],
])("puts %i events in %i calls, the first alone and up to four at a time", async (count, calls) => {
  const running: number[] = [];
  let now = 0;
  const send = async () => {
    running.push(++now);
    await new Promise((resolve) => setImmediate(resolve));
    now -= 1;
    return { Entries: taken(Array(10).fill({}), 0) };
  };
  const bus = eventBridgeBus({ PutEventsCommand }, { send } as unknown as EventBridgeClient, {
    ...{ busName: "main", source: "keelson.test", pause: async () => {} },
  });

  expect(await bus.put(numbered(count))).toEqual(nothing(count));
  expect(running).toHaveLength(calls);
  expect(running.slice(0, 5)).toEqual([1, 1, 2, 3, 4]);
  expect(Math.max(...running)).toBe(4);
});

test("puts an event under its type, with the source and the bus that the rules match", async () => {
  const { bus, calls, pauses } = busOf(taken);
  expect(await bus.put([{ type: "file.created", text: '{"n":1}' }])).toEqual([undefined]);
  expect(calls).toEqual([
    [
      {
        EventBusName: "main",
        Source: "keelson.test",
        DetailType: "file.created",
        Detail: '{"n":1}',
      },
    ],
  ]);
  expect(pauses).toEqual([]);
});

test("makes no call without events", async () => {
  const { bus, calls } = busOf(taken);
  expect(await bus.put([])).toEqual([]);
  expect(calls).toEqual([]);
});

test.each([
  [1, [1]],
  [10, [10]],
  [11, [10, 1]],
  [25, [10, 10, 5]],
])("puts %i events in calls of ten, in order", async (count, sizes) => {
  const { bus, calls, texts } = busOf(taken);
  expect(await bus.put(numbered(count))).toEqual(nothing(count));
  expect(calls.map(({ length }) => length)).toEqual(sizes);
  expect(texts().flat()).toEqual(numbered(count).map(({ text }) => text));
});

test("puts at most 1,048,576 bytes per call, and every event that fits alone", async () => {
  const sizes = fc.array(
    fc.oneof(fc.integer({ min: 2, max: 300 }), fc.integer({ min: 2, max: 520_000 })),
    { maxLength: 40 },
  );
  await fc.assert(
    fc.asyncProperty(sizes, async (lengths) => {
      const { bus, calls, texts } = busOf(taken);
      const events = lengths.map((length, index) => ({
        type: "file.created",
        text: `${index}${"ä".repeat(length)}`,
      }));
      await bus.put(events);
      expect(texts().flat()).toEqual(events.map(({ text }) => text));
      for (const entries of calls) {
        const bytes = entries.reduce(
          (sum, { Detail = "" }) => sum + Buffer.byteLength(Detail) + 512,
          0,
        );
        expect(bytes).toBeLessThanOrEqual(1_048_576);
        expect(entries.length).toBeGreaterThan(0);
      }
    }),
    { numRuns: 50 },
  );
});

test("puts two events that exactly fill a call in one call, and in two with one more byte", async () => {
  const half = 1_048_576 / 2 - 512;
  const sized = (bytes: number) => ({ type: "file.created", text: "x".repeat(bytes) });
  const full = busOf(taken);
  await full.bus.put([sized(half), sized(half)]);
  expect(full.calls).toHaveLength(1);
  const over = busOf(taken);
  await over.bus.put([sized(half), sized(half + 1)]);
  expect(over.calls).toHaveLength(2);
});

test("retries only the events that failed, after a pause", async () => {
  const { bus, texts, pauses } = busOf((entries, call) =>
    entries.map(({ Detail }) =>
      call === 1 && Detail?.includes("1")
        ? { ErrorCode: "ThrottlingException" }
        : { EventId: "b1" },
    ),
  );
  expect(await bus.put(numbered(3))).toEqual(nothing(3));
  expect(texts()).toEqual([['{"n":0}', '{"n":1}', '{"n":2}'], ['{"n":1}']]);
  expect(pauses).toEqual([1]);
});

test("retries the failures of several calls together", async () => {
  const { bus, texts } = busOf((entries, call) =>
    entries.map((_, index) =>
      call <= 3 && index === 0 ? { ErrorCode: "InternalFailure" } : { EventId: "b1" },
    ),
  );
  expect(await bus.put(numbered(25))).toEqual(nothing(25));
  expect(texts().at(-1)).toEqual(['{"n":0}', '{"n":10}', '{"n":20}']);
  expect(texts()).toHaveLength(4);
});

test("gives up an event after four failures, with the last reason in its place", async () => {
  const { bus, texts, pauses } = busOf((entries, call) =>
    entries.map(({ Detail }) =>
      Detail === '{"n":1}'
        ? { ErrorCode: "InternalFailure", ErrorMessage: `attempt ${call}` }
        : { EventId: "b1" },
    ),
  );
  expect(await bus.put(numbered(3))).toEqual([
    undefined,
    passing("InternalFailure attempt 4"),
    undefined,
  ]);
  expect(texts().map(({ length }) => length)).toEqual([3, 1, 1, 1]);
  expect(pauses).toEqual([1, 2, 3]);
});

test.each<[string, Answered | undefined, (string | undefined)[]]>([
  ["no entries", undefined, ["no answer", "no answer"]],
  ["fewer entries", [{ EventId: "b1" }], [undefined, "no answer"]],
  ["entries that say nothing", [{}, { ErrorMessage: "odd" }], ["no answer", "no answer odd"]],
  [
    "a code alone",
    [{ EventId: "b1" }, { ErrorCode: "InternalFailure" }],
    [undefined, "InternalFailure"],
  ],
])("does not count an answer with %s as success", async (_what, answered, reasons) => {
  let isFirst = true;
  const { bus } = busOf((entries) => {
    // The second event alone is put again where the first was taken.
    const now = isFirst || entries.length === 2 ? answered : answered?.slice(1);
    isFirst = false;
    return now;
  });
  expect(await bus.put(numbered(2))).toEqual(reasons.map((reason) => reason && passing(reason)));
});

describe("an entry that is rejected for good", () => {
  test.each(["MalformedDetail", "InvalidArgument", "RedactionFailure"])(
    "is not retried with %s",
    async (ErrorCode) => {
      const { bus, calls } = busOf((entries) =>
        entries.map((_, index) =>
          index === 1 ? { ErrorCode, ErrorMessage: "Detail is malformed." } : { EventId: "b1" },
        ),
      );
      expect(await bus.put(numbered(3))).toEqual([
        undefined,
        final(`${ErrorCode} Detail is malformed.`),
        undefined,
      ]);
      expect(calls).toHaveLength(1);
    },
  );

  test.each([
    ["AccessDeniedException", "no"],
    ["NotAuthorizedForSourceException", "no"],
    ["NotAuthorizedForDetailTypeException", "no"],
    ["InvalidAccountIdException", "no"],
    ["InvalidArgument", "Parameter EventBusName is not valid. Reason: it is of another account"],
    ["InvalidArgument", "Parameter Source is not valid. Reason: it may not begin with aws."],
  ])(
    "does not include %s, %s: the deployment is the cause, and the same entry may succeed later",
    async (ErrorCode, ErrorMessage) => {
      const { bus } = busOf((entries) => entries.map(() => ({ ErrorCode, ErrorMessage })));
      expect(await bus.put(numbered(1))).toEqual([passing(`${ErrorCode} ${ErrorMessage}`)]);
    },
  );

  test("has a reason of at most 500 characters", async () => {
    const { bus } = busOf((entries) =>
      entries.map(() => ({ ErrorCode: "MalformedDetail", ErrorMessage: "x".repeat(2_000) })),
    );
    expect((await bus.put(numbered(1)))[0]?.reason).toHaveLength(500);
  });
});

describe("a call that is rejected as a whole", () => {
  const failure = (name: string, message: string, more: object = {}) =>
    Object.assign(new Error(message), { name, ...more });
  const isBad = ({ Detail = "" }: Sent[number]) => Detail.includes("bad");
  const given = (...kinds: ("good" | "bad")[]) =>
    kinds.map((kind, n) => ({ type: "file.created", text: `{"${kind}":${n}}` }));

  test.each([
    [
      "ValidationException",
      failure("ValidationException", "Total size of the entries in the request exceeds the limit."),
    ],
    ["SerializationException", failure("SerializationException", "a text cannot be read")],
    ["413", failure("UnknownError", "too large", { $metadata: { httpStatusCode: 413 } })],
    ["RequestEntityTooLarge", failure("RequestEntityTooLarge", "too large")],
  ])(
    "with %s is split: each valid event is put once, in order, and the invalid one never",
    async (_what, error) => {
      const { bus, texts, pauses } = busOf((entries, call) => {
        if (entries.some(isBad)) throw error;
        return taken(entries, call);
      });
      const events = given("good", "bad", "good", "good");
      expect(await bus.put(events)).toEqual([
        undefined,
        final(String(error)),
        undefined,
        undefined,
      ]);
      expect(texts()).toEqual([
        events.map(({ text }) => text),
        ...events.map(({ text }) => [text]),
      ]);
      expect(pauses).toEqual([]);
    },
  );

  test("is retried without the invalid entry when another entry is throttled", async () => {
    const { bus, texts } = busOf((entries, call) => {
      if (entries.some(isBad)) throw failure("ValidationException", "no");
      return call === 2 ? [{ ErrorCode: "ThrottlingException" }] : taken(entries, call);
    });
    expect(await bus.put(given("good", "bad"))).toEqual([
      undefined,
      final("ValidationException: no"),
    ]);
    expect(texts().at(-1)).toEqual(['{"good":0}']);
  });

  test("delivers all valid entries, however many are invalid", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.constantFrom("good", "bad"), { maxLength: 40 }),
        async (kinds) => {
          const { bus, texts } = busOf((entries, call) => {
            if (entries.some(isBad)) throw failure("ValidationException", "no");
            return taken(entries, call);
          });
          const outcome = await bus.put(given(...kinds));
          expect(outcome.map((refusal) => (refusal === undefined ? "good" : "bad"))).toEqual(kinds);
          const went = texts().filter((batch) => !batch.some((text) => text?.includes("bad")));
          expect(went.flat().length).toBe(kinds.filter((kind) => kind === "good").length);
        },
      ),
    );
  });

  test("because of the bus or the source blames no event, and stops putting", async () => {
    for (const member of ["eventBusName", "source", "endpointId"]) {
      const message = `1 validation error detected: Value '!' at 'entries.1.member.${member}' failed to satisfy constraint`;
      const { bus, calls } = busOf(() => {
        throw failure("ValidationException", message);
      });
      const reason = `ValidationException: ${message.replace("Value '!'", "Value")}`;
      expect(await bus.put(numbered(20))).toEqual(numbered(20).map(() => passing(reason)));
      expect(calls).toHaveLength(1);
    }
  });

  test("is not quoted, because the rejected value may be a payload", async () => {
    const { bus } = busOf(() => {
      const value =
        '[PutEventsRequestEntry(detail={"card":"4111\' at \'home"}, eventBusName=main)]';
      throw failure(
        "ValidationException",
        `1 validation error detected: Value '${value}' at 'entries.1.member.detail' failed`,
      );
    });
    const reason =
      "ValidationException: 1 validation error detected: Value at 'entries.1.member.detail' failed";
    expect(await bus.put(numbered(1))).toEqual([final(reason)]);
  });

  test.each([
    ["InternalException", { $fault: "server" }],
    ["InternalFailure", { $metadata: { httpStatusCode: 500 } }],
  ])(
    "with %s is sent without the event that the service cannot process, which stays",
    async (name, more) => {
      const { bus } = busOf((entries, call) => {
        if (entries.some(isBad)) throw failure(name, "no", more);
        return taken(entries, call);
      });
      const stays = passing(`${name}: no`);
      expect(await bus.put(given("bad", "good", "good", "bad", "good"))).toEqual([
        stays,
        undefined,
        undefined,
        stays,
        undefined,
      ]);
    },
  );

  test("by a service that is down is tried three times besides the calls in progress, and the rest stays", async () => {
    const { bus, calls, pauses } = busOf((entries, call) => {
      if (call > 1) throw failure("InternalException", "no", { $fault: "server" });
      return taken(entries, call);
    });
    const left = passing("InternalException: no");
    expect(await bus.put(numbered(30))).toEqual([
      ...nothing(10),
      ...Array.from({ length: 20 }, () => left),
    ]);
    expect([calls.length, pauses]).toEqual([5, []]);
  });

  test.each([
    ["no connection", new Error("connect ECONNREFUSED")],
    [
      "ThrottlingException",
      failure("ThrottlingException", "slow down", {
        $fault: "client",
        $metadata: { httpStatusCode: 400 },
      }),
    ],
    [
      "AccessDeniedException",
      failure("AccessDeniedException", "no", {
        $fault: "client",
        $metadata: { httpStatusCode: 400 },
      }),
    ],
  ])(
    "for %s leaves the events that were not accepted before, without a retry",
    async (_what, error) => {
      for (const failing of [1, 2]) {
        const { bus, calls } = busOf((entries, call) => {
          if (call === failing) throw error;
          return taken(entries, call);
        });
        const done = (failing - 1) * 10;
        const left = Array.from({ length: 20 - done }, () => passing(String(error)));
        expect(await bus.put(numbered(20))).toEqual([...nothing(done), ...left]);
        expect(calls).toHaveLength(failing);
      }
    },
  );
});
