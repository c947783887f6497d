import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { systemClock } from "../../../base/process/clock.ts";
import { readHolder } from "../../../embedded/service/data-directory.ts";
import { developmentSecret, startEmbeddedStack } from "../../../embedded/stack/index.ts";
import type { CommandContext } from "./define-command.ts";
import { onItsStack } from "./its-server.ts";

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "keelson-its-stack-"));
});
afterEach(() => rmSync(directory, { recursive: true, maxRetries: 20 }));

const contextOf = (env: CommandContext["env"]): CommandContext => ({
  env,
  clock: systemClock,
  print: () => {},
  complain: () => {},
  wait: async () => {},
  developmentSecret: () => Promise.reject(new Error("not to be asked for")),
});
const developing = () => ({ NODE_ENV: "development", KEELSON_DIRECTORY: directory });
const variables = async ({ env }: CommandContext) => env;

test("a command uses a running server's stack with its region and secret, and leaves it running", async () => {
  const stack = await startEmbeddedStack({
    directory,
    env: { NODE_ENV: "development", AWS_REGION: "eu-west-1" },
  });
  const env = developing();
  expect(await onItsStack(contextOf(env), undefined, variables)).toEqual({
    ...env,
    ...stack.env,
    KEELSON_AUTH_SECRET: developmentSecret(directory, env),
  });
  expect((await fetch(stack.endpoint)).status).toBe(200);
  const named = { ...env, KEELSON_AUTH_SECRET: "named".repeat(10) };
  expect(await onItsStack(contextOf(named), undefined, variables)).toMatchObject(named);
  await stack.close();
});

test("without a running server, starts the directory's stack and stops it, even if the work fails", async () => {
  const stack = await startEmbeddedStack({ directory, env: developing() });
  await stack.close();
  const { AWS_ENDPOINT_URL: endpoint } = await onItsStack(
    contextOf(developing()),
    undefined,
    async ({ env }) => {
      expect((await fetch(String(env["AWS_ENDPOINT_URL"]))).status).toBe(200);
      return env;
    },
  );
  await expect(fetch(String(endpoint))).rejects.toThrow("fetch failed");
  await expect(
    onItsStack(contextOf(developing()), undefined, () => Promise.reject(new Error("no luck"))),
  ).rejects.toThrow("no luck");
  expect(readHolder(directory)).toMatchObject({ isEnding: true });
});

test("refuses a directory without data, so that a wrong variable creates nothing", async () => {
  await expect(onItsStack(contextOf(developing()), undefined, variables)).rejects.toThrow(
    `${directory} has no data, and in development the server stores its data there: start the server first`,
  );
});

test.each([
  ["production", { NODE_ENV: "production" }, undefined],
  ["a function", { NODE_ENV: "development", AWS_LAMBDA_FUNCTION_NAME: "files" }, undefined],
  ["an endpoint", { NODE_ENV: "development", AWS_ENDPOINT_URL: "http://127.0.0.1:1" }, undefined],
  [
    "a server of production",
    { NODE_ENV: "development" },
    { environment: "production", options: {} },
  ],
  [
    "a server that names an endpoint",
    { NODE_ENV: "development" },
    { environment: "development", options: { dynamodb: { endpoint: "http://127.0.0.1:1" } } },
  ],
] as const)("%s uses the environment unchanged", async (_, env, server) => {
  const own = { ...env, KEELSON_DIRECTORY: directory };
  expect(
    await onItsStack(contextOf(own), server as Parameters<typeof onItsStack>[1], variables),
  ).toBe(own); // safe: options are optional
});
