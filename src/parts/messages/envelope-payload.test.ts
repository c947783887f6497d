import type { StandardSchemaV1 } from "@standard-schema/spec";
import { expect, test } from "vitest";
import { z } from "zod";
import { checkPayload } from "./envelope.ts";

const refuse = (problems: string) => new RangeError(`it does not fit (${problems})`);

/** A schema that has only issues. */
function refusing(...issues: StandardSchemaV1.Issue[]): StandardSchemaV1 {
  return { "~standard": { version: 1, vendor: "test", validate: () => ({ issues }) } };
}

test("accepts any payload unchanged without a schema", async () => {
  const payload = { a: 1 };
  expect(await checkPayload(undefined, payload, refuse)).toBe(payload);
  expect(await checkPayload(undefined, undefined, refuse)).toBeUndefined();
});

test("returns the output of the schema, whether it is synchronous or asynchronous", async () => {
  const schema = z.object({ size: z.coerce.number(), name: z.string().default("none") });
  expect(await checkPayload(schema, { size: "7", more: 1 }, refuse)).toEqual({
    size: 7,
    name: "none",
  });
  const later = z.object({ size: z.number() }).refine(async ({ size }) => size > 0);
  expect(await checkPayload(later, { size: 7 }, refuse)).toEqual({ size: 7 });
  await expect(checkPayload(later, { size: 0 }, refuse)).rejects.toThrow("it does not fit");
});

test("refuses an invalid payload with the path of each problem", async () => {
  const schema = z.object({
    name: z.string("no text"),
    files: z.array(z.object({ size: z.number("no number") })),
  });
  await expect(
    checkPayload(schema, { files: [{ size: 1 }, { size: "x" }] }, refuse),
  ).rejects.toThrow(new RangeError("it does not fit (name: no text; files.1.size: no number)"));
});

test.each<[string, StandardSchemaV1.Issue, string]>([
  ["without a path", { message: "odd" }, "odd"],
  ["of the whole", { message: "odd", path: [] }, "odd"],
  [
    "with a path of segments",
    { message: "odd", path: [{ key: "files" }, { key: 0 }, "size"] },
    "files.0.size: odd",
  ],
  [
    "with a symbol in its path",
    { message: "odd", path: [Symbol("own"), { key: Symbol("one") }] },
    "Symbol(own).Symbol(one): odd",
  ],
])("names an issue %s as precisely as possible", async (_what, issue, problems) => {
  await expect(checkPayload(refusing(issue), {}, refuse)).rejects.toThrow(refuse(problems));
});

test("names at most ten paths in an error, each in at most 500 characters", async () => {
  const issues = Array.from({ length: 30 }, (_, index) => ({
    message: "m".repeat(1_000),
    path: [`member${index}`],
  }));
  const problems = await checkPayload(refusing(...issues), {}, (text) => new Error(text)).catch(
    String,
  );
  const parts = String(problems).replace("Error: ", "").split("; ");
  expect(parts.map((part) => part.length)).toEqual(Array.from({ length: 10 }, () => 500));
  expect(parts.at(-1)).toMatch(/^member9: m+$/);
});

test("passes on the error of a schema that throws", async () => {
  const schema: StandardSchemaV1 = {
    "~standard": {
      version: 1,
      vendor: "test",
      validate: () => {
        throw new Error("the schema is broken");
      },
    },
  };
  await expect(checkPayload(schema, {}, refuse)).rejects.toThrow("the schema is broken");
});
