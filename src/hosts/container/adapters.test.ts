import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { z } from "zod";
import { defineFeature } from "../../app/features/feature.ts";
import { createRuntime } from "../../app/server/create-runtime.ts";
import type { RuntimeOptions } from "../../app/server/runtime-options.ts";
import { buildServer, type Server } from "../../app/server/server.ts";
import { developmentLogFiles } from "../../embedded/stack/development-log.ts";
import { startEmbeddedStack } from "../../embedded/stack/index.ts";
import { bindAdapters, tableMode } from "./adapters.ts";

const directory = mkdtempSync(join(tmpdir(), "keelson-adapters-"));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

const server = (environment: "development" | "production", endpoint?: string): Server =>
  buildServer({
    features: [],
    environment,
    ...(endpoint === undefined ? {} : { dynamodb: { endpoint } }),
  });
const local = { NODE_ENV: "development", KEELSON_DIRECTORY: directory };
const unreachable = {
  AWS_REGION: "us-east-1",
  AWS_ACCESS_KEY_ID: "x",
  AWS_SECRET_ACCESS_KEY: "x",
  AWS_ENDPOINT_URL: "http://127.0.0.1:9",
};
const open = (
  owner: Server,
  variables: Record<string, string>,
  binding: Pick<RuntimeOptions, "openAdapters">,
) => createRuntime(owner, { variables, ...binding }).adapters.open();

test("development without an endpoint uses the embedded stack, with a secret of its own, and closes it", async () => {
  const owner = server("development");
  const binding = await bindAdapters(owner, local);
  const adapters = await open(owner, local, binding);

  expect(binding.adapters).toEqual({ dynamodb: `embedded (${directory})` });
  expect(binding.developmentSecret?.length).toBeGreaterThanOrEqual(32);
  expect(
    await adapters.configRows.read([{ partition: "config#system", key: "a:config:b" }]),
  ).toEqual([undefined]);
  await adapters.close();
});

test("keeps log records in the data directory in development only, whatever the endpoint", async () => {
  const kept = mkdtempSync(join(tmpdir(), "keelson-kept-"));
  const variables = { ...local, KEELSON_DIRECTORY: kept };
  for (const [count, owner] of [
    server("development"),
    server("development", "http://127.0.0.1:9"),
  ].entries()) {
    const { keepRecord } = await bindAdapters(owner, variables);
    createRuntime(owner, {
      variables: { LOG_FORMAT: "pretty" },
      ...(await bindAdapters(owner, variables)),
      write: () => undefined,
      keepRecord,
    }).log.info(`order.seen`, { count });
    const [, current] = developmentLogFiles(kept);
    await expect
      .poll(() => (existsSync(current) ? readFileSync(current, "utf8") : ""))
      .toMatch(new RegExp(`"msg":"order.seen","count":${count},`));
  }
  rmSync(kept, { recursive: true });
  for (const [environment, more] of [
    ["production", {}],
    ["development", { NODE_ENV: "production" }],
    ["development", { NODE_ENV: "test" }],
    ["development", { AWS_LAMBDA_FUNCTION_NAME: "f" }],
  ] as const) {
    const variables = { ...local, ...unreachable, ...more };
    const binding = await bindAdapters(server(environment), variables).catch(
      (error: Error) => error,
    );
    expect(binding).not.toHaveProperty("keepRecord");
  }
});

test("can end polls on the embedded stack, but not on queues elsewhere", async () => {
  for (const [more, is] of [
    [{}, true],
    [{ AWS_ENDPOINT_URL_SQS: "http://127.0.0.1:9" }, false],
  ] as const) {
    const variables = { ...local, ...more };
    const owner = server("development");
    const adapters = await open(owner, variables, await bindAdapters(owner, variables));
    expect(adapters.endPolls !== undefined).toBe(is);
    await adapters.close();
  }
});

test("stops an embedded stack whose tables cannot be created, and releases its directory", async () => {
  const owner = server("development");
  const broken = { ...local, KEELSON_TABLE_CONFIG: "x" }; // DynamoDB wants three characters
  await expect(open(owner, broken, await bindAdapters(owner, broken))).rejects.toThrow(/3/);

  await (await open(owner, local, await bindAdapters(owner, local))).close();
});

test("the default directory is .keelson", async () => {
  const before = process.cwd();
  process.chdir(directory);
  try {
    expect(
      (await bindAdapters(server("development"), { NODE_ENV: "development" })).adapters,
    ).toEqual({
      dynamodb: "embedded (.keelson)",
    });
  } finally {
    process.chdir(before);
  }
});

test("a configured endpoint takes precedence, and its tables are created", async () => {
  const stack = await startEmbeddedStack({ env: { NODE_ENV: "test" } });
  try {
    const owner = server("production");
    const binding = await bindAdapters(owner, stack.env);
    expect(binding).toMatchObject({ adapters: { dynamodb: stack.endpoint } });
    expect(binding.developmentSecret).toBeUndefined();
    await (await open(owner, stack.env, binding)).close();
    const byOption = await bindAdapters(server("production", stack.endpoint), {});
    expect(byOption.adapters).toEqual({ dynamodb: stack.endpoint });
  } finally {
    await stack.close();
  }
});

