import { expect, test } from "vitest";
import { z } from "zod";
import { access } from "../../base/identity/access.ts";
import { jsonLines, sse } from "../../parts/http/streamed-output.ts";
import { defineFeature } from "../features/feature.ts";
import { warnOfLooseOutputs } from "../registry/loose-output.ts";
import { buildServer, serverInternals } from "../server/server.ts";
import { type OpenApiSpec, openApiDocument } from "./openapi.ts";

const item = z.object({ id: z.string(), count: z.number().default(0) });
const feed = defineFeature("feed", (r) => {
  const everyone = { access: access.everyone };
  r.query("event.list", {
    route: "GET /events",
    ...everyone,
    output: sse(item),
    handler: async function* () {},
  });
  r.query("line.list", {
    route: "GET /lines",
    ...everyone,
    output: jsonLines(item),
    handler: async function* () {},
  });
});

async function contentOf(path: string, spec?: OpenApiSpec) {
  const server = serverInternals(buildServer({ features: [feed] }));
  const { document, unsaid } = await openApiDocument(server, {
    own: [],
    ...(spec === undefined ? {} : { spec }),
  });
  expect(unsaid).toEqual([]);
  const responses = JSON.parse(JSON.stringify(document)).paths[path].get.responses;
  expect(Object.keys(responses)).toContain("200");
  expect(Object.keys(responses)).not.toContain("204");
  return responses["200"].content;
}

const described = {
  type: "object",
  properties: { id: { type: "string" }, count: { type: "number", default: 0 } },
  required: ["id", "count"],
  additionalProperties: false,
};

test.each([
  ["3.1", "x-itemSchema"],
  ["3.2", "itemSchema"],
] as const)("OpenAPI %s describes the items of streams in %s", async (spec, member) => {
  expect(await contentOf("/lines", spec)).toEqual({
    "application/jsonl": { [member]: described },
  });
  expect(await contentOf("/events", spec)).toEqual({
    "text/event-stream": {
      [member]: {
        type: "object",
        properties: {
          data: {
            type: "string",
            contentMediaType: "application/json",
            contentSchema: described,
          },
          id: { type: "string" },
          event: { type: "string" },
          retry: { type: "integer", minimum: 0 },
        },
        required: ["data"],
      },
    },
  });
});

test("the default is 3.1", async () => {
  expect(await contentOf("/lines")).toEqual({ "application/jsonl": { "x-itemSchema": described } });
});

test("an item schema that accepts undeclared members is warned of like any output", () => {
  const loose = defineFeature("loose", (r) => {
    r.query("event.list", {
      output: sse(z.looseObject({ id: z.string() })),
      handler: async function* () {},
    });
  });
  const warned: unknown[] = [];
  warnOfLooseOutputs({
    environment: "development",
    server: serverInternals(buildServer({ features: [loose] })),
    log: { warn: (msg: string, data: object) => void warned.push([msg, data]) },
  } as never); // the parts that it reads
  expect(warned).toEqual([
    ["output.loose", { handlers: [{ name: "loose.event.list", at: "result" }] }],
  ]);
});
