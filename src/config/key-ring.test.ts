import { inspect } from "node:util";
import { expect, test } from "vitest";
import { developmentKeyRing, newRingKey, parseKeyRing } from "./key-ring.ts";

const [old, young] = [newRingKey(), newRingKey()];
const ring = (value: unknown) => JSON.stringify(value);

test("a ring has its keys by name, and one of them seals", () => {
  const { active, keys } = parseKeyRing(ring({ active: "2026", keys: { "2025": old, "2026": young } }));
  expect(active).toBe("2026");
  expect([...keys.keys()]).toEqual(["2025", "2026"]);
  expect(keys.get("2025")?.export().toString("base64")).toBe(old);
});

test("a ring that is printed shows no key", () => {
  const printed = inspect(parseKeyRing(ring({ active: "a", keys: { a: old } })), { depth: 9, showHidden: true });
  expect(printed).not.toContain(old);
  expect(printed).not.toContain(Buffer.from(old, "base64").toString("hex").slice(0, 8));
});

test.each([
  ["no JSON", `{"active":"a","keys":{"a":"${old}"`, "not JSON"],
  ["a list", ring([old]), "another shape"],
  ["null", "null", "another shape"],
  ["keys that are a list", ring({ active: "0", keys: [old] }), "another shape"],
  ["no active key", ring({ keys: { a: old } }), "another shape"],
  ["an active key that is not there", ring({ active: "b", keys: { a: old } }), "none of its keys"],
  ["an active key that every object has", ring({ active: "toString", keys: { a: old } }), "none of its keys"],
  ["a key where its name should be", ring({ active: "a", keys: { [old]: "a" } }), "a name in the key ring"],
  ["a short key", ring({ active: "a", keys: { a: old.slice(0, 20) } }), "the key a"],
  ["a key that is not Base64", ring({ active: "a", keys: { a: `*${old}` } }), "the key a"],
  ["a key that is a number", ring({ active: "a", keys: { a: 1 } }), "the key a"],
])("%s is refused without showing anything of it", (_case, text, reason) => {
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

test("the ring of development is the same for all who share the secret, and for them only", () => {
  const of = (secret: string) => developmentKeyRing(secret).keys.get("development")?.export().toString("hex");
  expect(of("one")).toBe(of("one"));
  expect(of("one")).not.toBe(of("two"));
  expect(of("one")).toHaveLength(64);
});
