import { expect, test } from "vitest";
import { isPermanent, PermanentError } from "../../base/errors/permanent-error.ts";
import { asksSystem, causeOf, idOf, objectOf, recordOf } from "./cause.ts";

const ids = { causedBy: "r1", origRequestId: "r1" };

test.each([
  ["nobody", {}],
  ["a tenant", { tenantId: "acme" }],
  ["a user of a tenant", { tenantId: "acme", userId: "ann" }],
  ["names as long as they may be", { tenantId: "t".repeat(256), userId: "u".repeat(256) }],
  ["names in any script", { tenantId: "Bäckerei 東京 🥐", userId: "-" }],
  ["the system", { originator: "system" }],
  ["a tenant, from the system", { tenantId: "acme", originator: "system" }],
])("the cause of a message of %s is read", (_whose, whose) => {
  expect(causeOf({ ...ids, ...whose, more: 1 })).toEqual({ ...ids, ...whose });
});

const name = "is not a text of 1 to 256 characters without control characters";

test.each<[string, Record<string, unknown>, string]>([
  ["no cause", { causedBy: undefined }, "causedBy is not an ID"],
  ["a cause that is a number", { causedBy: 7 }, "causedBy is not an ID"],
  ["no first request", { origRequestId: undefined }, "origRequestId is not an ID"],
  ["a first request that is a list", { origRequestId: ["r1"] }, "origRequestId is not an ID"],
  ["a tenant that is null", { tenantId: null }, `tenantId ${name}`],
  ["a tenant without text", { tenantId: "" }, `tenantId ${name}`],
  ["a tenant that is an object", { tenantId: {} }, `tenantId ${name}`],
  ["a tenant that is too long", { tenantId: "t".repeat(257) }, `tenantId ${name}`],
  ["a user that is null", { tenantId: "acme", userId: null }, `userId ${name}`],
  ["a user without text", { tenantId: "acme", userId: "" }, `userId ${name}`],
  ["a user that is too long", { tenantId: "acme", userId: "u".repeat(257) }, `userId ${name}`],
  ["a tenant with a line break", { tenantId: "acme\n" }, `tenantId ${name}`],
  [
    "a user with an escape of the terminal",
    { tenantId: "acme", userId: "\u001b[31mann" },
    `userId ${name}`,
  ],
  ["a user without a tenant", { userId: "ann" }, "userId comes without a tenantId"],
  ["another originator", { originator: "root" }, 'originator is not "system"'],
  ["an originator that is null", { originator: null }, 'originator is not "system"'],
  ["an originator that is a list", { originator: ["system"] }, 'originator is not "system"'],
])("a message with %s is refused for good", (_what, members, message) => {
  expect(() => causeOf({ ...ids, ...members })).toThrow(new PermanentError(message));
});

test.each([
  [true, "of the system", { originator: "system" }],
  [false, "of the system for a tenant", { tenantId: "acme", originator: "system" }],
  [false, "that says nothing of its originator", {}],
] as const)(
  "that it asks for a run of the system is %s of a message %s",
  (isSystem, _what, message) => {
    expect(asksSystem(message)).toBe(isSystem);
  },
);

test.each([
  ["tenant", { tenantId: "acme\ud800" }],
  ["user", { tenantId: "acme", userId: "\udc00ann" }],
])(
  "a %s with half a surrogate pair is refused, since two of them would be hashed as one",
  (_whose, whose) => {
    expect(() => causeOf({ ...ids, ...whose })).toThrow(PermanentError);
  },
);

test.each(["r1", "a", "A-Z.a_z:0=9+/@-", "x".repeat(128)])("%s is an ID", (id) => {
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
])("%s is no ID, and its member is named", (_what, id) => {
  expect(() => idOf({ jobId: id }, "jobId")).toThrow(new PermanentError("jobId is not an ID"));
});

test("a text of an object is read as that object", () => {
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
])("the text %j is refused for good", (text, message) => {
  expect(() => objectOf(text, "the message")).toThrow(new PermanentError(message));
});

test.each([undefined, null, 7, "text", true, [], () => 1])(
  "%s is no object, and the error says of what",
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
