import { expect, test } from "vitest";
import { unusedAdapters } from "../../../test/fixtures/unused-adapters.ts";
import { defineFeature } from "../../app/features/feature.ts";
import { createRuntime } from "../../app/server/create-runtime.ts";
import { buildServer } from "../../app/server/server.ts";
import { access } from "../../base/identity/access.ts";
import { requireTokens } from "./run-container.ts";

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

test("a server whose routes need an identity does not start if nothing can verify a token", () => {
  const binding = (developmentSecret?: string) => ({
    adapters: {},
    openAdapters: async () => unusedAdapters,
    ...(developmentSecret === undefined ? {} : { developmentSecret }),
  });
  const { runtime } = runtimeOf("production");
  expect(() => requireTokens(runtime, binding())).toThrow(
    "notes.note.read requires an identified caller",
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
