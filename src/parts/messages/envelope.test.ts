import fc from "fast-check";
import { expect, test } from "vitest";
import { isMisread } from "../../../test/support/misread-json.ts";
import { isPermanent, PermanentError } from "../../base/errors/errors.ts";
import { eventType } from "../../base/errors/option-table.ts";
import { isIdentifier } from "../../base/identity/access.ts";
import {
  asksSystem,
  causeOf,
  envelopeText,
  eventPayload,
  idOf,
  objectOf,
  openEnvelope,
  readEnvelope,
  recordOf,
  type SharedEvent,
} from "./envelope.ts";

const event: SharedEvent = {
  kind: "shared",
  type: "file.created",
  eventId: "e1",
  payload: { name: "a.txt" },
  causedBy: "r1",
  origRequestId: "r0",
  tenantId: "acme",
  userId: "ann",
};

/** The text of an event that is published. */
const published = (given: SharedEvent) =>
  envelopeText({ ...given, payload: eventPayload(given.type, given.payload) });

/** A text as EventBridge puts it into a queue. */
function wrapped(text: string): string {
  const entry = {
    version: "0",
    id: "b1",
    "detail-type": "file.created",
    source: "keelson",
    account: "1",
    resources: [],
  };
  return JSON.stringify({ ...entry, detail: JSON.parse(text) });
}

const ids = fc.stringMatching(/^[A-Za-z0-9._:=+/@-]{1,128}$/);
const names = fc.string({ minLength: 1, maxLength: 30, unit: "grapheme" }).filter(isIdentifier);
const types = fc.stringMatching(/^[a-z][a-z0-9-]{0,62}\.[a-z][a-z0-9-]{0,62}$/);
const payloads = fc
  .dictionary(
    fc.string().filter((name) => name !== "requestId"),
    fc.jsonValue(),
  )
  .filter((payload) => !isMisread(payload));
const originator = fc.constant("system" as const);
const whose = fc.oneof(
  ...[
    fc.constant({}),
    fc.record({ tenantId: names }),
    fc.record({ tenantId: names, userId: names }),
  ],
  ...[fc.record({ originator }), fc.record({ tenantId: names, originator })],
);

test("reads a published event unchanged, with or without EventBridge's wrapper", () => {
  fc.assert(
    fc.property(
      types,
      ids,
      ids,
      ids,
      payloads,
      whose,
      (type, eventId, causedBy, origRequestId, given, of) => {
        const payload: unknown = JSON.parse(JSON.stringify(given)); // -0 is 0 in JSON
        const text = published({
          kind: "shared",
          type,
          eventId,
          payload,
          causedBy,
          origRequestId,
          ...of,
        });
        for (const body of [text, wrapped(text)]) {
          const { payload: read, ...rest } = readEnvelope(body);
          expect(rest).toEqual({ kind: "shared", type, eventId, causedBy, origRequestId, ...of });
          expect(JSON.stringify(read)).toBe(JSON.stringify(payload));
        }
      },
    ),
  );
});

test("adds the first request's ID to the payload on the wire, and removes it when reading", () => {
  const text = published(event);
  const payload = { name: "a.txt", requestId: "r0" };
  expect(JSON.parse(text)).toEqual({ ...event, payload, group: "acme" });
  expect(readEnvelope(text)).toEqual(event);
});

test("reads an event of an older version, without group and originator, as not created by the system", () => {
  const text =
    '{"kind":"shared","type":"file.created","eventId":"e1","payload":{"name":"a.txt","requestId":"r0"},"causedBy":"r1","origRequestId":"r0","tenantId":"acme","userId":"ann"}';
  expect(readEnvelope(text)).toEqual(event);
  expect(published(event)).toBe(text.replace(/}$/, ',"group":"acme"}'));
});

test("every envelope has a group, which consumers do not see", () => {
  const { tenantId: _, userId: _user, ...anonymous } = event;
  for (const [sent, group] of [
    [{ ...event, tenantId: "x\u00fc" }, expect.stringMatching(/^sha256:/)],
    [anonymous, "-"],
    [{ ...event, payload: { name: "\uFFFE" } }, "acme"],
  ] as const) {
    const text = published(sent);
    expect(JSON.parse(text)).toMatchObject({ group });
    expect(readEnvelope(text)).toEqual(sent);
  }
});

