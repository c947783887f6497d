import { inspect } from "node:util";
import { expect, test } from "vitest";
import {
  developmentKeyRing,
  newRingKey,
  parseKeyRing,
  parseKeyRingText,
  proofKey,
  pruned,
  retiredKey,
} from "./key-ring.ts";

const [old, young] = [newRingKey(), newRingKey()];
const ring = (value: unknown) => JSON.stringify(value);

test("a ring has keys by name, one of which seals", () => {
  const { active, keys } = parseKeyRing(
    ring({ active: "2026", keys: { "2025": old, "2026": young } }),
  );
  expect(active).toBe("2026");
  expect([...keys.keys()]).toEqual(["2025", "2026"]);
  expect(keys.get("2025")?.export().toString("base64")).toBe(old);
});

test("printing a ring shows no key", () => {
  const printed = inspect(parseKeyRing(ring({ active: "a", keys: { a: old } })), {
    depth: 9,
    showHidden: true,
  });
  expect(printed).not.toContain(old);
  expect(printed).not.toContain(Buffer.from(old, "base64").toString("hex").slice(0, 8));
});

const dayMs = 24 * 60 * 60 * 1000;

test("a removed key verifies its signatures for a year and fourteen days, and is not in the ring", () => {
  const nowMs = Date.parse("2026-11-22T00:00:00Z");
  const retired = retiredKey(old, nowMs);
  const text = ring({ active: "2026", keys: { "2026": young }, retired: { "2025": retired } });
  const { keys, retired: read } = parseKeyRing(text);
  const before = parseKeyRing(ring({ active: "2025", keys: { "2025": old } })).keys.get("2025");
  expect(read?.get("2025")?.proof.export()).toEqual(before && proofKey(before).export());
  expect(read?.get("2025")?.untilMs).toBe(nowMs + 379 * dayMs);
  expect([...keys.keys()]).toEqual(["2026"]);
  expect(text).not.toContain(old.slice(0, 12));
  expect(text).not.toContain(Buffer.from(old, "base64").toString("hex").slice(0, 12));
});

test("changing a ring drops retired keys that no longer verify anything, and keeps the others", () => {
  const [gone, left] = [retiredKey(old, 0), retiredKey(old, dayMs)];
  const whole = parseKeyRingText(
    ring({ active: "a", keys: { a: young }, retired: { gone, left } }),
  );
  expect(pruned(whole, 379 * dayMs - 1)).toEqual(whole);
  expect(pruned(whole, 379 * dayMs)).toEqual({
    active: "a",
    keys: { a: young },
    retired: { left },
  });
  expect(pruned(whole, 380 * dayMs)).toEqual({ active: "a", keys: { a: young } });
});

test.each([
  ["retired keys that are a list", [], "`retired` of the key ring is not an object"],
  ["a retired key that is a text", { b: old }, "the retired key b"],
  ["a retired key without an end", { b: { proof: old } }, "the retired key b"],
  ["a retired key whose end is no time", { b: { proof: old, until: "soon" } }, "the retired key b"],
  [
    "a retired key that is too short",
    { b: { proof: old.slice(0, 20), until: "2026-11-22T00:00:00Z" } },
    "the retired key b",
  ],
  ["a key where the name of a retired one should be", { [old]: {} }, "a name in the key ring"],
])("rejects %s without showing any of it", (_case, retired, reason) => {
  const parse = () => parseKeyRing(ring({ active: "a", keys: { a: old }, retired }));
  expect(parse).toThrow(TypeError);
  expect(parse).toThrow(reason);
  expect(parse).not.toThrow(old.slice(0, 12));
});

test("messages are signed with another key than values are sealed with, one for each key of the ring", () => {
  const [one, other] = [old, young].map((secret) => {
    const key = parseKeyRing(ring({ active: "a", keys: { a: secret } })).keys.get("a");
    return (key && proofKey(key).export().toString("base64")) ?? "";
  });
  expect(new Set([one, other, old, young]).size).toBe(4);
});

test.each([
  ["no JSON", `{"active":"a","keys":{"a":"${old}"`, "not JSON"],
  ["a list", ring([old]), "another shape"],
  ["null", "null", "another shape"],
  ["keys that are a list", ring({ active: "0", keys: [old] }), "another shape"],
  ["no active key", ring({ keys: { a: old } }), "another shape"],
  ["an active key that is not there", ring({ active: "b", keys: { a: old } }), "not in its keys"],
  [
    "an active key that every object has",
    ring({ active: "toString", keys: { a: old } }),
    "not in its keys",
  ],
  [
    "a key where its name should be",
    ring({ active: "a", keys: { [old]: "a" } }),
    "a name in the key ring",
  ],
  ["a short key", ring({ active: "a", keys: { a: old.slice(0, 20) } }), "the key a"],
  ["a key that is not Base64", ring({ active: "a", keys: { a: `*${old}` } }), "the key a"],
  ["a key that is a number", ring({ active: "a", keys: { a: 1 } }), "the key a"],
])("rejects %s without showing any of it", (_case, text, reason) => {
  let message = "";
  try {
    parseKeyRing(text);
  } catch (error) {
    message = String(error);
  }
  expect(message).toContain(reason);
  expect(message).toMatch(/^TypeError: /);
  expect(message).not.toContain(old.slice(0, 12));
});

test("the development ring is the same for all with the same secret, and only for them", () => {
  const of = (secret: string) =>
    developmentKeyRing(secret).keys.get("development")?.export().toString("hex");
  expect(of("one")).toBe(of("one"));
  expect(of("one")).not.toBe(of("two"));
  expect(of("one")).toHaveLength(64);
});
