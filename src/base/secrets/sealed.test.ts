import { createSecretKey, randomBytes } from "node:crypto";
import fc from "fast-check";
import { expect, test } from "vitest";
import { isSealed, openText, sealText } from "./sealed.ts";

const secret = createSecretKey(randomBytes(32));
const key = { name: "k1", secret };
const place = ["keelson-config", "config#tenant#acme", "files:config:webhook-secret"];

test("a text opens only where it was sealed", () => {
  const text = fc.string({ unit: "grapheme" });
  const parts = fc.array(text, { minLength: 1, maxLength: 4 });
  fc.assert(
    fc.property(text, parts, parts, (sealedText, here, there) => {
      const sealed = sealText(sealedText, here, key);
      expect(openText(sealed, here, secret)).toBe(sealedText);
      fc.pre(JSON.stringify(here) !== JSON.stringify(there));
      expect(() => openText(sealed, there, secret)).toThrow();
    }),
  );
});

test("places whose joined parts are equal are different places", () => {
  const sealed = sealText("s", ["ab", "c"], key);
  for (const other of [["a", "bc"], ["abc"], ["ab", "c", ""], ["", "ab", "c"]]) {
    expect(() => openText(sealed, other, secret)).toThrow();
  }
});

test("a sealed value with a changed bit or a missing part does not open", () => {
  const sealed = sealText("hunter2", place, key);
  for (let index = 0; index < sealed.data.byteLength; index++) {
    const changed = Uint8Array.from(sealed.data);
    changed[index] = Number(changed[index]) ^ 1;
    expect(() => openText({ ...sealed, data: changed }, place, secret)).toThrow();
    expect(() =>
      openText({ ...sealed, data: sealed.data.subarray(0, index) }, place, secret),
    ).toThrow();
  }
});

test("another key does not open it, and two sealed values of one text differ", () => {
  const [one, two] = [sealText("hunter2", place, key), sealText("hunter2", place, key)];
  expect(Buffer.compare(one.data, two.data)).not.toBe(0);
  expect(() => openText(one, place, createSecretKey(randomBytes(32)))).toThrow();
  expect(Buffer.from(one.data).includes("hunter2")).toBe(false);
});

test("only a value with all parts is sealed, in any format of a later version", () => {
  expect(isSealed(sealText("s", place, key))).toBe(true);
  expect(isSealed({ sealed: 2, key: "k", data: new Uint8Array() })).toBe(true);
  for (const other of [
    undefined,
    null,
    "keelson",
    1,
    {},
    { sealed: "1", key: "k", data: new Uint8Array() },
    { sealed: 1, key: "k", data: "" },
    { sealed: 1, data: new Uint8Array() },
  ]) {
    expect(isSealed(other)).toBe(false);
  }
});
