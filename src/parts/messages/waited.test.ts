import { expect, test } from "vitest";
import { neverWaited, placeOf, untriedText, waitedOf, waitingText, waitMs } from "./waited.ts";

const waited = { times: 2, attempts: 1, sinceMs: 1_700_000_000_000 };

test("a message that waits keeps every other byte", () => {
  const body = '{ "jobId":"j1", "payload":{"amount":1.00,"waited":{"times":9}} }';
  const once = waitingText(body, waited);
  expect(once).toBe(
    '{"waited":{"times":2,"attempts":1,"sinceMs":1700000000000},"jobId":"j1", "payload":{"amount":1.00,"waited":{"times":9}} }',
  );
  expect(waitedOf(JSON.parse(once))).toEqual(waited);
  // Waiting again replaces the member.
  const again = waitingText(once, { times: 3, attempts: 1 });
  expect(waitedOf(JSON.parse(again))).toEqual({ times: 3, attempts: 1 });
  expect(again.match(/"waited"/g)).toHaveLength(2);
});

test("a later member of another sender never replaces how a message has waited", () => {
  for (const body of [
    '{"id":"b1","waited":{"times":1,"attempts":0},"detail":{"at":1.00}}',
    '{"waited":{"more":{}},"id":"b1","detail":{"at":1}}',
    '{ "waited" : 5, "id":"b1", "w\\u0061ited":[], "detail":{"at":1}}',
  ]) {
    const sent = waitingText(body, waited);
    expect(JSON.parse(sent)).toEqual({ waited, id: "b1", detail: { at: 1 } });
    expect(waitedOf(JSON.parse(untriedText(sent)))).toEqual({ ...waited, attempts: 0 });
    expect(waitingText(sent, waited)).toBe(sent);
  }
});

test("a first member of another sender may hold any text, and characters that SQS refuses stay escaped", () => {
  const body = '{"waited":{"a":"},"},"id":"b1","text":"\\ufffe and \\uffff"}';
  const sent = waitingText(body, waited);
  expect(sent).toBe(`{"waited":${JSON.stringify(waited)},"id":"b1","text":"\\ufffe and \\uffff"}`);
});

test("an untried message keeps everything but its attempts", () => {
  const body = '{"jobId":"j1","payload":{"attempts":9,"waited":{"times":9,"attempts":9}}}';
  const full = { times: 2, attempts: 4, sinceMs: 1_700_000_000_000, position: 3, turn: 9 };
  expect(untriedText(waitingText(body, full))).toBe(waitingText(body, { ...full, attempts: 0 }));
  for (const text of [body, "", "not JSON", '{"waited":{"attempts":"4"},"jobId":"j1"}'])
    expect(untriedText(text)).toBe(text);
});

test.each([
  undefined,
  null,
  "often",
  {},
  { times: "2", attempts: -1, sinceMs: "yesterday" },
  { times: 1.5, attempts: 1e9, sinceMs: 1e300 },
])("%j counts as a message that has not waited", (given) => {
  expect(waitedOf({ waited: given })).toEqual(neverWaited);
});

test("the delay grows from 1 s to 60 s, give or take a quarter", () => {
  expect([0, 1, 2, 3, 4, 5, 6, 7, 500].map((times) => waitMs(times, () => 0.5))).toEqual([
    1_000, 2_000, 5_000, 10_000, 20_000, 40_000, 60_000, 60_000, 60_000,
  ]);
  expect([0, 0.999_99].map((random) => waitMs(6, () => random))).toEqual([45_000, 75_000]);
  expect(waitMs(0)).toBeGreaterThanOrEqual(750);
});

test("a place needs both its numbers", () => {
  const read = (given: object) =>
    placeOf(waitedOf({ waited: { times: 1, attempts: 0, ...given } }));
  expect(read({ position: 3, turn: 9 })).toEqual({ position: 3, turn: 9 });
  for (const wrong of [
    {},
    { position: 3 },
    { turn: 9 },
    { position: 0, turn: 1 },
    { position: 1.5, turn: "1" },
  ])
    expect(read(wrong)).toBeUndefined();
  expect(placeOf(undefined)).toBeUndefined();
});

test("consumers that are finished are read as far as they fit into a message", () => {
  const read = (given: object) => waitedOf({ waited: { times: 1, attempts: 0, ...given } });
  const names = ["shop.note", "shop.sum:order.placed"];
  expect(read({ failed: names, reason: "no paper", done: ["shop.a"] })).toEqual({
    ...{ times: 1, attempts: 0 },
    ...{ failed: names, reason: "no paper", done: ["shop.a"] },
  });
  const [most, more] = ["x".repeat(991), "y".repeat(992)];
  expect(read({ failed: [...names.slice(0, 1), most, "z"] })).toEqual({
    ...{ times: 1, attempts: 0, failed: [...names.slice(0, 1), most] },
  });
  expect(read({ done: ["shop.note", more] })).toMatchObject({ done: ["shop.note"] });
  expect(read({ reason: "r".repeat(500) })).toMatchObject({ reason: "r".repeat(200) });
  for (const wrong of ["shop.note", {}, [], [5, null, "", "a b", "é", '"']])
    expect(read({ failed: wrong, done: wrong, reason: wrong === "shop.note" ? 5 : [] })).toEqual({
      ...{ times: 1, attempts: 0 },
    });
});

test("an untried message forgets who failed, and keeps who is done", () => {
  const body = '{"eventId":"e1","payload":{"amount":1.00}}';
  const reason = 'no "paper" \ufffe\u0000}';
  const sent = waitingText(body, {
    ...waited,
    ...{ failed: ["shop.note"], reason, done: ["shop.scan"] },
  });
  for (const refused of ["\ufffe", "\u0000"]) expect(sent).not.toContain(refused);
  expect(waitedOf(JSON.parse(sent))).toMatchObject({ failed: ["shop.note"], reason });
  const untried = waitingText(body, { ...waited, attempts: 0, done: ["shop.scan"] });
  expect(untriedText(sent)).toBe(untried);
  expect(untried).toContain('"done":["shop.scan"]},"eventId":"e1","payload":{"amount":1.00}}');
  // Waiting again replaces all of it.
  expect(waitingText(sent, waited)).toBe(waitingText(body, waited));
});