test("carries the trace of the publisher if it is valid, and hides it from consumers", () => {
  const trace = {
    traceparent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
    tracestate: "a=1",
  };
  const text = envelopeText({ ...event, payload: { name: "a.txt" } }, { trace });
  expect(openEnvelope(JSON.parse(text))).toEqual({
    event,
    trace: {
      traceId: "4bf92f3577b34da6a3ce929d0e0e4736",
      spanId: "00f067aa0ba902b7",
      sampled: true,
      state: "a=1",
    },
  });
  const hostile = [
    null,
    7,
    trace.traceparent,
    [trace],
    { traceparent: [trace.traceparent] },
    { ...trace, traceparent: "00" },
  ];
  for (const given of hostile) {
    expect(openEnvelope({ ...JSON.parse(text), trace: given })).toEqual({
      event,
      trace: undefined,
    });
  }
  const long = { ...trace, tracestate: `a=${"x".repeat(600)}` };
  expect(openEnvelope({ ...JSON.parse(text), trace: long }).trace).toMatchObject({
    state: undefined,
  });
});

test("carries the proof of an event, and its source if it came over the bus", () => {
  const proof = { key: "2026", mac: "m" };
  const text = envelopeText({ ...event, payload: { name: "a.txt" } }, { proof });
  expect(openEnvelope(JSON.parse(text))).toEqual({ event, proof, source: undefined });
  expect(openEnvelope(JSON.parse(wrapped(text)))).toEqual({ event, proof, source: "keelson" });
  expect(openEnvelope(JSON.parse(wrapped(published(event))))).toEqual({
    event,
    proof: undefined,
    source: "keelson",
  });
});

test("leaves the publisher's payload unchanged", () => {
  const payload = Object.freeze({ name: "a.txt" });
  published({ ...event, payload });
  expect(payload).toEqual({ name: "a.txt" });
});

test.each([
  ["undefined", undefined],
  ["null", null],
  ["a number", 7],
  ["a text", "a.txt"],
  ["a list", [{ name: "a.txt" }]],
  ["a function", () => 1],
])("refuses to publish a payload that is %s", (_what, payload) => {
  const message = "ctx.publish: the payload of file.created is not an object";
  expect(() => published({ ...event, payload })).toThrow(new TypeError(message));
});

test.each([
  ["a text", new Date(0)],
  ["a number", { toJSON: () => 7 }],
  ["nothing", { toJSON: () => undefined }],
])(
  "refuses to publish a payload that JSON turns into %s, which no consumer could read",
  (_what, payload) => {
    const message = "ctx.publish: the payload of file.created is not an object";
    expect(() => published({ ...event, payload })).toThrow(new TypeError(message));
  },
);

test("refuses to publish a payload with a requestId of its own", () => {
  expect(() => published({ ...event, payload: { requestId: "r9" } })).toThrow(
    new TypeError(
      'ctx.publish: the payload of file.created has a "requestId", which is keelson\'s own; rename it',
    ),
  );
});

test("refuses to publish a payload that JSON cannot represent", () => {
  const circle: { itself?: unknown } = {};
  circle.itself = circle;
  expect(() => published({ ...event, payload: { size: 1n } })).toThrow(TypeError);
  expect(() => published({ ...event, payload: circle })).toThrow(TypeError);
});

/** What SQS takes as a message. */
const isTaken = (text: string) =>
  /^[\t\n\r\u0020-\uD7FF\uE000-\uFFFD\u{10000}-\u{10FFFF}]*$/u.test(text);
const unfitTexts = fc.string({
  unit: fc.constantFrom("\uFFFE", "\uFFFF", "\ud800", "\udfff", "\\", "u", "d800", '"', "\0", "a"),
});

test("a queue accepts an event with any characters as the bus writes it, and it is read back unchanged", () => {
  fc.assert(
    fc.property(fc.dictionary(unfitTexts, unfitTexts), (payload) => {
      fc.pre(!isMisread(payload));
      const text = published({ ...event, payload });
      for (const body of [text, wrapped(text)]) {
        // A writer that escapes no more than it has to, as the bus may be one, leaves half surrogates as they are.
        expect(body).not.toMatch(/(?<!\\)(?:\\\\)*\\ud[89a-f]/);
        expect(isTaken(body)).toBe(true);
        expect(JSON.stringify(readEnvelope(body))).toBe(
          JSON.stringify({ ...event, payload: { ...payload } }),
        );
      }
    }),
  );
});

