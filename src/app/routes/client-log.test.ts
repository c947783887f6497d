import { Logger } from "@aws-lambda-powertools/logger";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { startTestApp, type TestApp } from "../../tools/testing/index.ts";
import { buildServer } from "../server/server.ts";
import { createRateLimit } from "./client-log.ts";

let app: TestApp;
let began = 0;
beforeAll(async () => {
  app = await startTestApp(buildServer({ features: [] }));
});
afterAll(() => app.close());
beforeEach(() => {
  began = app.logs.length;
});

let users = 0;
const newUser = () => ({ id: `user-${++users}`, tenantId: "acme" });
const send = async (body: unknown, as = newUser(), headers: Record<string, string> = {}) => {
  const response = await app.fetch("/log", { method: "POST", body: body as object, headers, as });
  return { status: response.status, body: await response.json(), headers: response.headers };
};
const lines = () =>
  app.logs
    .slice(began)
    .filter(({ handler, msg }) => handler === "keelson.log.write" && msg !== "request.completed");

test("a record becomes a line with the caller's tenant and user, its own fields and its request ID", async () => {
  const user = newUser();
  const answer = await send(
    { level: "warn", msg: "button.broken", page: "/cart", requestId: "page-7" },
    user,
    {
      "x-request-id": "log-1",
    },
  );
  expect(answer).toMatchObject({ status: 202, body: { accepted: 1 } });
  expect(lines()).toMatchObject([
    {
      level: "warn",
      msg: "button.broken",
      page: "/cart",
      clientRequestId: "page-7",
      requestId: "log-1",
      tenantId: "acme",
      userId: user.id,
      source: "client",
    },
  ]);
});

test("a list is a batch, and the same batch sent again is logged again", async () => {
  const user = newUser();
  const batch = [
    { level: "info", msg: "one" },
    { level: "debug", msg: "two" },
  ];
  for (let n = 0; n < 2; n++) {
    expect(await send(batch, user, { "x-request-id": "same" })).toMatchObject({
      status: 202,
      body: { accepted: 2 },
    });
  }
  expect(lines().map(({ msg }) => msg)).toEqual(["one", "two", "one", "two"]);
  expect(await send([], user)).toMatchObject({ status: 202, body: { accepted: 0 } });
});

test("a client cannot set the server's fields of a line, and secrets are redacted", async () => {
  await send({
    level: "info",
    msg: "forged",
    tenantId: "globex",
    userId: "root",
    handler: "files.file.delete",
    time: "1970",
    source: "server",
    password: "hunter2",
    __proto__: { polluted: true },
  });
  const [line] = lines();
  expect(line).toMatchObject({
    tenantId: "acme",
    handler: "keelson.log.write",
    source: "client",
    data_tenantId: "globex",
    data_userId: "root",
    data_handler: "files.file.delete",
    data_time: "1970",
    data_source: "server",
  });
  expect(JSON.stringify(line)).not.toContain("hunter2");
  expect(({} as Record<string, unknown>)["polluted"]).toBeUndefined();
});

test("a record creates no metrics, and its fields stay at the top level of the line", async () => {
  const metrics = {
    Timestamp: 1,
    CloudWatchMetrics: [{ Namespace: "files", Dimensions: [[]], Metrics: [{ Name: "hits" }] }],
  };
  await send([
    { level: "info", msg: "one", _aws: metrics, hits: -5 },
    { level: "info", msg: "two", CloudWatchMetrics: metrics.CloudWatchMetrics, Version: "0" },
    { level: "info", msg: "three", requestId: { _aws: metrics }, data__aws: 1, _aws: metrics },
  ]);

  expect(lines()).toMatchObject([
    { data__aws: metrics, hits: -5 },
    { data_CloudWatchMetrics: metrics.CloudWatchMetrics, Version: "0" },
    { clientRequestId: { _aws: metrics }, data__aws: 1, data_data__aws: metrics },
  ]);
  for (const line of lines())
    for (const name of ["_aws", "CloudWatchMetrics"]) expect(line).not.toHaveProperty(name);
});

test("a line is marked as sent by a client, whatever the record contains", async () => {
  const many = Object.fromEntries(Array.from({ length: 300 }, (_, n) => [`field${n}`, n]));
  const long = Object.fromEntries(
    Array.from({ length: 20 }, (_, n) => [`text${n}`, "x".repeat(8_000)]),
  );
  await send([
    { level: "error", msg: "cart.broken", ...many },
    { level: "error", msg: "cart.broken", ...long },
    { level: "error", msg: "cart.broken", source: null },
  ]);

  expect(lines().map(({ source }) => source)).toEqual(["client", "client", "client"]);
});

test("a line is still marked when an application's own Powertools Logger sets the field source", async () => {
  const powertools = new Logger({ persistentKeys: { source: "billing" } });
  const owned = await startTestApp(buildServer({ features: [], log: { powertools } }));
  try {
    const body = { level: "error", msg: "cart.broken", source: "server" };
    expect((await owned.fetch("/log", { method: "POST", body, as: newUser() })).status).toBe(202);
    expect(owned.logs.find(({ msg }) => msg === "cart.broken")).toMatchObject({
      source: "client",
      data_source: "server",
    });
  } finally {
    await owned.close();
  }
});

