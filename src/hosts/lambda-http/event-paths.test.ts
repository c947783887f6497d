import { expect, test, vi } from "vitest";
import { defineFeature } from "../../app/features/feature.ts";
import { buildServer } from "../../app/server/server.ts";
import { access } from "../../base/identity/access.ts";
import type { LambdaHttpEvent } from "./http-events.ts";
import { lambdaHttp } from "./http-handler.ts";

const files = defineFeature("files", (r) => {
  r.query("file.show", {
    route: "GET /files/:id",
    access: access.everyone,
    handler: async (ctx, input) => ({ ...(input as { id: string }), path: ctx.request?.path }),
  });
});

const http = { method: "GET", sourceIp: "203.0.113.9" };
const version2 = (rawPath: string, requestContext: object) => ({
  version: "2.0",
  rawPath,
  requestContext: { http, ...requestContext },
});
const version1 = (path: string, more: object) => ({
  httpMethod: "GET",
  path,
  requestContext: {},
  ...more,
});
const functionUrl = (domainName: string) => (path: string) =>
  version2(path, { stage: "$default", domainName });

/** How each trigger hands over a path that was sent percent-encoded. */
const decoding: Record<string, (path: string) => object> = {
  "an HTTP API": (path) =>
    version2(decodeURIComponent(path), {
      stage: "$default",
      domainName: "a1.execute-api.eu-west-1.amazonaws.com",
    }),
  "an HTTP API's stage": (path) =>
    version2(`/dev${decodeURIComponent(path)}`, {
      stage: "dev",
      domainName: "a1.execute-api.eu-west-1.amazonaws.com",
    }),
  "an HTTP API behind a domain of one's own": (path) =>
    version2(decodeURIComponent(path), { stage: "$default", domainName: "api.example.com" }),
  "a function URL of LocalStack": (path) =>
    functionUrl("abc.lambda-url.us-east-1.localhost.localstack.cloud:4566")(
      decodeURIComponent(path),
    ),
  "an HTTP API that says no domain": (path) => version2(decodeURIComponent(path), {}),
  "an HTTP API with payload format 1.0": (path) =>
    version1(`/dev${decodeURIComponent(path)}`, {
      version: "1.0",
      requestContext: { stage: "dev" },
    }),
};
const asSent: Record<string, (path: string) => object> = {
  "a function URL": functionUrl("abc.lambda-url.eu-west-1.on.aws"),
  "a function URL in China": functionUrl("abc.lambda-url.cn-north-1.on.amazonwebservices.com.cn"),
  "an HTTP API of serverless-offline": (path) =>
    version2(path, { stage: "$default", domainName: "offlineContext_domainName" }),
  "a REST API": (path) => version1(path, { requestContext: { stage: "dev" } }),
  "a load balancer": (path) => version1(path, { requestContext: { elb: {} } }),
};
const triggers = { ...decoding, ...asSent };

async function invoke(event: object, options: { basePath?: string } = {}) {
  const handler = lambdaHttp<LambdaHttpEvent>(
    buildServer({ features: [files], log: { level: "error" }, ...options }),
  );
  const answer = (await handler(event as LambdaHttpEvent, {} as never)) as {
    statusCode: number;
    body: string;
  };
  return { status: answer.statusCode, ...JSON.parse(answer.body) };
}

test.each(Object.entries(triggers))("decodes a path of %s once", async (_name, eventOf) => {
  const ids = [
    "100%",
    "%20",
    "a%2520b",
    "a b",
    "a?b#c",
    "ü✓🙂",
    "a+b",
    "tab\tnewline\n\u0000",
    '"<>\\^`{|}[]',
    "a;b,c@d:e=f&g$!*'()~",
  ];
  for (const id of ids) {
    expect(await invoke(eventOf(`/files/${encodeURIComponent(id)}`))).toMatchObject({
      status: 200,
      id,
    });
  }
});

test.each(Object.entries(triggers))(
  "ctx.request.path of %s is percent-encoded",
  async (_name, eventOf) => {
    expect(await invoke(eventOf("/files/a%20%25%3F%23%C3%BC"))).toMatchObject({
      path: "/files/a%20%25%3F%23%C3%BC",
    });
  },
);

test.each(Object.entries(triggers))(
  "removes a base path from a path of %s",
  async (_name, eventOf) => {
    expect(await invoke(eventOf("/v1/files/50%25"), { basePath: "/v1" })).toMatchObject({
      status: 200,
      id: "50%",
    });
  },
);

test("an encoded slash is one character of a parameter, except in an HTTP API, which decodes it", async () => {
  for (const eventOf of Object.values(asSent))
    expect(await invoke(eventOf("/files/a%2Fb"))).toMatchObject({ id: "a/b" });
  for (const eventOf of Object.values(decoding))
    expect(await invoke(eventOf("/files/a%2Fb"))).toMatchObject({ status: 404 });
});

test("answers 404 to dot segments, whether decoded or not", async () => {
  for (const eventOf of Object.values(triggers)) {
    for (const path of ["/files/%2e%2e", "/files/..", "/files/%2E", "/x/%2e%2e/files/1"]) {
      expect(await invoke(eventOf(path))).toMatchObject({ status: 404 });
    }
  }
});

test("encodes a decoded path with line breaks in the log, and accepts one that no client could send", async () => {
  const lines: string[] = [];
  const output = vi
    .spyOn(process.stdout, "write")
    .mockImplementation((line) => lines.push(String(line)) > 0);
  const server = buildServer({ features: [files], log: { level: "info", requests: false } });
  const handler = lambdaHttp(server);
  await handler(version2("/no\r\n{}\u2028where", {}) as never, {} as never);
  output.mockRestore();

  expect(lines.join("").split("\n")).toHaveLength(2);
  expect(lines[0]).toContain("/no%0D%0A%7B%7D%E2%80%A8where");
  expect(await invoke(version2("/files/\ud800", {}))).toMatchObject({ status: 200, id: "\ufffd" });
});