test("sends a payload as text with the first request's ID only if the bus could not deliver it otherwise", () => {
  const { payloadText, ...rest } = JSON.parse(published({ ...event, payload: { name: "\uFFFE" } }));
  expect(rest).toEqual({ ...event, payload: undefined, group: "acme" });
  expect(payloadText).toBe(String.raw`{"name":"\ufffe","requestId":"r0"}`);
  expect(published({ ...event, payload: { name: "\u{1FFFE}\0\u2028" } })).not.toContain(
    "payloadText",
  );
  expect(() => readEnvelope(JSON.stringify({ ...rest, payloadText: "{" }))).toThrow(
    new PermanentError("its payload is not JSON"),
  );
  expect(() => readEnvelope(JSON.stringify({ ...rest, payloadText: "[]" }))).toThrow(
    new PermanentError("its payload is not an object"),
  );
  expect(() => readEnvelope(JSON.stringify({ ...rest, payloadText: {} }))).toThrow(
    new PermanentError("its payload is not an object"),
  );
  expect(readEnvelope(JSON.stringify({ ...event, payloadText }))).toEqual(event);
});

test("counts escapes towards the size of an event", () => {
  expect(() => published({ ...event, payload: { text: "\uFFFE".repeat(180_000) } })).toThrow(
    RangeError,
  );
});

test("accepts an event up to EventBridge's limit, and refuses one byte more with both sizes", () => {
  const room = 1_048_576 - 512 - Buffer.byteLength(published({ ...event, payload: { text: "" } }));
  const sized = (text: string) => published({ ...event, payload: { text } });
  expect(Buffer.byteLength(sized("x".repeat(room)))).toBe(1_048_576 - 512);
  expect(() => sized("x".repeat(room + 1))).toThrow(
    new RangeError(
      "ctx.publish: the event file.created has 1048577 bytes, and EventBridge takes 1048576; publish where the data is, not the data",
    ),
  );
  expect(() => sized("€".repeat(Math.ceil(room / 2)))).toThrow(RangeError); // its bytes count, not its characters
});

test.each<[string, unknown, string]>([
  ["null", null, "the message is not an object"],
  ["a number", 7, "the message is not an object"],
  ["a text", "event", "the message is not an object"],
  ["a list", [event], "the message is not an object"],
  ["an object without members", {}, "its kind is not shared"],
  [
    "a message of EventBridge without a detail",
    { "detail-type": "file.created" },
    "its detail is not an object",
  ],
  [
    "a detail that is a text",
    { "detail-type": "file.created", detail: JSON.stringify(event) },
    "its detail is not an object",
  ],
  [
    "a detail that is a list",
    { "detail-type": "file.created", detail: [event] },
    "its detail is not an object",
  ],
  ["another kind", { ...event, kind: "private" }, "its kind is not shared"],
  ["a kind in a list", { ...event, kind: ["shared"] }, "its kind is not shared"],
  ["no type", { ...event, type: undefined }, "its type is not <entity>.<event name>"],
  [
    "a type in a list",
    { ...event, type: ["file.created"] },
    "its type is not <entity>.<event name>",
  ],
  ["a type of one word", { ...event, type: "created" }, "its type is not <entity>.<event name>"],
  ["a type of three words", { ...event, type: "a.b.c" }, "its type is not <entity>.<event name>"],
  [
    "a type with a line break",
    { ...event, type: "file.created\n" },
    "its type is not <entity>.<event name>",
  ],
  [
    "a type that objects have",
    { ...event, type: "__proto__" },
    "its type is not <entity>.<event name>",
  ],
  ["no payload", { ...event, payload: undefined }, "its payload is not an object"],
  ["a payload that is null", { ...event, payload: null }, "its payload is not an object"],
  ["a payload that is a list", { ...event, payload: [] }, "its payload is not an object"],
  ["a payload that is a text", { ...event, payload: "{}" }, "its payload is not an object"],
  ["no ID", { ...event, eventId: undefined }, "eventId is not an ID"],
  ["an ID that is too long", { ...event, eventId: "e".repeat(129) }, "eventId is not an ID"],
  ["an ID with odd characters", { ...event, eventId: "e1\u001b[0m" }, "eventId is not an ID"],
  ["a cause that is too long", { ...event, causedBy: "r".repeat(129) }, "causedBy is not an ID"],
  [
    "a first request with a line break",
    { ...event, origRequestId: "r1\nr2" },
    "origRequestId is not an ID",
  ],
  [
    "a tenant without text",
    { ...event, tenantId: "" },
    "tenantId is not a string of 1 to 256 characters without control characters",
  ],
  [
    "a tenant that is null",
    { ...event, tenantId: null },
    "tenantId is not a string of 1 to 256 characters without control characters",
  ],
  ["a user without a tenant", { ...event, tenantId: undefined }, "userId comes without a tenantId"],
])("refuses a forged message with %s permanently, with the reason", (_what, forged, message) => {
  expect(() => readEnvelope(JSON.stringify(forged))).toThrow(new PermanentError(message));
});

