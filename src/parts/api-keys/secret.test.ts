import { createHash } from "node:crypto";
import { expect, test } from "vitest";
import { generateSecret, hashOfSecret, isWellFormed } from "./secret.ts";

/** CRC-32 as ISO 3309 defines it, bit by bit. */
function crc32(text: string): number {
  let left = 0xffffffff;
  for (const byte of Buffer.from(text)) {
    left ^= byte;
    for (let bit = 0; bit < 8; bit += 1) left = (left >>> 1) ^ (left & 1 ? 0xedb88320 : 0);
  }
  return (left ^ 0xffffffff) >>> 0;
}

const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

test("a secret ends with the CRC-32 of all before, in Base62", () => {
  for (let index = 0; index < 200; index += 1) {
    const secret = generateSecret();
    expect(secret).toMatch(/^kln_[0-9A-Za-z]{49}$/);
    const sum = [...secret.slice(-6)].reduce((sum, digit) => sum * 62 + digits.indexOf(digit), 0);
    expect(sum).toBe(crc32(secret.slice(0, 47)));
    expect(isWellFormed(secret)).toBe(true);
  }
});

test("a checksum is padded with zeros", () => {
  const secrets = Array.from({ length: 400 }, () => generateSecret());
  const small = secrets.find((secret) => crc32(secret.slice(0, 47)) < 62 ** 5);
  expect(small?.at(-6)).toBe("0");
});

test("a secret takes no digit from bytes that would make some digits likelier", () => {
  const drawn = [new Uint8Array(64).fill(255), new Uint8Array(64).fill(247)];
  expect(generateSecret(() => drawn.shift() ?? new Uint8Array())).toMatch(/^kln_z{43}/);
});

test.each([
  ["", false],
  ["kln_", false],
  [`kln_${"0".repeat(49)}`, false],
  [`kln_${"0".repeat(48)}é`, false],
  [`${generateSecret()}0`, false],
  [` ${generateSecret()}`, false],
  [generateSecret().replace("kln_", "KLN_"), false],
  [generateSecret(), true],
])("%s has the form and the checksum of a secret: %s", (text, isOne) => {
  expect(isWellFormed(text)).toBe(isOne);
});

test("a secret with any other digit is not well-formed", () => {
  const secret = generateSecret();
  for (let at = 4; at < secret.length; at += 1) {
    const other = secret[at] === "0" ? "1" : "0";
    expect(isWellFormed(secret.slice(0, at) + other + secret.slice(at + 1))).toBe(false);
  }
});

test("only the SHA-256 of a secret is stored", () => {
  expect(hashOfSecret("kln_a")).toBe(createHash("sha256").update("kln_a").digest("base64url"));
});
