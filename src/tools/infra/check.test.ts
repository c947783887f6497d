import { describe, expect, test } from "vitest";
import { z } from "zod";
import { defineFeature } from "../../app/features/feature.ts";
import { buildServer, serverInternals } from "../../app/server/server.ts";
import { access } from "../../base/identity/access.ts";
import { lambdaOutbox, lambdaQueue, lambdaSweep } from "../../hosts/lambda/workers.ts";
import { lambdaHandler, lambdaHttp } from "../../hosts/lambda-http/http-handler.ts";
import { mistakes } from "./check.ts";
import type { ComparedTemplate } from "./difference.ts";
import { serverTemplate } from "./server-template.ts";

declare module "../../base/types/names.ts" {
  interface Events {
    "kite.torn": Record<string, never>;
  }
}

type Change = (properties: Record<string, unknown>) => void;

const indexes = {
  byOwner: { partitionKey: "owner" },
  byColour: { partitionKey: "colour", project: ["size"] },
};
const kites = defineFeature("kites", (r) => {
  r.table("kites", { partitionKey: "pk", sortKey: "sk", indexes, tenant: false });
  r.event("kite.torn", z.object({}));
  r.on("kite.torn", { name: "mend", handler: async () => undefined });
  const options = { access: access.everyone, handler: async () => undefined };
  r.query("kite.show", { ...options, route: "GET /kites/:id" });
  r.write("kite.cut-loose", { ...options, route: "DELETE /kites/:id" });
  r.query("kite.count", { handler: async () => undefined });
});
const declared = buildServer({ features: [kites] });
const server = serverInternals(declared);
const data = (): ComparedTemplate =>
  structuredClone(serverTemplate(server, { stage: "dev", part: "data" }));
const own = {
  http: lambdaHttp(declared),
  queue: lambdaQueue(declared),
  stream: lambdaOutbox(declared),
  sweep: lambdaSweep(declared),
};
const each = {
  ...own,
  kitesKiteShow: lambdaHandler(declared, "kites.kite.show"),
  kitesKiteCutLoose: lambdaHandler(declared, "kites.kite.cut-loose"),
};

/** Functions with these handlers, in a template without data. */
function functions(...handlers: readonly unknown[]): ComparedTemplate {
  return functionsWith({ RecursiveLoop: "Allow" }, ...handlers);
}
function functionsWith(more: object, ...handlers: readonly unknown[]): ComparedTemplate {
  const Environment = {
    Variables: Object.fromEntries(
      ["CONFIG", "ONCE", "OUTBOX", "KITES"].map((name) => [`KEELSON_TABLE_${name}`, name]),
    ),
  };
  const entries = handlers.map((Handler, at) => [
    `Function${at}`,
    { Type: "AWS::Lambda::Function", Properties: { Handler, Environment, ...more } },
  ]);
  const CodeEntry = { Type: "String", Default: "out/lambda", Description: "" } as const;
  return { Parameters: { CodeEntry }, Resources: Object.fromEntries(entries) };
}
const handlersOf = (exports: object) =>
  Object.keys(exports).map((name) => ({ "Fn::Sub": `\${CodeEntry}.${name}` }));
const entry = (exports: Readonly<Record<string, unknown>>) => ({ name: "lambda", exports });

