import { crc32 as ofNode } from "node:zlib";
import * as fc from "fast-check";
import { expect, test } from "vitest";
import { crc32 } from "./crc32.ts";

test("computes the same checksum as Node for any bytes", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 2_000 }), (bytes) => crc32(bytes) === ofNode(bytes)),
  );
  expect(crc32(Buffer.from("123456789"))).toBe(0xcbf43926);
});
