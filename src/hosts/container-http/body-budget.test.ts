import { expect, test } from "vitest";
import { unplaced } from "../../../test/support/unplaced.ts";
import { BootError } from "../../base/errors/boot.ts";
import { bodyBudget } from "./body-budget.ts";

const handlers = [
  { name: "files.file.upload", bodyBytes: 200_000_000 },
  { name: "files.file.show" },
];

test("holds 128 MiB of bodies by default, or the largest body if that is larger", () => {
  expect(bodyBudget(undefined, [])).toBe(134_217_728);
  expect(bodyBudget({ bodyBytes: 200_000_000 }, [])).toBe(200_000_000);
  expect(bodyBudget({ bodyBytes: 10, bufferedBytes: 20 }, [])).toBe(20);
  expect(bodyBudget({ bodyBytes: 150_000_000 }, handlers)).toBe(200_000_000);
  expect(bodyBudget({ bufferedBytes: 200_000_000 }, handlers)).toBe(200_000_000);
});

test("refuses a budget below the largest body of a handler", () => {
  try {
    bodyBudget({ bufferedBytes: 199_999_999 }, handlers);
    expect.unreachable();
  } catch (error) {
    expect(error).toBeInstanceOf(BootError);
    expect(unplaced((error as BootError).problems)).toEqual([
      {
        feature: "",
        key: "limits.bufferedBytes",
        rule: "limits-order",
        message: "199999999 is below files.file.upload.limits.bodyBytes, 200000000",
        fix: "use 200000000 or more, or lower the limit of the handler",
      },
    ]);
  }
});
