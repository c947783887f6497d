import { expect, test } from "vitest";
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
