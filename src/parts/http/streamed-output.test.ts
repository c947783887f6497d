import { expect, test } from "vitest";
import { z } from "zod";
import { jsonLines, sse, streamFormOf } from "./streamed-output.ts";

const schema = z.object({ id: z.string() });

test("an output that streams is a Standard Schema of async iterables, with the schema of its items", () => {
  const output = sse(schema);
  expect(streamFormOf(output)).toEqual({
    kind: "sse",
    item: schema,
    heartbeatMs: 15_000,
    problem: undefined,
  });
  expect(streamFormOf(jsonLines(schema))).toMatchObject({ kind: "jsonLines", item: schema });
  const { validate, vendor, version } = output["~standard"];
  expect([vendor, version]).toEqual(["keelson", 1]);
  const items = (async function* () {})();
  expect(validate(items)).toEqual({ value: items });
  for (const other of [undefined, null, [], "text", {}])
    expect(validate(other)).toEqual({ issues: [{ message: "is not an async iterable" }] });
});

test("other outputs do not stream", () => {
  expect(streamFormOf(schema)).toBeUndefined();
  expect(streamFormOf(undefined)).toBeUndefined();
});

test.each([
  [{}, undefined],
  [{ heartbeatSeconds: 1 }, undefined],
  [{ heartbeatSeconds: 3_600 }, undefined],
  [{ heartbeatSeconds: 0 }, "heartbeatSeconds"],
  [{ heartbeatSeconds: 3_601 }, "heartbeatSeconds"],
  [{ heartbeatSeconds: Number.NaN }, "heartbeatSeconds"],
  [{ heartbeatSeconds: "15" as never }, "heartbeatSeconds"],
  [{ heartbeat: 15 } as never, 'unknown option "heartbeat"'],
])("the options %j have the problem %s", (options, problem) => {
  const form = streamFormOf(sse(schema, options));
  if (problem === undefined) expect(form?.problem).toBeUndefined();
  else expect(form?.problem).toContain(problem);
});

test("without a schema, it is none, and does not throw", () => {
  for (const wrong of [undefined, 42, {}]) expect(sse(wrong as never)["~standard"]).toBeUndefined();
});