test("permanently refuses a message that is not JSON", () => {
  expect(() => readEnvelope("{")).toThrow(new PermanentError("the message is not JSON"));
});

test("treats members called __proto__ as data, and never uses them for a missing member", () => {
  const payload = JSON.parse('{"__proto__":{"isAdmin":true},"name":"a.txt"}') as {
    readonly isAdmin?: unknown;
  };
  const read = readEnvelope(published({ ...event, payload })).payload as typeof payload;
  expect(read.isAdmin).toBeUndefined();
  expect(Object.keys(read)).toEqual(["__proto__", "name"]);
  const { kind: _kind, ...rest } = event;
  const forged = `{"__proto__":{"kind":"shared"},${JSON.stringify(rest).slice(1)}`;
  expect(() => readEnvelope(forged)).toThrow(new PermanentError("its kind is not shared"));
});

const anyMember = fc.oneof(
  fc.constant("shared"),
  fc.constant("file.created"),
  ids,
  names,
  payloads,
  fc.jsonValue(),
);
const nearlyEvents = fc.record(
  {
    kind: fc.oneof(fc.constant("shared"), anyMember),
    type: fc.oneof(types, anyMember),
    eventId: fc.oneof(ids, anyMember),
    payload: fc.oneof(payloads, anyMember),
    causedBy: fc.oneof(ids, anyMember),
    origRequestId: fc.oneof(ids, anyMember),
    tenantId: fc.oneof(names, anyMember),
    userId: fc.oneof(names, anyMember),
    originator: fc.oneof(originator, anyMember),
  },
  { requiredKeys: ["kind", "type"] },
);
const bodies = fc.oneof(
  fc.string(),
  fc.json(),
  nearlyEvents.map((nearly) => JSON.stringify(nearly)),
  nearlyEvents.map((nearly) => wrapped(JSON.stringify(nearly))),
);

test("reads any text or refuses it permanently", () => {
  let [reads, refusals] = [0, 0];
  fc.assert(
    fc.property(bodies, (text) => {
      try {
        const read = readEnvelope(text);
        expect(
          eventType.test(read.type) && read.kind === "shared" && typeof read.payload === "object",
        ).toBe(true);
        reads += 1;
      } catch (error) {
        if (!isPermanent(error)) throw error;
        refusals += 1;
      }
    }),
    { numRuns: 2_000 },
  );
  expect(Math.min(reads, refusals)).toBeGreaterThan(0);
});

test.each([
  ["file.created", true],
  ["audit-log.rotated-twice2", true],
  [`${"a".repeat(63)}.${"b".repeat(63)}`, true],
  [`${"a".repeat(64)}.b`, false],
  [`a.${"b".repeat(64)}`, false],
  ["", false],
  [".", false],
  ["file", false],
  ["file.", false],
  ["File.created", false],
  ["1file.created", false],
  ["file.-created", false],
  ["file.created.twice", false],
  ["file created", false],
])("%j as an event type: %s", (type, expected) => {
  expect(eventType.test(type)).toBe(expected);
});

const chain = { causedBy: "r1", origRequestId: "r1" };

test.each([
  ["nobody", {}],
  ["a tenant", { tenantId: "acme" }],
  ["a user of a tenant", { tenantId: "acme", userId: "ann" }],
  ["names as long as they may be", { tenantId: "t".repeat(256), userId: "u".repeat(256) }],
  ["names in any script", { tenantId: "Bäckerei 東京 🥐", userId: "-" }],
  ["the system", { originator: "system" }],
  ["a tenant, from the system", { tenantId: "acme", originator: "system" }],
])("reads the cause of a message of %s", (_whose, whose) => {
  expect(causeOf({ ...chain, ...whose, more: 1 })).toEqual({ ...chain, ...whose });
});

const noName = "is not a string of 1 to 256 characters without control characters";

