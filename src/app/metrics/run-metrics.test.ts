import { expect, test } from "vitest";
import { recordedMetrics } from "../../../test/support/recorded-metrics.ts";
import { PermanentError } from "../../base/errors/errors.ts";
import {
  type ObservedRun,
  observers,
  type RunEnd,
  type RunObserver,
} from "../observe/run-observer.ts";
import { buildServer, serverInternals } from "../server/server.ts";
import { createRunMetrics, declaredLabels, routeLabel } from "./run-metrics.ts";

const scopeOf = (more: Partial<ObservedRun> = {}) =>
  ({
    startMs: 1_000,
    handler: "shop.order.pack",
    isReplayed: false,
    ...more,
  }) as unknown as ObservedRun; // the members that are looked at

const measured = (end: RunEnd, more?: Partial<ObservedRun>) => {
  const { metrics, values } = recordedMetrics();
  const observer = createRunMetrics({ metrics, clock: { now: () => 3_000 }, basePath: undefined });
  const scope = scopeOf(more);
  observer.ended(scope, end);
  return values;
};

const request = {
  kind: "request",
  method: "GET",
  status: 200,
  bytes: 1,
  isAborted: false,
} as const;
const task = { kind: "job", outcome: "processed" } as const;

test("measures requests in seconds, without health polls and scrapes", () => {
  expect(measured(request, { route: "GET /orders/:id" })).toEqual([
    ["http.server.request.duration GET https /orders/:id 200", 2],
  ]);
  expect(measured({ ...request, method: undefined, status: 400 }, { handler: undefined })).toEqual([
    ["http.server.request.duration  https 400", 2],
  ]);
  for (const handler of ["keelson.health.live", "keelson.metrics.show"])
    expect(measured(request, { handler })).toEqual([]);
});

test("labels a request with its scheme, and from status 500 with the status as error type", () => {
  const failed = { ...request, status: 503 };
  const series = (more: Partial<ObservedRun>) => measured(failed, more)[0]?.[0];
  expect(series({ asked: { isEncrypted: false } })).toBe(
    "http.server.request.duration GET http 503 503",
  );
  expect(
    series({ asked: { isEncrypted: false }, headers: { "x-forwarded-proto": "https" } }),
  ).toMatch(/ GET https 503 503$/);
});

test("does not measure system runs or replayed messages and schedules", () => {
  expect(measured({ kind: "run", outcome: "processed" })).toEqual([]);
  expect(measured(task, { isReplayed: true })).toEqual([]);
  expect(measured({ ...task, kind: "schedule" }, { isReplayed: true })).toEqual([]);
  expect(measured({ ...task, kind: "schedule", outcome: "handed-back" })).toEqual([]);
});

test("measures a message's duration, age and attempt, never below 0 when the clock goes back", () => {
  expect(measured({ ...task, attempt: 2, sinceMs: 500 })).toEqual([
    ["messaging.process.duration aws.sqs process job shop.order.pack processed", 2],
    ["keelson.message.age job", 0.5],
    ["keelson.message.attempts job", 2],
  ]);
  expect(measured({ ...task, sinceMs: 9_000 }, { startMs: 9_000 })).toEqual([
    ["messaging.process.duration aws.sqs process job shop.order.pack processed", 0],
    ["keelson.message.age job", 0],
  ]);
});

test("labels a failed message with the conventional error type", () => {
  expect(measured({ ...task, outcome: "failed", error: new Error("it broke") })[0]).toEqual([
    "messaging.process.duration aws.sqs process _OTHER job shop.order.pack failed",
    2,
  ]);
});

test("does not count an attempt for a message that another process runs", () => {
  expect(measured({ ...task, outcome: "handed-back", attempt: 1, sinceMs: 1 })).toEqual([
    ["messaging.process.duration aws.sqs process job shop.order.pack handed-back", 2],
  ]);
});

test("counts a delivery by channel and by whether it was sent, can be retried or was refused", () => {
  const outcomes = (end: Partial<RunEnd>) =>
    measured({ ...task, kind: "delivery", channel: "webhook", ...end } as RunEnd)
      .map(([series]) => series)
      .filter((series) => series.startsWith("keelson.deliveries"));

  expect(outcomes({})).toEqual(["keelson.deliveries webhook sent"]);
  expect(outcomes({ outcome: "failed", error: new Error("503") })).toEqual([
    "keelson.deliveries webhook failed",
  ]);
  expect(outcomes({ outcome: "failed", error: new PermanentError("410") })).toEqual([
    "keelson.deliveries webhook refused",
  ]);
});

test("measures the duration of a schedule that fired", () => {
  expect(
    measured({ kind: "schedule", outcome: "failed" }, { handler: "shop.order.nightly" }),
  ).toEqual([["keelson.schedule.duration shop.order.nightly failed", 2]]);
});

test("labels a route as clients see it", () => {
  expect([routeLabel("GET /files/:id"), routeLabel("POST /files", "/api")]).toEqual([
    "/files/:id",
    "/api/files",
  ]);
});

test("every route of keelson is a label of its own, not `other`", () => {
  const server = buildServer({ features: [], basePath: "/api" });
  const { routes } = declaredLabels(serverInternals(server));
  const own = ["/log", "/health/ready", "/health/live", "/metrics", "/openapi.json"];
  expect(routes).toEqual(expect.arrayContaining(own.map((path) => `/api${path}`)));
});

test("notifies both of two observers, and returns a single observer itself", () => {
  const told: string[] = [];
  const named = (name: string): RunObserver => ({
    ended: () => void told.push(`${name} ended`),
  });
  const one = named("one");
  const both = observers(one, named("other"));
  both?.ended(scopeOf(), request);

  expect(told).toEqual(["one ended", "other ended"]);
  expect([
    observers(one, undefined),
    observers(undefined, one),
    observers(undefined, undefined),
  ]).toEqual([one, one, undefined]);
});
