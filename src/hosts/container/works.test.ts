import { expect, onTestFinished, test } from "vitest";
import { unusedAdapters } from "../../../test/fixtures/unused-adapters.ts";
import { defineFeature } from "../../app/features/feature.ts";
import { openContainerMetrics } from "../../app/metrics/metrics.ts";
import { createRuntime } from "../../app/server/create-runtime.ts";
import { buildServer, serverInternals } from "../../app/server/server.ts";
import { access } from "../../base/identity/access.ts";
import type { ContainerWork } from "../container-http/http-options.ts";
import { routesOf, worksOf } from "./works.ts";

const web = { AWS_LAMBDA_HTTP_ENDPOINT: "0.0.0.0:8080" };

test.each<[ContainerWork[] | undefined, NodeJS.ProcessEnv, ContainerWork[]]>([
  [undefined, {}, ["http", "workers", "schedules"]],
  [["workers"], {}, ["workers"]],
  [undefined, { KEELSON_RUN: "workers" }, ["workers"]],
  [undefined, { KEELSON_RUN: " schedules , http,http" }, ["schedules", "http"]],
  [["http"], { KEELSON_RUN: "workers" }, ["http"]],
  [undefined, web, ["http"]],
  [["http"], web, ["http"]],
  [undefined, { ...web, KEELSON_RUN: "http" }, ["http"]],
])("with %j and %j, a process does %j", (given, variables, works) => {
  expect([...worksOf(given, variables)]).toEqual(works);
});

test.each(["", " ", "https", "http,", "http;workers", "toString"])(
  "KEELSON_RUN=%j is refused",
  (text) => {
    expect(() => worksOf(undefined, { KEELSON_RUN: text })).toThrow(
      `KEELSON_RUN: ${JSON.stringify(text)} is not a list of some of http, workers, schedules`,
    );
  },
);

test.each<[ContainerWork[] | undefined, string | undefined]>([
  [["http", "workers"], undefined],
  [["workers"], undefined],
  [undefined, "http,schedules"],
])("a Web Function refuses %j and KEELSON_RUN=%s", (given, text) => {
  const variables = { ...web, ...(text === undefined ? {} : { KEELSON_RUN: text }) };
  expect(() => worksOf(given, variables)).toThrow("run: a Web Function only serves requests");
});

test("a process that serves no requests still has the routes that monitoring polls", async () => {
  const notes = defineFeature("notes", (r) => {
    r.query("note.list", { route: "GET /notes", access: access.everyone, handler: () => [] });
  });
  const server = buildServer({
    features: [notes],
    basePath: "/api",
    metrics: { access: access.everyone },
  });
  const runtime = createRuntime(server, {
    variables: {},
    openAdapters: async () => unusedAdapters,
    measuring: await openContainerMetrics(serverInternals(server)),
  });
  onTestFinished(() => runtime.close());
  const found = (works: readonly ContainerWork[]) => {
    const routes = routesOf(runtime, new Set(works));
    return ["/notes", "/health/live", "/health/ready", "/metrics", "/config"].map(
      (path) => routes.match("GET", `/api${path}`, "/api").kind,
    );
  };
  expect(found(["http"])).toEqual(Array.from({ length: 5 }, () => "found"));
  expect(found(["workers", "schedules"])).toEqual([
    ...["not-found", "found", "found", "found", "not-found"],
  ]);
});
