import assert from "node:assert/strict";
import fc from "fast-check";
import { clientLogHandler } from "../../../src/app/routes/client-log.ts";
import { FrameworkError, ValidationError } from "../../../src/base/errors/errors.ts";
import { jsonOf } from "../../../src/tools/cli/trace/document.ts";
import { recordsOf } from "../../../src/tools/cli/trace/log-records.ts";
import { textOf } from "../../../src/tools/cli/trace/text.ts";
import { build, chain } from "../../fixtures/trace-records.ts";
import { damagedJson, damagedValue } from "../mutations.ts";
import { outcomeOf, parser } from "../parser.ts";

const records = fc.constantFrom<object>(...chain);
/** Forms in which collectors store log lines. */
const wrapped = records.chain((record) => {
  const line = JSON.stringify(record);
  return fc.constantFrom<unknown>(
    record,
    { "@message": line },
    { log: `${line}\n`, stream: "stdout" },
    { events: [{ timestamp: 1, message: line }] },
    { results: [[{ field: "@message", value: line }]] },
    { message: JSON.stringify({ log: line }) },
    [record, record],
  );
});
const before = fc.constantFrom("", "2026-11-28T00:00:00Z stream ", "[pod/a] ", '"@message": ', '"');
const lines = fc.array(
  fc.tuple(before, damagedJson(wrapped)).map((parts) => parts.join("")),
  { minLength: 1, maxLength: 5 },
);

const logLines = parser({
  name: "log-lines",
  reads: "the lines that `keelson trace` reads",
  inputs: lines,
  holds: (all) => {
    const read = all.map(recordsOf);
    const found = read.flatMap(({ records: some }) => [...some]);
    // A line may hold the same record in several wrappers, never more than it has bytes for.
    assert.ok(found.length <= all.join("").length);
    const built = build([...chain, ...found]);
    const printed = [...textOf(built), jsonOf(built).replaceAll("\n", "")].join("");
    assert.doesNotMatch(printed, /[\p{Cc}\u202a-\u202e\u2066-\u2069]/u);
    assert.ok(printed.length < 100_000 + 60 * all.join("").length);
  },
});

const record = {
  level: "warn",
  msg: "page.slow",
  requestId: "r1",
  data: { ms: 5 },
  clientRequestId: "r2",
};

const clientLog = parser({
  name: "client-log",
  reads: "records that browsers send to `POST /log`",
  inputs: damagedValue(
    fc.oneof(
      fc.constant(record),
      fc.constantFrom(1, 100, 101).map((count) => Array(count).fill(record)),
    ),
  ),
  holds: async (body) => {
    const logged: (readonly [string, Readonly<Record<string, unknown>>])[] = [];
    const log = (msg: string, data: Readonly<Record<string, unknown>>) =>
      void logged.push([msg, data]);
    const ctx = {
      user: { tenantId: "acme", id: "ann" },
      log: { child: () => ({ info: log, warn: log, error: log, debug: log }) },
      request: { rawBody: new Uint8Array(100) },
    };
    const { run } = clientLogHandler({ now: () => 0 });
    const answer = () => run(ctx as never, { body } as never); // safe: the handler only reads these members
    const { error } = await outcomeOf<unknown>(answer, {
      errors: [ValidationError, FrameworkError],
    });
    if (error !== undefined) assert.deepEqual(logged, []);
    assert.ok(logged.length <= 100);
    for (const [msg, data] of logged) {
      assert.equal(typeof msg, "string");
      assert.ok(!Object.hasOwn(data, "requestId"));
    }
  },
});

export const logParsers = [logLines, clientLog];
