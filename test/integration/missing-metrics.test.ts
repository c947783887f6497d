// own process: it replaces modules
import { access, buildServer } from "keelson";
import { lambdaHttp } from "keelson/lambda";
import { lambdaContext, lambdaEvent, startTestApp } from "keelson/testing";
import { afterEach, expect, test, vi } from "vitest";

vi.mock("prom-client", () => {
  throw new Error("Cannot find package 'prom-client'");
});
vi.mock("@aws-lambda-powertools/metrics", () => {
  throw new Error("Cannot find package '@aws-lambda-powertools/metrics'");
});
afterEach(() => vi.restoreAllMocks());

const server = buildServer({ features: [], metrics: { access: access.everyone } });

test("without prom-client a container answers, has no page, and logs what to install", async () => {
  const app = await startTestApp(server);

  expect((await app.fetch("/health/live")).status).toBe(200);
  expect((await app.fetch("/metrics")).status).toBe(404);
  expect(app.logs).toContainEqual(
    expect.objectContaining({
      level: "warn",
      msg: "metrics.unavailable",
      fix: "npm install prom-client",
    }),
  );
  await app.close();
});

test("without Powertools' package a function answers, and logs what to install", async () => {
  const lines: unknown[] = [];
  vi.spyOn(process.stdout, "write").mockImplementation(
    (line) => lines.push(JSON.parse(String(line))) > 0,
  );
  const event = lambdaEvent("httpApi", { path: "/health/live" });

  expect(await lambdaHttp(server)(event as never, lambdaContext() as never)).toMatchObject({
    statusCode: 200,
  });
  expect(lines).toContainEqual(
    expect.objectContaining({
      msg: "metrics.unavailable",
      fix: "npm install @aws-lambda-powertools/metrics",
    }),
  );
});
