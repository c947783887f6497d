import { expect, test } from "vitest";
import { resultsOf } from "../support/logs-insights/results.ts";

const lines = [
  { time: "2026-01-01T00:00:01Z", msg: "a.done", tenantId: "acme", status: 200, ms: 5 },
  { time: "2026-01-01T00:00:02Z", msg: "a.failed", tenantId: "acme", status: 500, ms: 7 },
  { time: "2026-01-01T00:00:03Z", msg: "a.failed", tenantId: "umbrella", status: 503 },
  { time: "2026-01-01T00:00:04Z", msg: "b.done", ids: ["x", "y"], error: { code: "E" } },
];
const messages = (condition: string) =>
  resultsOf(`fields msg | filter ${condition}`, lines).map(({ msg }) => msg);

test.each([
  ['msg = "a.done"', ["a.done"]],
  ["status = 500", ["a.failed"]],
  ["status > 500", ["a.failed"]],
  ["status >= 500", ["a.failed", "a.failed"]],
  ["ms < 7", ["a.done"]],
  ["ms <= 7", ["a.done", "a.failed"]],
  ['msg != "a.failed"', ["a.done", "b.done"]],
  ['msg like "fail"', ["a.failed", "a.failed"]],
  ["msg like /^[ab]\\.done$/", ["a.done", "b.done"]],
  ["@message like /umbrella|code/", ["a.failed", "b.done"]],
  ['msg in ["a.done", "b.done"]', ["a.done", "b.done"]],
  ["ispresent(tenantId)", ["a.done", "a.failed", "a.failed"]],
  ["not ispresent(tenantId)", ["b.done"]],
  ['ids.1 = "y" and error.code = "E"', ["b.done"]],
  ['tenantId = "umbrella" or msg = "a.failed" and ms = 7', ["a.failed", "a.failed"]],
  ['(tenantId = "umbrella" or msg = "a.failed") and ms = 7', ["a.failed"]],
  ['tenantId = "nobody"', []],
])("filter %s", (condition, expected) => {
  expect(messages(condition)).toEqual(expected);
});

test("fields picks columns, and a query without it shows the time and the whole line", () => {
  expect(resultsOf("fields tenantId, error.code | limit 1", lines)).toEqual([
    { tenantId: "acme", "error.code": undefined },
  ]);
  expect(resultsOf('filter msg = "a.done"', lines)).toEqual([
    { "@timestamp": lines[0]?.time, "@message": JSON.stringify(lines[0]) },
  ]);
});

test("a field whose name is a word of the language is quoted", () => {
  const counted = [{ limit: "day", count: 3 }];
  expect(resultsOf('fields `count` | filter `limit` = "day"', counted)).toEqual([{ count: 3 }]);
});

test("sort orders by numbers or text, and limit cuts what follows", () => {
  const first = (query: string) => resultsOf(`fields msg, ms | ${query} | limit 1`, lines)[0];
  expect(first("sort ms desc")).toEqual({ msg: "a.failed", ms: 7 });
  expect(first("sort @timestamp desc")).toMatchObject({ msg: "b.done" });
  expect(first("sort msg asc")).toMatchObject({ msg: "a.done" });
});

test("stats counts and takes the largest, in groups or in all", () => {
  const query = "filter ispresent(tenantId) | stats count(*) as n, max(ms) as most by tenantId";
  expect(resultsOf(`${query} | sort n desc`, lines)).toEqual([
    { tenantId: "acme", n: 2, most: 7 },
    { tenantId: "umbrella", n: 1, most: undefined },
  ]);
  expect(resultsOf("stats count(*) as n", lines)).toEqual([{ n: 4 }]);
});

test.each([
  ["dedup msg", "expected fields, filter, sort, stats or limit"],
  ["fields msg | parse @message /x/", "unknown syntax"],
  ["filter msg =~ /x/", "unknown syntax"],
  ["filter msg = 'a'", "unknown syntax"],
  ["filter msg == 1", "expected a string or a number"],
  ["filter msg", "expected a comparison"],
  ["filter like = 1", "expected a field"],
  ["fields msg, limit", "expected a field"],
  ["filter msg = status", "expected a string or a number"],
  ["filter strlen(msg) > 3", "expected a comparison"],
  ["filter (msg = 1", "expected )"],
  ["filter msg = 1 msg = 2", "expected the end"],
  ["filter msg like 3", "expected a string or a pattern"],
  ["sort msg", "expected asc"],
  ["limit many", "expected a number"],
  ["stats avg(ms) as a", "expected count(*) or max(field)"],
  ["stats count(*) by msg", "expected as"],
  ["stats count(*) as n by bin(1m)", "unknown syntax"],
  ["stats count(*) as n | stats max(n) as m", "stats after stats is not known"],
  ["fields ids", "ids is an object; name one of its members"],
  ['filter status = "500"', "status is a number"],
  ['filter tenantId != "acme"', "!= on a line without tenantId is not documented"],
  ["filter msg > 3", "does not compare two numbers"],
])("%s is refused", (query, reason) => {
  expect(() => resultsOf(query, lines)).toThrow(reason);
});