test.each<[string, Record<string, unknown>, string]>([
  ["no cause", { causedBy: undefined }, "causedBy is not an ID"],
  ["a cause that is a number", { causedBy: 7 }, "causedBy is not an ID"],
  ["no first request", { origRequestId: undefined }, "origRequestId is not an ID"],
  ["a first request that is a list", { origRequestId: ["r1"] }, "origRequestId is not an ID"],
  ["a tenant that is null", { tenantId: null }, `tenantId ${noName}`],
  ["a tenant without text", { tenantId: "" }, `tenantId ${noName}`],
  ["a tenant that is an object", { tenantId: {} }, `tenantId ${noName}`],
  ["a tenant that is too long", { tenantId: "t".repeat(257) }, `tenantId ${noName}`],
  ["a user that is null", { tenantId: "acme", userId: null }, `userId ${noName}`],
  ["a user without text", { tenantId: "acme", userId: "" }, `userId ${noName}`],
  ["a user that is too long", { tenantId: "acme", userId: "u".repeat(257) }, `userId ${noName}`],
  ["a tenant with a line break", { tenantId: "acme\n" }, `tenantId ${noName}`],
  [
    "a user with an escape of the terminal",
    { tenantId: "acme", userId: "\u001b[31mann" },
    `userId ${noName}`,
  ],
  ["a user without a tenant", { userId: "ann" }, "userId comes without a tenantId"],
  ["another originator", { originator: "root" }, 'originator is not "system"'],
  ["an originator that is null", { originator: null }, 'originator is not "system"'],
  ["an originator that is a list", { originator: ["system"] }, 'originator is not "system"'],
])("permanently refuses a message with %s", (_what, members, message) => {
  expect(() => causeOf({ ...chain, ...members })).toThrow(new PermanentError(message));
});

test.each([
  [true, "of the system", { originator: "system" }],
  [false, "of the system for a tenant", { tenantId: "acme", originator: "system" }],
  [false, "that says nothing of its originator", {}],
] as const)(
  "returns %s for whether a system run is requested by a message %s",
  (isSystem, _what, message) => {
    expect(asksSystem(message)).toBe(isSystem);
  },
);

test.each([
  ["tenant", { tenantId: "acme\ud800" }],
  ["user", { tenantId: "acme", userId: "\udc00ann" }],
])(
  "refuses a %s with half a surrogate pair, because two such names would have the same hash",
  (_whose, whose) => {
    expect(() => causeOf({ ...chain, ...whose })).toThrow(PermanentError);
  },
);

test.each(["r1", "a", "A-Z.a_z:0=9+/@-", "x".repeat(128)])("accepts %s as an ID", (id) => {
  expect(idOf({ jobId: id }, "jobId")).toBe(id);
});

test.each([
  ["nothing", undefined],
  ["null", null],
  ["a number", 1],
  ["a text without characters", ""],
  ["a text that is too long", "x".repeat(129)],
  ["a space", "a b"],
  ["a line break", "a\n"],
  ["a list of IDs", "a,b"],
  ["an escape of the terminal", "\u001b[31m"],
  ["letters beyond ASCII", "ä"],
  ["an object that becomes an ID", { toString: () => "r1" }],
])("refuses %s as an ID, and names the member", (_what, id) => {
  expect(() => idOf({ jobId: id }, "jobId")).toThrow(new PermanentError("jobId is not an ID"));
});

test("parses a JSON object", () => {
  expect(objectOf('{"a":{"b":[1]}}', "the message")).toEqual({ a: { b: [1] } });
});

test.each([
  ["", "the message is not JSON"],
  ["{", "the message is not JSON"],
  ["{'a':1}", "the message is not JSON"],
  ["null", "the message is not an object"],
  ["7", "the message is not an object"],
  ['"text"', "the message is not an object"],
  ["[]", "the message is not an object"],
  ['[{"a":1}]', "the message is not an object"],
])("permanently refuses the text %j", (text, message) => {
  expect(() => objectOf(text, "the message")).toThrow(new PermanentError(message));
});

test.each([undefined, null, 7, "text", true, [], () => 1])(
  "refuses %s as an object, and names the value in the error",
  (value) => {
    let thrown: unknown;
    try {
      recordOf(value, "its payload");
    } catch (error) {
      thrown = error;
    }
    expect(isPermanent(thrown)).toBe(true);
    expect(String(thrown)).toBe("PermanentError: its payload is not an object");
  },
);

test("a member called __proto__ changes no object", () => {
  const message = objectOf(
    '{"__proto__":{"tenantId":"evil"},"causedBy":"r1","origRequestId":"r1"}',
    "the message",
  );
  expect(causeOf(message).tenantId).toBeUndefined();
  expect(({} as { tenantId?: unknown }).tenantId).toBeUndefined();
});
