import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { createTenantConfig } from "../declare/declaration.ts";
import { cascade } from "../read/cascade.ts";
import { rowToReset, rowToSet, versionOf } from "./written-row.ts";

const writer = { userId: "ann", nowMs: 1_700_000_000_000 };
const number = createTenantConfig("number", {}).definition;
const text = createTenantConfig("text", {}).definition;

describe("a value that is set", () => {
  const keys = [
    createTenantConfig("number", { bounds: { min: -10, max: 10 } }).definition,
    number,
    createTenantConfig("boolean", {}).definition,
    createTenantConfig("select", { options: ["a", "b"] }).definition,
    text,
  ];
  test.each(keys.map((definition) => [definition.type, definition] as const))(
    "is read back unchanged for any %s key, or is refused",
    (_type, definition) => {
      const value = fc.oneof(
        fc.double(),
        fc.integer({ min: -20, max: 20 }),
        fc.boolean(),
        fc.string(),
        fc.constantFrom("a", "b", null, undefined),
        fc.anything(),
      );
      fc.assert(
        fc.property(value, (given) => {
          const misfits: unknown[] = [];
          const read = () =>
            cascade(
              definition,
              {
                rows: [{ source: "tenant-row", row: { value: given } }],
                override: undefined,
                frameworkDefault: undefined,
              },
              (misfit) => misfits.push(misfit),
            );
          let stored: unknown;
          try {
            stored = rowToSet(definition, { value: given }, undefined, writer).value;
          } catch (error) {
            expect(error).toMatchObject({ status: 422, fields: [{ field: "value" }] });
            return;
          }
          expect(stored).toBe(given);
          expect([read(), misfits]).toEqual([{ value: given, source: "tenant-row" }, []]);
        }),
      );
    },
  );
});

test.each([
  [null, "null"],
  ["x", "text"],
  [[], "a list"],
  [{}, "an object"],
  [Number.NaN, "NaN"],
  [true, "a boolean"],
  [7n, "a bigint"],
  [undefined, "absent"],
])("a refused value is described by its kind: %s", (value, kind) => {
  const set = () => rowToSet(number, { value }, undefined, writer);
  const error = `is not a finite number but ${kind}`;

  expect(set).toThrow(expect.objectContaining({ fields: [{ field: "value", error }] }));
});

test("a number for a text key is described by its kind", () => {
  expect(() => rowToSet(text, { value: 7 }, undefined, writer)).toThrow(
    expect.objectContaining({
      fields: [{ field: "value", error: "is not a string but a number" }],
    }),
  );
});

test.each([
  [number, Number.MAX_SAFE_INTEGER, undefined],
  [number, -Number.MAX_SAFE_INTEGER - 1, /beyond 9007199254740991/],
  [number, 1e-130, undefined],
  [number, 0, undefined],
  [number, -1e-131, /nearer to 0/],
  [text, "", undefined],
  [text, "é".repeat(8_192), undefined],
  [text, "é".repeat(8_193), /has 16386 bytes, more than 16384/],
  [text, "\ud800", /not well-formed/],
])("enforces the store's limits before the write (case %#)", (definition, value, problem) => {
  const set = () => rowToSet(definition, { value }, undefined, writer);

  if (problem === undefined) expect(set()).toMatchObject({ value, version: 1 });
  else
    expect(set).toThrow(
      expect.objectContaining({
        fields: [{ field: "value", error: expect.stringMatching(problem) }],
      }),
    );
});

test("a row records who wrote it, when, why and until when", () => {
  const options = { value: 5, reason: "because", expiresAt: "2023-11-14T23:13:20.5+00:00" };

  expect(rowToSet(number, options, { value: 1, version: 41 }, writer)).toEqual({
    value: 5,
    version: 42,
    updatedAt: "2023-11-14T22:13:20.000Z",
    updatedBy: "ann",
    reason: "because",
    expiresAt: 1_700_003_601,
  });
});

test("accepts a day that only leap years have as an expiry", () => {
  const options = { value: 5, expiresAt: "2028-02-29T23:59:59-05:00" };
  expect(rowToSet(number, options, undefined, writer)).toMatchObject({ expiresAt: 1_835_499_599 });
});

test.each([
  ["tomorrow"],
  ["2030-01-01"],
  ["2030-01-01T00:00:00"],
  ["2030-13-01T00:00:00Z"],
  ["2030-02-31T00:00:00Z"],
  ["2030-02-29T23:59:59-05:00"],
  [1_900_000_000],
  [new Date(0)],
  [new Date(Number.NaN)],
  [""],
])("refuses %s as an expiry", (expiresAt) => {
  expect(() =>
    rowToSet(number, { value: 5, expiresAt: expiresAt as string }, undefined, writer),
  ).toThrow(expect.objectContaining({ fields: [expect.objectContaining({ field: "expiresAt" })] }));
});

test("a reason is well-formed text of at most 1,000 characters", () => {
  const set = (reason: unknown) => () =>
    rowToSet(number, { value: 5, reason: reason as string }, undefined, writer);

  expect(set("x".repeat(1_000))()).toMatchObject({ version: 1 });
  for (const reason of ["x".repeat(1_001), "\udfff", 7, {}]) {
    expect(set(reason)).toThrow(
      expect.objectContaining({ fields: [expect.objectContaining({ field: "reason" })] }),
    );
  }
});

test("a tombstone increments the version, and is written only when there is a row to delete", () => {
  expect(rowToReset({}, { value: 5, version: 3 }, { ...writer, userId: undefined })).toEqual({
    value: undefined,
    version: 4,
    updatedAt: "2023-11-14T22:13:20.000Z",
    deleted: true,
  });
  expect(rowToReset({}, undefined, writer)).toBeUndefined();
  expect(rowToReset({}, { value: undefined, version: 3, deleted: true }, writer)).toBeUndefined();
});

test.each([[undefined], ["3"], [1.5], [-1], [Number.NaN]])(
  "a row with version %s counts as never written",
  (version) => {
    expect(versionOf({ value: 1, version: version as number })).toBe(0);
  },
);
