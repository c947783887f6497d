import { createSecretKey, randomBytes } from "node:crypto";
import fc from "fast-check";
import { expect, test } from "vitest";
import { codePoint } from "../../../test/support/code-point.ts";
import { isMisread } from "../../../test/support/misread-json.ts";
import { isProven, type ProvenMessage, proofMode, proofOf, readProof } from "./proof.ts";

const key = createSecretKey(randomBytes(32));
const message: ProvenMessage = {
  kind: "job",
  source: "keelson",
  name: "files.file.scan",
  id: "j1",
  causedBy: "e1",
  origRequestId: "r0",
  tenantId: "acme",
  userId: "ann",
  payload: { name: "a.txt", sizes: [1, 2.5, -3e21], of: { "": null, é: "ü\u2028" } },
};

const ids = fc.stringMatching(/^[A-Za-z0-9._:=+/@-]{1,128}$/);
const names = fc.string({ minLength: 1, maxLength: 30, unit: "grapheme" });
/** As it comes out of JSON, where there is no -0. */
const json = (value: unknown): unknown => JSON.parse(JSON.stringify(value));
const payloads = fc
  .dictionary(
    fc.oneof(
      fc.string({ unit: codePoint }),
      fc.constantFrom("__proto__", "toJSON", "0", "10", "2"),
    ),
    fc.jsonValue(),
  )
  .filter((payload) => !isMisread(payload))
  .map(json);
const messages: fc.Arbitrary<ProvenMessage> = fc.record({
  kind: fc.constantFrom("event", "job"),
  source: names,
  name: ids,
  id: ids,
  causedBy: ids,
  origRequestId: ids,
  tenantId: fc.option(names, { nil: undefined }),
  userId: fc.option(names, { nil: undefined }),
  originator: fc.option(fc.constant("system" as const), { nil: undefined }),
  payload: payloads,
});

/**
 * JSON of the same value in another hand: members in another order, blanks, escapes (but in names of one character, see
 * {@link isMisread}), other notations of numbers.
 */