test("processes that start at once on one emulator all find the resources they need", async () => {
  const stack = await startEmbeddedStack({ env: { NODE_ENV: "test" } });
  try {
    const feature = defineFeature("files", (r) => {
      r.event("file.created", z.object({ id: z.string(), sizeMb: z.number() }));
      r.table("files", { partitionKey: "pk", tenant: false });
    });
    const opened = await Promise.all(
      [1, 2, 3, 4].map(async () => {
        const owner = buildServer({ features: [feature] });
        const variables = { ...local, ...stack.env };
        return open(owner, variables, await bindAdapters(owner, variables));
      }),
    );
    for (const adapters of opened) await adapters.close();
  } finally {
    await stack.close();
  }
});

test("production and Lambda use the AWS account, unless an endpoint is given", async () => {
  expect((await bindAdapters(server("production"), {})).adapters).toEqual({ dynamodb: "aws" });
  expect(
    (await bindAdapters(server("development"), { ...local, AWS_LAMBDA_FUNCTION_NAME: "f" }))
      .adapters,
  ).toEqual({
    dynamodb: "aws",
  });
  const endpoint = "https://dynamodb.eu-central-1.amazonaws.com";
  expect((await bindAdapters(server("production", endpoint), {})).adapters).toEqual({
    dynamodb: endpoint,
  });
});

test("with an SSM path, the adapters tell where parameters are read", async () => {
  const owner = (environment: "development" | "production") =>
    buildServer({ features: [], environment, ssm: { path: "/app" } });
  const ssmOf = async (
    environment: "development" | "production",
    variables: Record<string, string>,
  ) => (await bindAdapters(owner(environment), variables)).adapters["ssm"];
  const elsewhere = { AWS_ENDPOINT_URL_SSM: "http://127.0.0.1:9" };

  expect(await ssmOf("development", local)).toBe(`embedded (${directory})`);
  expect(await ssmOf("development", { ...local, ...elsewhere })).toBe("http://127.0.0.1:9");
  expect(await ssmOf("production", {})).toBe("aws");
  expect(await ssmOf("production", elsewhere)).toBe("http://127.0.0.1:9");
  expect(await ssmOf("production", { AWS_ENDPOINT_URL: "http://127.0.0.1:8" })).toBe(
    "http://127.0.0.1:8",
  );
  expect(await ssmOf("production", { AWS_ENDPOINT_URL_DYNAMODB: "http://127.0.0.1:8" })).toBe(
    "aws",
  );
});

test("with events, jobs or channels, the adapters tell where the bus and queues are", async () => {
  const pager = defineFeature("pager", (r) => {
    r.channel("beeper", { input: z.object({}), send: async () => undefined });
  });
  const owner = (environment: "development" | "production") =>
    buildServer({ features: [pager], environment });
  const placesOf = async (
    environment: "development" | "production",
    variables: Record<string, string>,
  ) => {
    const { sqs, eventbridge } = (await bindAdapters(owner(environment), variables)).adapters;
    return [sqs, eventbridge];
  };
  const elsewhere = {
    AWS_ENDPOINT_URL_SQS: "http://127.0.0.1:8",
    AWS_ENDPOINT_URL_EVENTBRIDGE: "http://127.0.0.1:9",
  };

  expect(await placesOf("development", local)).toEqual([
    `embedded (${directory})`,
    `embedded (${directory})`,
  ]);
  expect(await placesOf("development", { ...local, ...elsewhere })).toEqual(
    Object.values(elsewhere),
  );
  expect(await placesOf("production", {})).toEqual(["aws", "aws"]);
  expect(await placesOf("production", elsewhere)).toEqual(Object.values(elsewhere));
});

test("creates tables on any endpoint but AWS's, and only checks them there", () => {
  expect(tableMode("http://localhost:4566")).toBe("create");
  expect(tableMode("https://dynamodb.eu-central-1.amazonaws.com")).toBe("check");
  expect(tableMode("http://localstack:4566")).toBe("create");
  expect(tableMode("https://127.0.0.1:4566")).toBe("create");
  expect(tableMode("https://dynamodb.cn-north-1.amazonaws.com.cn")).toBe("check");
  expect(tableMode("http://dynamodb.eu-west-1.api.aws")).toBe("check");
  expect(tableMode("https://dynamodb.internal.example.com")).toBe("check");
});

test("fails when the store cannot be reached", async () => {
  const owner = server("production");
  const binding = await bindAdapters(owner, unreachable);

  await expect(open(owner, unreachable, binding)).rejects.toThrow(/^DynamoDB: /);
  const account = await bindAdapters(owner, {});
  await expect(open(owner, { ...unreachable, AWS_REGION: "" }, account)).rejects.toThrow(
    /NODE_ENV=development an embedded stack$/,
  );
});

test("a Web Function opens without a look at its tables, which its role does not allow", async () => {
  const owner = server("production");
  const endpoint = "https://dynamodb.nowhere.invalid";
  const container = { ...unreachable, AWS_ENDPOINT_URL: endpoint, AWS_MAX_ATTEMPTS: "1" };
  const web = { ...container, AWS_LAMBDA_HTTP_ENDPOINT: "127.0.0.1:8080" };

  await expect(open(owner, container, await bindAdapters(owner, container))).rejects.toThrow(
    /^DynamoDB: /,
  );
  await (await open(owner, web, await bindAdapters(owner, web))).close();
});