describe("a data template", () => {
  test("of the same server has no mistakes", () => {
    expect(mistakes(server, data())).toEqual([]);
  });

  test("without a required table, queue or bus is reported with the name", () => {
    const {
      KitesTable: _table,
      EventBus: _bus,
      EventQueue: _events,
      JobQueue: _jobs,
      ...Resources
    } = data().Resources;
    expect(mistakes(server, { Resources })).toEqual([
      "the table kites is declared, and the template has no KitesTable",
      "the server needs EventBus, which is missing in the template",
      "the server needs EventQueue, which is missing in the template",
      "the server needs JobQueue, which is missing in the template",
    ]);
    const KitesTable = { Type: "AWS::SQS::Queue" };
    expect(mistakes(server, { Resources: { ...data().Resources, KitesTable } })).toEqual([
      expect.stringContaining("no KitesTable"),
    ]);
    const empty = { ConfigTable: { Type: "AWS::DynamoDB::Table" } };
    expect(mistakes(server, { Resources: { ...data().Resources, ...empty } })).toEqual([
      "the table config: the KeySchema of ConfigTable differs from the declaration",
    ]);
  });

  test.each<[string, string, Change, readonly string[]]>([
    [
      "other keys",
      "KitesTable",
      (table) => Object.assign(table, { KeySchema: [] }),
      ["the table kites: the KeySchema of KitesTable differs from the declaration"],
    ],
    [
      "no time to live",
      "OnceTable",
      (table) => delete table["TimeToLiveSpecification"],
      ["the table once: the TimeToLiveSpecification of OnceTable differs from the declaration"],
    ],
    [
      "no stream",
      "OutboxTable",
      (table) => delete table["StreamSpecification"],
      ["the table outbox: the StreamSpecification of OutboxTable differs from the declaration"],
    ],
    [
      "no index",
      "KitesTable",
      (table) => delete table["GlobalSecondaryIndexes"],
      ["byOwner", "byColour"].map(
        (index) => `the index ${index} of the table kites: in KitesTable it does not exist`,
      ),
    ],
    [
      "indexes that are no list",
      "KitesTable",
      (table) => Object.assign(table, { GlobalSecondaryIndexes: { "Fn::If": [] } }),
      [expect.stringContaining("byOwner"), expect.stringContaining("byColour")],
    ],
    [
      "an index that projects more",
      "KitesTable",
      (table) =>
        Object.assign(table, {
          GlobalSecondaryIndexes: (table["GlobalSecondaryIndexes"] as object[]).map((index) => ({
            ...index,
            Projection: { ProjectionType: "ALL" },
          })),
        }),
      [],
    ],
    [
      "a table without recovery",
      "KitesTable",
      (table) => delete table["PointInTimeRecoverySpecification"],
      [],
    ],
  ])("with %s", (_name, id, change, found) => {
    const template = data();
    change(template.Resources[id]?.Properties as Record<string, unknown>);
    expect(mistakes(server, template)).toEqual(found);
  });
});

