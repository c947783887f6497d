import { expect, test } from "vitest";
import { unplaced } from "../../../test/support/unplaced.ts";
import { buildServer } from "../../app/server/server.ts";
import { BootError } from "../../base/errors/boot.ts";
import { bodyLimit, bufferLimit, type Limits } from "./limits.ts";

function problemsOf(limits: Limits) {
  try {
    buildServer({ features: [], limits });
    return [];
  } catch (error) {
    if (error instanceof BootError) return unplaced(error.problems);
    throw error;
  }
}

test("allows 1 MiB per body and 128 MiB in all by default, or one body's limit if that is larger", () => {
  expect([bodyLimit(undefined), bufferLimit(undefined)]).toEqual([1_048_576, 134_217_728]);
  expect(bufferLimit({ bodyBytes: 200_000_000 })).toBe(200_000_000);
  expect(bufferLimit({ bodyBytes: 10, bufferedBytes: 20 })).toBe(20);
});

test("requires at least 1 MiB for unread responses", () => {
  expect(problemsOf({ unreadBytes: 1_048_576 })).toEqual([]);
  for (const unreadBytes of [1_048_575, 1_048_576.5, "2000000" as never]) {
    expect(problemsOf({ unreadBytes })).toMatchObject([
      {
        key: "limits.unreadBytes",
        fix: expect.stringContaining("a whole number of bytes from 1,048,576"),
      },
    ]);
  }
});

test("refuses a total budget below the largest body", () => {
  expect(problemsOf({ bodyBytes: 100, bufferedBytes: 100 })).toEqual([]);
  expect(problemsOf({ bufferedBytes: 1_048_575 })).toEqual([
    {
      feature: "",
      key: "limits.bufferedBytes",
      rule: "limits-order",
      message: "1048575 is below limits.bodyBytes, 1048576",
      fix: "use 1048576 or more, or lower limits.bodyBytes",
    },
  ]);
});
