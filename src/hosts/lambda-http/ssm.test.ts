// own process: it fakes timers
import { PutParameterCommand, SSMClient } from "@aws-sdk/client-ssm";
import { afterEach, expect, test, vi } from "vitest";
import { defineFeature } from "../../app/features/feature.ts";
import { buildServer } from "../../app/server/server.ts";
import { access } from "../../base/identity/access.ts";
import { createTenantConfig } from "../../parts/config/declare/declaration.ts";
import { startTestApp } from "../../tools/testing/index.ts";
import type { HttpApiEvent } from "./api-gateway.ts";
import { type LambdaHttpHandler, lambdaHttp } from "./http-handler.ts";

afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllEnvs();
});

const hello = defineFeature("hello", (r) => {
  const config = r.config({
    keys: {
      limit: createTenantConfig("number", { default: 1, bounds: { min: 1, max: 9 } }),
      token: createTenantConfig("text", { encrypted: true }),
    },
  });
  r.query("limit.show", {
    route: "GET /limit",
    access: access.everyone,
    handler: async (ctx) => ({
      limit: await ctx.config(config.limit),
      token: await ctx.config(config.token),
    }),
  });
});
const build = () =>
  buildServer({ features: [hello], ssm: { path: "/app" }, log: { level: "error" } });

const event = {
  version: "2.0",
  rawPath: "/limit",
  rawQueryString: "",
  headers: {},
  isBase64Encoded: false,
  requestContext: {
    stage: "$default",
    http: { method: "GET", path: "/limit", sourceIp: "203.0.113.9" },
  },
} as unknown as HttpApiEvent; // the parts of the event that are read

async function stackWith(parameters: Readonly<Record<string, string>>) {
  const app = await startTestApp(buildServer({ features: [hello], ssm: { path: "/app" } }), {
    parameters,
  });
  for (const [name, value] of Object.entries(app.env)) vi.stubEnv(name, value);
  const client = new SSMClient({
    endpoint: app.env["AWS_ENDPOINT_URL"] ?? "",
    region: "us-east-1",
  });
  return {
    app,
    put: (Name: string, Value: string, Type: "String" | "SecureString" = "String") =>
      client.send(new PutParameterCommand({ Name, Value, Type, Overwrite: true })),
    close: async () => {
      client.destroy();
      await app.close();
    },
  };
}

const ask = async (http: LambdaHttpHandler) => {
  const { statusCode, headers, body } = await http(event, {} as never);
  return { statusCode, retryAfter: headers?.["retry-after"], body: JSON.parse(body ?? "") };
};

test("parameters reach the container and the Lambda function, a SecureString decrypted", async () => {
  const stack = await stackWith({ "/app/hello/limit": "7" });
  expect(await (await stack.app.fetch("/limit")).json()).toEqual({ limit: 7 });

  await stack.put("/app/hello/token", "hush", "SecureString");
  const server = build();
  const http = lambdaHttp(server);
  await server.ready();
  expect(await ask(http)).toMatchObject({ statusCode: 200, body: { limit: 7, token: "hush" } });
  await stack.close();
});

test("answers 503 until an invalid parameter is corrected, and tells the problem only in the log", async () => {
  const stack = await stackWith({});
  await stack.put("/app/hello/limit", "many");
  await stack.put("/app/hello/tokn", "hush-hush", "SecureString");
  const lines: string[] = [];
  const output = vi
    .spyOn(process.stdout, "write")
    .mockImplementation((line) => lines.push(String(line)) > 0);
  vi.useFakeTimers({ toFake: ["Date"] });
  const http = lambdaHttp(build());

  const refused = await ask(http);
  expect(refused).toMatchObject({
    statusCode: 503,
    retryAfter: "7",
    body: { error: "config_unavailable" },
  });
  expect(JSON.stringify(refused)).not.toContain("many");
  await stack.put("/app/hello/limit", "8");
  await stack.put("/app/hello/tokn", "hush-hush", "SecureString");
  expect((await ask(http)).statusCode).toBe(503);
  vi.setSystemTime(Date.now() + 7_000);
  expect((await ask(http)).statusCode).toBe(503);
  output.mockRestore();

  const client = new SSMClient({
    endpoint: stack.app.env["AWS_ENDPOINT_URL"] ?? "",
    region: "us-east-1",
  });
  const { DeleteParameterCommand } = await import("@aws-sdk/client-ssm");
  await client.send(new DeleteParameterCommand({ Name: "/app/hello/tokn" }));
  client.destroy();
  vi.setSystemTime(Date.now() + 7_000);
  expect(await ask(http)).toMatchObject({ statusCode: 200, body: { limit: 8 } });

  const said = lines.join("");
  for (const name of ["/app/hello/limit", "/app/hello/tokn", "did you mean /app/hello/token?"])
    expect(said).toContain(name);
  expect(said).not.toContain("hush-hush");
  await stack.close();
});

test("answers 503 while SSM cannot be reached, and recovers in later invocations", async () => {
  const stack = await stackWith({ "/app/hello/limit": "7" });
  vi.useFakeTimers({ toFake: ["Date"] });
  vi.stubEnv("AWS_ENDPOINT_URL_SSM", "http://127.0.0.1:9");
  vi.stubEnv("AWS_MAX_ATTEMPTS", "1");
  const output = vi.spyOn(process.stdout, "write").mockReturnValue(true);
  const http = lambdaHttp(build());
  expect(await ask(http)).toMatchObject({ statusCode: 503, body: { error: "config_unavailable" } });
  output.mockRestore();

  vi.stubEnv("AWS_ENDPOINT_URL_SSM", "");
  vi.setSystemTime(Date.now() + 7_000);
  expect(await ask(http)).toMatchObject({ statusCode: 200, body: { limit: 7 } });
  await stack.close();
});