describe("a template of functions", () => {
  test.each([
    ["one for all routes", own],
    ["one for each handler", each],
  ])("with %s fits an entry that exports them and others", (_name, exports) => {
    const template = functions(...handlersOf(exports));
    expect(mistakes(server, template, entry({ ...each, config: {} }))).toEqual([]);
    expect(mistakes(server, template)).toEqual([]);
    expect(
      mistakes(server, { ...template, Resources: { ...template.Resources, ...data().Resources } }),
    ).toEqual([]);
  });

  test("without a required function is reported with its name", () => {
    expect(mistakes(server, functions("lambda.http", "lambda.kitesKiteShow"))).toEqual(
      ["kitesKiteCutLoose", "queue", "stream", "sweep"].map(
        (name) => `the server needs a function ${name}, which is missing in the template`,
      ),
    );
    const plain = serverInternals(buildServer({ features: [] }));
    expect(mistakes(plain, functions("lambda.http"))).toEqual([]);
    expect(mistakes(plain, functions("lambda.other"))).toEqual([
      "the server needs a function http, which is missing in the template",
    ]);
  });

  test("without a function that has a table's variable is reported", () => {
    const Resources = {
      Http: { Type: "AWS::Lambda::Function", Properties: { Handler: "lambda.http" } },
    };
    expect(mistakes(serverInternals(buildServer({ features: [] })), { Resources })).toEqual([
      "the table config is declared, but no function has the variable KEELSON_TABLE_CONFIG",
      "the table once is declared, but no function has the variable KEELSON_TABLE_ONCE",
    ]);
  });

  test("with a function of queues whose messages Lambda would drop is reported", () => {
    const dropping =
      "Function1 lets Lambda drop a message after 16 rounds through its queue; give it RecursiveLoop: Allow";
    for (const more of [{}, { RecursiveLoop: "Terminate" }])
      expect(mistakes(server, functionsWith(more, ...handlersOf(own)))).toEqual([dropping]);
    const plain = serverInternals(buildServer({ features: [] }));
    expect(mistakes(plain, functionsWith({}, "lambda.http", "lambda.queue"))).toEqual([]);
  });

  test("with a function that the entry lacks or exports as another one is reported with both names", () => {
    const { http: _, ...without } = each;
    const template = functions(...handlersOf(each));
    expect(mistakes(server, template, entry({ ...without, _a: () => 1 }))).toEqual([
      "Function0 calls lambda.http, and lambda exports no such function; keelson's there are queue, stream, sweep, kitesKiteShow, kitesKiteCutLoose",
    ]);
    expect(
      mistakes(
        server,
        functions("lambda.http", "lambda.queue", "lambda.stream", "lambda.sweep"),
        entry({ queue: () => 1 }),
      ),
    ).toContain(
      "Function0 calls lambda.http, and lambda exports no such function; keelson's there are none",
    );
    const wrong = {
      ...each,
      http: each.kitesKiteShow,
      kitesKiteShow: each.kitesKiteCutLoose,
      queue: each.sweep,
      stream: "no function",
      sweep: each.stream,
    };
    expect(mistakes(server, template, entry(wrong))).toEqual([
      'Function0 calls lambda.http, which has to be lambdaHttp(server) and is lambdaHandler(server, "kites.kite.show")',
      "Function1 calls lambda.queue, which has to be lambdaQueue(server) and is lambdaSweep(server)",
      expect.stringContaining("Function2 calls lambda.stream, and lambda exports no such function"),
      "Function3 calls lambda.sweep, which has to be lambdaSweep(server) and is lambdaOutbox(server)",
      'Function4 calls lambda.kitesKiteShow, which has to be lambdaHandler(server, "kites.kite.show") and is lambdaHandler(server, "kites.kite.cut-loose")',
    ]);
  });

  test.each([
    ["AWS::ApiGatewayV2::Integration", { IntegrationUri: { "Fn::GetAtt": ["Function0", "Arn"] } }],
    ["AWS::ApiGatewayV2::Integration", { IntegrationUri: { "Fn::GetAtt": "Function0.Arn" } }],
    ["AWS::ElasticLoadBalancingV2::TargetGroup", { Targets: [{ Id: { Ref: "Function0" } }] }],
    ["AWS::ApiGatewayV2::Integration", { IntegrationUri: { "Fn::Sub": `x/\${Function0.Arn}/y` } }],
  ])("with a function that streams behind %s is refused: %j", (Type, Properties) => {
    const streaming = { ...own, http: lambdaHttp(declared, { stream: true }) };
    const template = functions(...handlersOf(streaming));
    const front = { Type, Properties };
    const fronted = { ...template, Resources: { ...template.Resources, Front: front } };
    expect(mistakes(server, template, entry(streaming))).toEqual([]);
    expect(mistakes(server, fronted, entry(own))).toEqual([]);
    expect(mistakes(server, fronted, entry(streaming))).toEqual([
      expect.stringMatching(
        /^Function0 streams, and an? (HTTP API|load balancer) calls it, which does not; use .* lambda\.http$/,
      ),
    ]);
  });

  test("may have the application's own functions: wrapped, from another file, or as an image", () => {
    const wrapped = { ...own, http: () => own.http, report: own.sweep };
    const template = functions(
      ...handlersOf(wrapped),
      "other/report.http",
      undefined,
      null,
      { "Fn::If": [] },
      "",
    );
    expect(mistakes(server, template, entry(wrapped))).toEqual([]);
  });

  test("without a function of the entry is reported as one for another entry", () => {
    expect(
      mistakes(server, functions(...handlersOf(own)), { ...entry(own), name: "index" }),
    ).toEqual(["the template has no function whose handler is in index"]);
  });
});

test("a template without tables and functions is reported", () => {
  expect(mistakes(server, { Resources: {} })).toEqual([
    "the template has neither tables nor functions",
  ]);
});