function rewritten(value: unknown, turn: () => number): string {
  const blank = () => ["", " ", "\n", "\t\r "][turn() % 4] as string;
  if (typeof value === "string") {
    const characters = Array.from({ length: value.length }, (_, at) => {
      const code = value.charCodeAt(at);
      const hex = code.toString(16).padStart(4, "0");
      return turn() % 2 === 0 || code >= 0xd800
        ? `\\u${turn() % 2 === 0 ? hex : hex.toUpperCase()}`
        : JSON.stringify(value[at]).slice(1, -1);
    });
    return `"${characters.join("")}"`;
  }
  if (typeof value === "number") {
    const exponent = value.toExponential();
    const plain = String(value);
    return [plain, exponent, exponent.toUpperCase(), /^-?\d+$/.test(plain) ? `${plain}.0` : plain][
      turn() % 4
    ] as string;
  }
  if (Array.isArray(value))
    return `[${blank()}${value.map((part) => rewritten(part, turn)).join(`${blank()},${blank()}`)}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const members = Object.entries(value)
    .filter(([, part]) => part !== undefined)
    .map(([name, part]) => ({ at: turn(), name, part }));
  return `{${members
    .sort((one, other) => one.at - other.at)
    .map(
      ({ name, part }) =>
        `${blank()}${name.length === 1 ? JSON.stringify(name) : rewritten(name, turn)}${blank()}:${rewritten(part, turn)}`,
    )
    .join(",")}${blank()}}`;
}

test("a message keeps its proof when its JSON is reformatted", () => {
  fc.assert(
    fc.property(messages, fc.integer({ min: 1 }), (given, seed) => {
      let state = seed;
      const turn = () => {
        state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 1;
        return state >>> 8;
      };
      const text = rewritten(given, turn);
      const read = {
        tenantId: undefined,
        userId: undefined,
        ...(JSON.parse(text) as ProvenMessage),
      };
      expect(isProven(read, proofOf(given, "k", key), key)).toBe(true);
    }),
    { numRuns: 200 },
  );
});

test("messages that differ in any part have different proofs", () => {
  fc.assert(
    fc.property(messages, messages, (one, other) => {
      // One part of the other is enough.
      for (const member of Object.keys(one) as (keyof ProvenMessage)[]) {
        const changed = { ...one, [member]: other[member] };
        // A text of a value tells all apart that JSON does, and absent from empty.
        const isSame =
          JSON.stringify([typeof one[member], sorted(one[member])]) ===
          JSON.stringify([typeof other[member], sorted(other[member])]);
        expect([member, isProven(changed, proofOf(one, "k", key), key)]).toEqual([member, isSame]);
      }
    }),
    { numRuns: 100 },
  );
});

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== "object" || value === null) return value;
  return Object.entries(value)
    .map(([name, part]) => [name, sorted(part)] as const)
    .sort(([a], [b]) => (a < b ? -1 : 1));
}

const proof = proofOf(message, "2026", key);

test("a proof names its key, and is valid only with that key", () => {
  expect(proof).toEqual({ key: "2026", mac: expect.stringMatching(/^[A-Za-z0-9_-]{43}$/) });
  expect(isProven(message, proof, key)).toBe(true);
  expect(isProven(message, proof, createSecretKey(randomBytes(32)))).toBe(false);
});

test.each<[string, Partial<ProvenMessage>]>([
  ["the kind", { kind: "event" }],
  ["the server", { source: "keelson-2" }],
  ["the name", { name: "files.file.drop" }],
  ["the ID", { id: "j2" }],
  ["the cause", { causedBy: "e2" }],
  ["the first request", { origRequestId: "r1" }],
  ["the tenant", { tenantId: "globex" }],
  ["the tenant, which is gone,", { tenantId: undefined, userId: undefined }],
  ["the user", { userId: "bob" }],
  ["the user, who is gone,", { userId: undefined }],
  ["the user, whose absence is spelt out,", { userId: "-" }],
  ["a character that moves from one part to the next", { causedBy: "e", origRequestId: "1r0" }],
  ["the tenant and the user, who change places,", { tenantId: "ann", userId: "acme" }],
  ["the originator, which is added,", { originator: "system" }],
  ["the payload", { payload: {} }],
  ["a number that becomes a text", { payload: { ...(message.payload as object), name: 7 } }],
  ["a member that is added", { payload: { ...(message.payload as object), admin: true } }],
  ["the order of a list", { payload: { ...(message.payload as object), sizes: [2.5, 1, -3e21] } }],
])("a proof becomes invalid after a change: %s", (_what, change) => {
  expect(isProven({ ...message, ...change }, proof, key)).toBe(false);
});

test("the proof of a tenant without a user is invalid for a user without a tenant", () => {
  const { tenantId: _tenant, userId: _user, ...nobody } = message;
  const ofTenant = proofOf({ ...nobody, tenantId: "acme" }, "k", key);
  expect(isProven({ ...nobody, userId: "acme" }, ofTenant, key)).toBe(false);
});

test("the proof of a system message is invalid without the system originator or with a tenant", () => {
  const { tenantId: _tenant, userId: _user, ...nobody } = message;
  const ofSystem = proofOf({ ...nobody, originator: "system" }, "k", key);
  expect(isProven({ ...nobody, originator: "system" }, ofSystem, key)).toBe(true);
  expect(isProven(nobody, ofSystem, key)).toBe(false);
  expect(isProven({ ...nobody, originator: "system", tenantId: "acme" }, ofSystem, key)).toBe(
    false,
  );
});

test("every version produces the same proof, as a rolling deployment needs", () => {
  const { mac } = proofOf(message, "2026", createSecretKey(Buffer.alloc(32)));
  // Computed by hand: HMAC-SHA-256 of "1:13:job7:keelson15:files.file.scan2:j1…".
  expect(mac).toBe("e5zJlqCxr91mpiqmq5kAVju8_fUANaMt_0z-PTncoAY");
  const said = proofOf(
    { ...message, originator: undefined },
    "2026",
    createSecretKey(Buffer.alloc(32)),
  );
  expect(said.mac).toBe(mac);
});

test.each([
  ["a null that was signed", "null", "1e999"],
  ["a 0 that was signed", "0", "-0"],
])("a number that JSON reads but never writes does not pass for %s", (_what, signed, forged) => {
  const of = (number: string): ProvenMessage => ({
    ...message,
    payload: JSON.parse(`{"n":${number}}`),
  });
  const signedProof = proofOf(of(signed), "k", key);
  expect(isProven(of(signed), signedProof, key)).toBe(true);
  expect(isProven(of(forged), signedProof, key)).toBe(false);
});

test("a deeply nested payload has no valid proof, and does not overflow the stack", () => {
  const nested = JSON.parse(`${'{"n":'.repeat(40_000)}1${"}".repeat(40_000)}`) as unknown;
  expect(isProven({ ...message, payload: nested }, proof, key)).toBe(false);
});

test("reads a proof as it was written, and drops unknown members", () => {
  expect(readProof({ ...proof, more: 1 })).toEqual(proof);
});

test.each([
  ["nothing", undefined],
  ["null", null],
  ["a text", proof.mac],
  ["a list", [proof]],
  ["no key", { mac: proof.mac }],
  ["a key that is a number", { ...proof, key: 7 }],
  ["a key with a line break", { ...proof, key: "k\n" }],
  ["a key that is too long", { ...proof, key: "k".repeat(65) }],
  ["no MAC", { key: "k" }],
  ["a MAC that is too short", { ...proof, mac: proof.mac.slice(1) }],
  ["a MAC that is too long", { ...proof, mac: `${proof.mac}A` }],
  ["a MAC that is not Base64url", { ...proof, mac: `+${proof.mac.slice(1)}` }],
  ["a MAC that is bytes", { ...proof, mac: [1, 2, 3] }],
  ["a MAC in a list", { ...proof, mac: [proof.mac] }],
])("refuses %s as a proof", (_what, value) => {
  expect(readProof(value)).toBeUndefined();
});

test("signs messages if there is a key ring, unless configured otherwise", () => {
  expect([proofMode(undefined, true), proofMode(undefined, false)]).toEqual(["sign", "off"]);
  for (const said of ["off", "sign", "require"] as const) expect(proofMode(said, true)).toBe(said);
});
