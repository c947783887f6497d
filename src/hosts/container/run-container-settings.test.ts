import { expect, test } from "vitest";
import { unusedAdapters } from "../../../test/fixtures/unused-adapters.ts";
import { defineFeature } from "../../app/features/feature.ts";
import { createRuntime } from "../../app/server/create-runtime.ts";
import { buildServer } from "../../app/server/server.ts";
import { access } from "../../base/identity/access.ts";
import {
  ListenError,
  listenError,
  portOf,
  requireTokens,
  shutdownTimes,
  warnOfPlatform,
} from "./run-container.ts";

const guarded = defineFeature("notes", (r) => {
  r.query("note.internal", { handler: () => "" });
  r.query("note.hello", { route: "GET /hello", access: access.everyone, handler: () => "" });
  r.query("note.read", { route: "GET /note", access: access.tenant, handler: () => "" });
});

function runtimeOf(
  environment: "development" | "production",
  {
    variables = {},
    features = [guarded],
  }: { variables?: object; features?: never[] | [typeof guarded] } = {},
) {
  const lines: Record<string, unknown>[] = [];
  const runtime = createRuntime(buildServer({ features, environment }), {
    variables: { ...variables },
    openAdapters: async () => unusedAdapters,
    write: (line) => void lines.push(JSON.parse(line) as Record<string, unknown>),
  });
  return { runtime, lines };
}

test("the port is that of the options, else PORT, else 3000", () => {
  expect(portOf(0, { PORT: "8080" })).toBe(0);
  expect(portOf(undefined, { PORT: "8080" })).toBe(8_080);
  for (const variables of [{}, { PORT: "" }]) expect(portOf(undefined, variables)).toBe(3_000);
});

test("a port that is none is refused with its value", () => {
  for (const port of [-1, 1.5, 65_536])
    expect(() => portOf(port, {})).toThrow(`PORT: ${port} is not a port`);
  expect(() => portOf(undefined, { PORT: "http" })).toThrow('PORT: "http" is not a port');
});

test("a process that restarts on changes does not linger", () => {
  const variables = { KEELSON_WATCH: "1" };
  expect(shutdownTimes(runtimeOf("production", { variables }).runtime).lingerMs).toBe(3_000);
  expect(shutdownTimes(runtimeOf("production").runtime, { lingerMs: 5 }).lingerMs).toBe(5);
  const { runtime } = runtimeOf("development", { variables });
  expect(shutdownTimes(runtime, { lingerMs: 5, drainMs: 7 })).toEqual({
    lingerMs: 0,
    drainMs: 7,
    totalMs: 40_000,
  });
});

test("production is warned of a shutdown that is longer than platforms wait", () => {
  const { runtime, lines } = runtimeOf("production");
  warnOfPlatform(runtime, { totalMs: 30_000 });
  warnOfPlatform(runtimeOf("development").runtime);
  expect(lines).toEqual([]);
  warnOfPlatform(runtime);
  expect(lines).toMatchObject([{ msg: "shutdown.platform_limit", totalMs: 40_000 }]);
});

test("a server whose routes need an identity does not start if nothing can verify a token", () => {
  const binding = (developmentSecret?: string) => ({
    adapters: {},
    openAdapters: async () => unusedAdapters,
    ...(developmentSecret === undefined ? {} : { developmentSecret }),
  });
  const { runtime } = runtimeOf("production");
  expect(() => requireTokens(runtime, binding())).toThrow(
    "notes.note.read needs to know who calls",
  );
  expect(() => requireTokens(runtime, binding("s".repeat(32)))).not.toThrow();
  const variables = { KEELSON_AUTH_SECRET: "s".repeat(32) };
  expect(() =>
    requireTokens(runtimeOf("production", { variables }).runtime, binding()),
  ).not.toThrow();
  expect(() =>
    requireTokens(runtimeOf("production", { features: [] }).runtime, binding()),
  ).not.toThrow();
});

const failure = (code: string) => Object.assign(new Error(`listen ${code}: :::80`), { code });

test.each([
  [
    "EADDRINUSE",
    "Port 80 is in use: stop the process that listens on it, or set PORT to another one",
  ],
  ["EACCES", "Port 80 may not be used by this user: set PORT to one above 1023"],
])("%s becomes one sentence that tells how to fix it", (code, message) => {
  const error = listenError(failure(code), 80);
  expect(error).toBeInstanceOf(ListenError);
  expect((error as ListenError).message).toBe(message); // safe: it is one
});

test("leaves any other error unchanged", () => {
  const error = failure("EADDRNOTAVAIL");
  expect(listenError(error, 80)).toBe(error);
});
