import fc from "fast-check";
import { expect, test } from "vitest";
import { recordsOf } from "./log-records.ts";

const record = {
  level: "info",
  requestId: "r1",
  msg: "request.completed",
  text: 'a "{b}" c',
  time: "2026-11-02T09:30:00.000Z",
};
const json = JSON.stringify(record);
const inside = JSON.stringify(json);

test.each([
  ["a line as keelson writes it", json],
  ["aws logs tail", `2026-11-02T09:30:00.123000+00:00 2026/11/02/[$LATEST]0f3c ${json}`],
  ["kubectl logs --prefix", `[pod/files-7d9/files] ${json}`],
  ["docker compose logs", `files-1  | ${json}`],
  ["docker compose logs with colours", `\u001b[36mfiles-1  |\u001b[0m ${json}`],
  [
    "Docker's own files",
    JSON.stringify({ log: `${json}\n`, stream: "stdout", time: "2026-11-02T09:30:00.1Z" }),
  ],
  ["a journal", JSON.stringify({ MESSAGE: json, _PID: "7" })],
  [
    "filter-log-events, one line",
    JSON.stringify({ events: [{ logStreamName: "s", timestamp: 1, message: json, eventId: "3" }] }),
  ],
  ["filter-log-events, a line of many", `            "message": ${JSON.stringify(`${json}\n`)},`],
  ["the results of a query, a line of many", `            "value": ${inside}`],
  [
    "the results of a query, one line",
    JSON.stringify({
      results: [
        [
          { field: "@timestamp", value: "2026" },
          { field: "@message", value: json },
        ],
      ],
    }),
  ],
  ["an export of Insights as JSON", JSON.stringify([{ "@timestamp": "2026", "@message": json }])],
  ["the same, parsed", JSON.stringify([{ "@timestamp": "2026", "@message": record }])],
  ["an export of Insights as CSV", `2026-11-02 09:30:00.123,"${json.replaceAll('"', '""')}"`],
  [
    "Lambda's JSON format around another logger's line",
    JSON.stringify({ timestamp: "2026", level: "INFO", requestId: "l1", message: record }),
  ],
  ["a text with a brace before it", `{pod} ${json}`],
])("a record is read from %s", (_, line) => {
  expect(recordsOf(line)).toEqual({ records: [record], isBroken: false });
});

test("reads the message of a record written by Powertools' formatter", () => {
  const { msg, time, ...fields } = record;
  const line = JSON.stringify({ ...fields, message: msg, timestamp: time });
  expect(recordsOf(line).records).toEqual([
    expect.objectContaining({ msg, timestamp: time, requestId: "r1" }),
  ]);
});

test.each([
  [
    "a platform line",
    JSON.stringify({
      time: "2026",
      type: "platform.report",
      record: { requestId: "l1", metrics: { durationMs: 4 } },
    }),
  ],
  ["a platform line of text", "START RequestId: 0f3c Version: $LATEST"],
  ["metrics", JSON.stringify({ _aws: { Timestamp: 1, CloudWatchMetrics: [] }, claims: 1 })],
  ["a message without a time", JSON.stringify({ message: "hello" })],
  ["a line of development", "09:30:00.000 INFO  request.completed requestId=r1"],
  ["an empty line", ""],
  ["what is no text", '  "message": "{\\"a\\":'],
  ["a wrapped number", '"value": "7" "8"'],
  ["too many layers", [..."1234567"].reduce((inner) => JSON.stringify({ message: inner }), json)],
  ["too many layers of lists", JSON.stringify([[[[[[[record]]]]]]])],
  ["names of a prototype", '{"__proto__":{"msg":"x"}}'],
])("%s is not a record", (_, line) => {
  expect(recordsOf(line).records).toEqual([]);
});

test("a truncated record counts as broken", () => {
  expect(recordsOf(json.slice(0, -9)).isBroken).toBe(true);
  expect(recordsOf(inside.slice(0, -9)).isBroken).toBe(true);
  expect(recordsOf("START").isBroken).toBe(false);
});

test.each<[string, (blanks: string) => string]>([
  ["after a text that does not end", (blanks) => `"log":"${blanks}{`],
  ["after a text", (blanks) => `"log":"a"${blanks}{`],
  ["after a text and a comma", (blanks) => `"log":"a",${blanks}{`],
  ["between quotes", (blanks) => `"log":${blanks.replaceAll("  ", '" ')}x`],
  ["before a name", (blanks) => `${blanks}x"log":"a"`],
  ["after a name", (blanks) => `"log"${blanks}x`],
  ["around what looks like a record", (blanks) => `"msg"${blanks}"msg"${blanks}x`],
  ["before lists", (blanks) => `${blanks}[${blanks}x`],
  ["before braces", (blanks) => `{${blanks}{${blanks}{${blanks}}`],
])("a line of many blanks takes about as long as a line of many letters: %s", (_, line) => {
  const read = (character: string) => {
    const began = performance.now();
    recordsOf(line(character.repeat(200_000)));
    return performance.now() - began;
  };
  const letters = Math.max(20, read("x"), read("x"));
  expect(Math.min(read(" "), read("\t"))).toBeLessThan(100 * letters);
});

test("no line makes the parser throw", () => {
  const parts = fc.constantFrom(
    "{",
    "}",
    "[",
    "]",
    '"',
    "\\",
    ":",
    ",",
    '"msg"',
    '"message": "',
    '"log":',
    " ",
    "\u0000",
    "\ud800",
    "1",
    '""',
  );
  fc.assert(
    fc.property(fc.array(parts, { maxLength: 40 }), (all) =>
      Array.isArray(recordsOf(all.join("")).records),
    ),
  );
});
