import { expect, test } from "vitest";
import type { DeadLetter } from "../../../aws/messaging/dead-letters.ts";
import { visit } from "./visit-letters.ts";

const letter = (id: string, receipt: string) =>
  ({ id, receipt, body: "{}", group: undefined, reason: undefined, sentMs: 0 }) as const;

test("a letter that comes back during a long read is visited once, and ends nothing early", async () => {
  const released: string[][] = [];
  const letters = {
    read: async function* () {
      yield [letter("a", "a1"), letter("b", "b1")];
      yield [letter("a", "a2"), letter("c", "c1")];
      for (;;) yield [letter("a", "a3"), letter("b", "b2")];
    },
    release: async (some: readonly DeadLetter[]) => {
      released.push(some.map(({ receipt }) => receipt));
    },
  };
  const visited: string[] = [];
  const count = await visit(letters, {}, async ({ id }) => {
    visited.push(id);
    return id === "c" ? "gone" : "kept";
  });
  expect([count, visited]).toEqual([3, ["a", "b", "c"]]);
  expect(released).toEqual([["a3", "b2"]]);
});
