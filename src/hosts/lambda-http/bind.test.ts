import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { waitFor } from "../../../test/support/wait-for.ts";
import { buildServer, serverInternals } from "../../app/server/server.ts";
import { prepareLambda } from "./bind.ts";
import * as runtimeModule from "./lambda-runtime.ts";

beforeEach(() => {
  vi.stubEnv("AWS_LAMBDA_FUNCTION_NAME", undefined);
  vi.stubEnv("KEELSON_AUTH_SECRET", "");
});
afterEach(() => {
  vi.unstubAllEnvs();
});

test("functions of one server share a runtime, even when first invoked concurrently", async () => {
  const server = buildServer({ features: [] });
  const functions = [
    prepareLambda(server, async () => runtimeModule),
    prepareLambda(server, async () => runtimeModule),
  ];
  const [first, second] = await Promise.all(functions.map((invoked) => invoked.open()));
  expect(first?.runtime).toBe(second?.runtime);
  expect(functions[0]?.value?.runtime).toBe(first?.runtime);
});

test("loads the runtime on the first invocation, or in Lambda when the function is created", async () => {
  const server = buildServer({ features: [] });
  const load = vi.fn(async () => runtimeModule);
  const invoked = prepareLambda(server, load);
  expect(load).not.toHaveBeenCalled();
  vi.stubEnv("AWS_LAMBDA_FUNCTION_NAME", "fn");
  const before = process.listeners("SIGTERM");
  prepareLambda(server, load);
  for (const listener of process.listeners("SIGTERM"))
    if (!before.includes(listener)) process.off("SIGTERM", listener);
  expect(load).toHaveBeenCalledTimes(1);
  expect(serverInternals(server).started).toBe(false);
  await invoked.open();
  expect(serverInternals(server).started).toBe(true);
});

test("a load that fails while the function starts throws nothing, and the invocation retries it", async () => {
  vi.stubEnv("AWS_LAMBDA_FUNCTION_NAME", "fn");
  const before = process.listeners("SIGTERM");
  const load = vi.fn(async () => runtimeModule).mockRejectedValueOnce(new Error("not there"));
  const invoked = prepareLambda(buildServer({ features: [] }), load);
  for (const listener of process.listeners("SIGTERM"))
    if (!before.includes(listener)) process.off("SIGTERM", listener);
  await waitFor(() => expect(load).toHaveBeenCalled());
  await new Promise((resolve) => setImmediate(resolve));
  expect((await invoked.open()).loaded).toBe(runtimeModule);
  expect(load).toHaveBeenCalledTimes(2);
});

test("runs without a request use the function's runtime, even before its first invocation", async () => {
  const server = buildServer({ features: [] });
  const invoked = prepareLambda(server, async () => runtimeModule);
  vi.stubEnv("LOG_LEVEL", "error");
  expect(await server.run({ reason: "a boot task" }, (ctx) => typeof ctx.db.send)).toBe("function");
  expect(invoked.value?.runtime).toBe(await serverInternals(server).bound?.());
  await server.close();
  expect(invoked.value?.runtime.adapters.all.value).toBeDefined();
  await invoked.value?.runtime.close();
});
