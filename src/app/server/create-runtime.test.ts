import { expect, test } from "vitest";
import { unusedAdapters } from "../../../test/fixtures/unused-adapters.ts";
import { environmentOf } from "../../base/process/environment.ts";
import { defineFeature } from "../features/feature.ts";
import type { HandlerDeclaration } from "../handlers/handler.ts";
import { createRuntime } from "./create-runtime.ts";
import { buildServer } from "./server.ts";

const adapters = (closed: string[] = []) => ({
  ...unusedAdapters,
  close: async () => void closed.push("closed"),
});

test("every environment except development and test, by exact name, is production", () => {
  expect(environmentOf({ NODE_ENV: "development" })).toBe("development");
  expect(environmentOf({ NODE_ENV: "test" })).toBe("test");
  for (const NODE_ENV of [undefined, "", "Development", "dev", "staging"])
    expect(environmentOf({ NODE_ENV })).toBe("production");
});

test("opens adapters once, retries a failed opening, and closes them on close", async () => {
  const closed: string[] = [];
  let attempts = 0;
  const runtime = createRuntime(buildServer({ features: [] }), {
    variables: {},
    openAdapters: async () => {
      if (++attempts === 1) throw new Error("not yet");
      return adapters(closed);
    },
  });

  await runtime.close();
  await expect(runtime.adapters.open()).rejects.toThrow("not yet");
  const [first, second] = await Promise.all([runtime.adapters.open(), runtime.adapters.open()]);
  expect(first).toBe(second);
  expect(runtime.adapters.all.value).toBe(first);
  expect(attempts).toBe(2);
  await runtime.close();
  expect(closed).toEqual(["closed"]);
});

const notes = defineFeature("notes", (r) => {
  r.query("note.read", { handler: async () => "" });
});

test("adapters for reading configuration exist before their SDK is loaded, and a failed load is retried", async () => {
  let [opened, loads] = [0, 0];
  const load = async () => {
    if (++loads === 1) throw new Error("no file");
  };
  const runtime = createRuntime(buildServer({ features: [notes] }), {
    variables: {},
    openAdapters: async () => {
      opened += 1;
      return { ...adapters(), load };
    },
  });

  // Safe: the feature declares it.
  const reader = runtime.server.registry.handlers.get("notes.note.read") as HandlerDeclaration;
  const first = await runtime.adapters.openFor(reader);
  expect([runtime.adapters.openFor(reader), runtime.adapters.all.value, loads]).toEqual([
    first,
    undefined,
    0,
  ]);
  await expect(runtime.adapters.open()).rejects.toThrow("no file");
  expect(runtime.adapters.all.value).toBeUndefined();
  expect(await runtime.adapters.open()).toBe(first);
  expect([runtime.adapters.all.value, opened, loads]).toEqual([first, 1, 2]);
  await runtime.close();
  expect(runtime.adapters.all.value).toBeUndefined();
});

test("creates shared state once per opening of the adapters, and again for the next", async () => {
  let attempts = 0;
  const runtime = createRuntime(buildServer({ features: [] }), {
    variables: {},
    openAdapters: async () => {
      if (++attempts === 1) throw new Error("not yet");
      return adapters();
    },
  });

  await expect(runtime.runs.open()).rejects.toThrow("not yet");
  expect(runtime.runs.value).toBeUndefined();
  const [first, second] = await Promise.all([runtime.runs.open(), runtime.runs.open()]);
  expect(first).toBe(second);
  expect(runtime.runs.value).toBe(first);
  expect(await runtime.runs.open()).toBe(first);
  await runtime.close();
  expect(runtime.runs.value).toBeUndefined();
  expect(await runtime.runs.open()).not.toBe(first);
});

test("a table's name is the value of its variable, or else prefix and name", () => {
  const runtime = createRuntime(buildServer({ features: [], dynamodb: { prefix: "p" } }), {
    variables: { KEELSON_TABLE_MY_FILES: "elsewhere" },
    openAdapters: async () => adapters(),
  });

  expect(runtime.tableName("my-files")).toBe("elsewhere");
  expect([runtime.tableName("other"), runtime.tableName("other")]).toEqual(["p-other", "p-other"]);
});

test("tokens are verified by the server's own auth, else KEELSON_AUTH_SECRET, the development secret, or not at all", () => {
  const verifies = (
    options: object,
    variables: Record<string, string>,
    developmentSecret?: string,
  ) =>
    createRuntime(buildServer({ features: [], ...options }), {
      variables,
      openAdapters: async () => adapters(),
      ...(developmentSecret === undefined ? {} : { developmentSecret }),
    }).verifiesTokens;
  const secret = "s".repeat(32);

  expect(verifies({ auth: { secret } }, {})).toBe(true);
  expect(verifies({}, { KEELSON_AUTH_SECRET: secret })).toBe(true);
  expect(verifies({}, {}, secret)).toBe(true);
  expect(verifies({}, {})).toBe(false);
  expect(() => verifies({}, { KEELSON_AUTH_SECRET: "short" })).toThrow(
    /^KEELSON_AUTH_SECRET: .*32/,
  );
});

test("a production server does not start when the environment disables Powertools' idempotency", () => {
  const variables = { POWERTOOLS_IDEMPOTENCY_DISABLED: "true" };
  const start = (environment: "production" | "test") =>
    createRuntime(buildServer({ features: [], environment }), {
      variables,
      openAdapters: async () => adapters(),
    });
  expect(() => start("production")).toThrow(
    /^POWERTOOLS_IDEMPOTENCY_DISABLED is set: it turns off Powertools' idempotency/,
  );
  expect(() => start("test")).not.toThrow();
});

test("a server whose messages need a key ring does not start without one in any environment", async () => {
  const closed: string[] = [];
  const start = (proof: "off" | "require", variables: Record<string, string>) =>
    createRuntime(buildServer({ features: [], environment: "development", messages: { proof } }), {
      variables,
      developmentSecret: "s".repeat(32),
      openAdapters: async () => adapters(closed),
    }).adapters.open();
  await expect(start("require", {})).resolves.toBeDefined();
  // In Lambda no ring is made from what is there for development.
  await expect(start("require", { AWS_LAMBDA_FUNCTION_NAME: "queue" })).rejects.toMatchObject({
    problems: [{ key: "messages.proof", rule: "proof-key-ring" }],
  });
  await expect(start("off", { AWS_LAMBDA_FUNCTION_NAME: "queue" })).resolves.toBeDefined();
  expect(closed).toEqual(["closed"]);
});