test("no field of a record is lost to the fields that the server adds", async () => {
  const user = newUser();
  await send(
    { level: "info", msg: "all", source: 1, data_source: 2, requestId: 3, clientRequestId: 4 },
    user,
  );

  expect(lines()[0]).toMatchObject({
    source: "client",
    data_source: 2,
    data_data_source: 1,
    clientRequestId: 3,
    data_clientRequestId: 4,
  });
});

test.each([
  [{ level: "fatal", msg: "x" }, ["level"]],
  [{ level: "toString", msg: "x" }, ["level"]],
  [{ level: ["info"], msg: "x" }, ["level"]],
  [{ msg: "x" }, ["level"]],
  [{ level: "info" }, ["msg"]],
  [{ level: "info", msg: 7 }, ["msg"]],
  [{}, ["level", "msg"]],
  [
    [{ level: "info", msg: "fine" }, { level: "info" }, "text", null],
    ["1.msg", "2.level", "2.msg", "3.level", "3.msg"],
  ],
  [{ body: "text", level: "info" }, ["msg"]],
  [Array.from({ length: 101 }, () => ({ level: "info", msg: "x" })), ["body"]],
])("%j is refused as a whole, naming the fields", async (body, fields) => {
  const answer = await send(body);
  expect(answer.status).toBe(422);
  expect((answer.body as { fields: { field: string }[] }).fields.map(({ field }) => field)).toEqual(
    fields,
  );
  expect(lines().filter(({ msg }) => msg === "fine")).toEqual([]);
});

test("a client that sends too many records has to wait the stated time, and no other client does", async () => {
  const user = newUser();
  const batch = Array.from({ length: 100 }, (_, n) => ({ level: "debug", msg: `m${n}` }));
  for (let n = 0; n < 5; n++) expect((await send(batch, user)).status).toBe(202);
  const refused = await send(batch, user);
  expect(refused).toMatchObject({ status: 429, body: { error: "too_many_requests" } });
  expect((await send(batch)).status).toBe(202);
  app.clock.advance(Number(refused.headers.get("retry-after")) * 1000);
  expect((await send(batch, user)).status).toBe(202);
});

test("a client that sends too many bytes has to wait, however few the records", async () => {
  const user = newUser();
  const large = { level: "debug", msg: "large", data: "x".repeat(1_000_000) };
  expect((await send(large, user)).status).toBe(202);
  const refused = await send(large, user);
  expect(refused).toMatchObject({ status: 429, body: { error: "too_many_requests" } });
  expect((await send(large)).status).toBe(202);
  app.clock.advance(Number(refused.headers.get("retry-after")) * 1000);
  expect((await send(large, user)).status).toBe(202);
});

test("an anonymous caller logs nothing", async () => {
  const response = await app.fetch("/log", { method: "POST", body: { level: "info", msg: "x" } });
  expect(response.status).toBe(401);
  expect(lines().filter(({ msg }) => msg === "x")).toEqual([]);
});

test("a batch that is refused for its records takes no bytes", async () => {
  const user = newUser();
  const batch = (bytes: number) =>
    Array.from({ length: 100 }, () => ({ level: "info", msg: "x".repeat(bytes / 100) }));
  const statuses = async (count: number, bytes: number) => {
    const found = new Set<number>();
    for (let n = 0; n < count; n++) found.add((await send(batch(bytes), user)).status);
    return [...found];
  };
  expect(await statuses(5, 100)).toEqual([202]);
  expect(await statuses(40, 28_000)).toContain(429);
  app.clock.advance(10_000);
  expect(await statuses(1, 200_000)).toEqual([202]);
});

function limited() {
  let nowMs = 1_000_000;
  const limit = createRateLimit([{ burst: 10, perSecond: 2 }], { now: () => nowMs });
  return { take: limit, advance: (ms: number) => (nowMs += ms) };
}

test("takes a burst at once, and delays the excess until enough tokens are back", () => {
  const { take, advance } = limited();
  expect([take("ann", 4), take("ann", 6), take("ann", 3)]).toEqual([0, 0, 2]);
  advance(1_000);
  expect([take("ann", 3), take("ann", 2), take("ann", 1)]).toEqual([1, 0, 1]);
  advance(3_600_000);
  expect([take("ann", 10), take("ann", 1)]).toEqual([0, 1]);
});

test("keys do not use each other's tokens, and a clock that goes back adds none", () => {
  const { take, advance } = limited();
  expect([take("ann", 10), take("bob", 10)]).toEqual([0, 0]);
  advance(-60_000);
  expect(take("ann", 1)).toBe(1);
});

test("bounds its memory: the key idle longest starts over", () => {
  const { take } = limited();
  take("first", 10);
  for (let n = 0; n < 10_000; n++) take(`other-${n}`, 1);
  expect(take("first", 10)).toBe(0);
  expect(take("other-9999", 10)).toBeGreaterThan(0);
});
