import { readdirSync, readFileSync } from "node:fs";
import { SourceMap } from "node:module";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import * as functions from "../../examples/files/lambda.ts";
import { server } from "../../examples/files/server.ts";
import { namePrefix } from "../../src/infra/parameters.ts";
import { ofType, type Package, packaged, type Resource, root } from "./package.ts";

interface Statement {
  readonly Sid?: string;
  readonly Action: string | readonly string[];
  readonly Resource: unknown;
}

/** A stage's throttling, and what `queue` may run at once. */
const limits = { ThrottlingRateLimit: 100, ThrottlingBurstLimit: 200, MaximumConcurrency: 10 };

describe.each([
  ["one function for all routes", [], { count: 4, runtime: "nodejs24.x", architecture: "arm64", limits }],
  [
    "one function for each handler, in production",
    ["--stage", "prod", ..."shape=each runtime=nodejs22.x architecture=x86_64".split(" ").flatMap((text) => ["--param", text])],
    {
      count: 10,
      runtime: "nodejs22.x",
      architecture: "x86_64",
      limits: { ...limits, ThrottlingRateLimit: 500, ThrottlingBurstLimit: 1_000 },
    },
  ],
])("packaged as %s", (_name, args, { count, runtime, architecture, limits }) => {
  let made: Package;
  beforeAll(async () => {
    made = await packaged(...args);
  });

  test("each function is one that the module exports, with a log group that does not keep lines for ever", () => {
    const lambdas = ofType(made, "AWS::Lambda::Function");
    expect(lambdas.length).toBe(count);
    for (const [name, { Properties }] of lambdas) {
      const handler = String(Properties["Handler"]);
      expect([name, handler]).toEqual([name, expect.stringMatching(/^infra\/dist\/lambda\.\w+$/)]);
      expect([name, Properties["Runtime"], Properties["Architectures"]]).toEqual([name, runtime, [architecture]]);
      expect(Object.keys(functions)).toContain(handler.replace("infra/dist/lambda.", ""));
      const group = made.resources[name.replace("LambdaFunction", "LogGroup")];
      expect([name, group?.Properties["RetentionInDays"]]).toEqual([name, expect.any(Number)]);
    }
  });

  test("each function is told the table of every declaration, the bus and the queues", () => {
    const names = ["config", "once", "outbox", ...server.registry.tables.keys()].map(
      (name) => `KEELSON_TABLE_${name.toUpperCase()}`,
    );
    for (const [, { Properties }] of ofType(made, "AWS::Lambda::Function")) {
      expect(Properties["Environment"]).toEqual({
        Variables: expect.objectContaining({
          ...Object.fromEntries(names.map((name) => [name, { Ref: expect.stringMatching(/Table$/) }])),
          KEELSON_EVENT_BUS: { Ref: "EventBus" },
          KEELSON_EVENT_QUEUE: { Ref: "EventQueue" },
          KEELSON_JOB_QUEUE: { Ref: "JobQueue" },
        }),
      });
    }
  });

  test("functions that answer requests have the secret of tokens, and no other has", () => {
    for (const [name, { Properties }] of ofType(made, "AWS::Lambda::Function")) {
      const answers = !/^(Queue|Stream|Sweep)LambdaFunction$/.test(name);
      const secret = JSON.stringify(variablesOf(Properties)["KEELSON_AUTH_SECRET"]);
      expect([name, secret?.includes("{{resolve:secretsmanager:")]).toEqual([name, answers ? true : undefined]);
    }
  });

  test("the API is throttled, and each request to it logged, without a header that is a secret", () => {
    const { MaximumConcurrency: _, ...throttling } = limits;
    const { DefaultRouteSettings, AccessLogSettings } = made.resources["HttpApiStage"]?.Properties ?? {};
    expect(DefaultRouteSettings).toEqual({ DetailedMetricsEnabled: false, ...throttling });
    expect(AccessLogSettings).toEqual({
      DestinationArn: { "Fn::GetAtt": ["HttpApiLogGroup", "Arn"] },
      Format: expect.not.stringMatching(/header|querystring|authorizer|body|claims/i),
    });
    expect(made.resources["HttpApiLogGroup"]?.Properties["RetentionInDays"]).toEqual(expect.any(Number));
    // Safe: it was just looked at.
    const { Format } = AccessLogSettings as { readonly Format: string };
    const members = Object.keys(JSON.parse(Format));
    expect(members).toEqual(
      expect.arrayContaining(["requestId", "routeKey", "status", "latencyMs", "sourceIp", "integrationError"]),
    );
    // A client that closes a quote cannot write a member that counts after these.
    expect(members.slice(0, 2)).toEqual(["userAgent", "path"]);
  });

  test("queues cannot take all functions of the account, and nothing is reserved that a small account lacks", () => {
    for (const [name, { Properties }] of ofType(made, "AWS::Lambda::Function")) {
      expect([name, Properties["ReservedConcurrentExecutions"]]).toEqual([name, undefined]);
    }
    const scaling = ofType(made, "AWS::Lambda::EventSourceMapping")
      .filter(([name]) => name.startsWith("Queue"))
      .map(([, { Properties }]) => Properties["ScalingConfig"]);
    expect(scaling).toEqual([1, 2].map(() => ({ MaximumConcurrency: limits.MaximumConcurrency })));
  });

  test("queues and buckets refuse what comes without TLS", () => {
    const policies = [...ofType(made, "AWS::SQS::QueuePolicy"), ...ofType(made, "AWS::S3::BucketPolicy")];
    const queues = ofType(made, "AWS::SQS::Queue").map(([name]) => name);
    expect(policies.flatMap(([, { Properties }]) => Properties["Queues"] ?? [])).toEqual(
      expect.arrayContaining(queues.map((name) => ({ Ref: name }))),
    );
    expect(policies.length).toBe(queues.length + ofType(made, "AWS::S3::Bucket").length);
    for (const [name, { Properties }] of policies) {
      const { Statement } = Properties["PolicyDocument"] as { readonly Statement: readonly object[] }; // safe: of this repository
      const denied = Statement.filter((statement) => "Effect" in statement && statement.Effect === "Deny");
      const condition = { Bool: { "aws:SecureTransport": expect.toSatisfy((value) => String(value) === "false") } };
      expect([name, denied]).toEqual([name, [expect.objectContaining({ Principal: "*", Condition: condition })]]);
    }
  });

  test("no role may do anything on everything, and none is assumed by anybody but Lambda", () => {
    const roles = ofType(made, "AWS::IAM::Role");
    expect(roles.length).toBeGreaterThan(3);
    for (const [name, role] of roles) {
      for (const { Sid, Action, Resource } of statementsOf(role)) {
        expect([name, Sid, [Action].flat().filter((action) => action.includes("*"))]).toEqual([name, expect.any(String), []]);
        // What it is on is one resource, or what lies below a path.
        expect([name, Sid, JSON.stringify(Resource)]).toEqual([name, Sid, expect.not.stringMatching(/"\*"|:\*"|:table\/\*/)]);
      }
      expect(role.Properties["AssumeRolePolicyDocument"]).toMatchObject({
        Statement: [{ Principal: { Service: "lambda.amazonaws.com" } }],
      });
    }
  });

  test("every batch is answered with what has to come again", () => {
    const mappings = ofType(made, "AWS::Lambda::EventSourceMapping");
    expect(mappings.length).toBe(3);
    for (const [, { Properties }] of mappings) expect(Properties["FunctionResponseTypes"]).toEqual(["ReportBatchItemFailures"]);
  });

  test("a message is hidden six times as long as its function may take", () => {
    const timeoutSeconds = Number(made.resources["QueueLambdaFunction"]?.Properties["Timeout"]);
    for (const name of ["EventQueue", "JobQueue"]) {
      expect(made.resources[name]?.Properties["VisibilityTimeout"]).toBeGreaterThanOrEqual(6 * timeoutSeconds);
    }
  });

  test("nobody reads payloads in the stream of the outbox", () => {
    expect(made.resources["OutboxTable"]?.Properties["StreamSpecification"]).toEqual({ StreamViewType: "KEYS_ONLY" });
  });

  test("the archive holds the bundle without its maps, and nothing of this machine", () => {
    expect(made.archive).toContain("infra/dist/lambda.mjs");
    expect(made.archive).not.toMatch(/\.map|\.env|\.keelson|development-secret|node_modules/);
  });

  test("tables are those of `keelson infra`, which stay when the stack goes", () => {
    for (const name of ["ConfigTable", "OutboxTable", "FilesTable"]) {
      expect(made.resources[name]).toMatchObject({
        DeletionPolicy: "Retain",
        Properties: {
          DeletionProtectionEnabled: { Ref: "DeletionProtection" },
          PointInTimeRecoverySpecification: { PointInTimeRecoveryEnabled: true },
          TableName: { "Fn::Sub": expect.stringContaining(namePrefix) },
        },
      });
    }
  });

  test("every route of the sample's handlers is one of the API, or all are one", () => {
    const routes = ofType(made, "AWS::ApiGatewayV2::Route").map(([, { Properties }]) => String(Properties["RouteKey"]));
    const declared = [...server.registry.handlers.values()].flatMap(({ name, route }) =>
      name.startsWith("files.") && route !== undefined ? [route.replaceAll(/:(\w+)/g, "{$1}")] : [],
    );

    expect(declared.length).toBe(6);
    expect(routes.sort()).toEqual([...(count === 4 ? [] : declared), "$default"].sort());
  });

  test("the sizes of the bundle are printed", () => {
    expect(made.printed).toMatch(/read at start, without SDK and zod: \d+ KB/);
  });
});

test.each([
  ["statements.yml", /^(?!assumedByLambda)\w+:/],
  ["roles-one.yml", /^ +- Sid:/],
  ["roles-each.yml", /^ +- Sid:/],
  ["roles-messages.yml", /^ +- Sid:/],
])("beside each statement of %s stands what needs it", (file, begins) => {
  const lines = readFileSync(join(root, "infra", file), "utf8").split("\n");
  const statements = lines.flatMap((line, index) => (begins.test(line) ? [[line, lines[index - 1]?.trim()]] : []));

  expect(statements.length).toBeGreaterThan(2);
  for (const statement of statements) expect(statement).toEqual([statement[0], expect.stringMatching(/^# ./)]);
});

test("the limits are parameters", async () => {
  const params = "throttleRate=7 throttleBurst=9 accessLog=false httpConcurrency=20 queueConcurrency=2";
  const made = await packaged(...params.split(" ").flatMap((text) => ["--param", text]));
  const stage = made.resources["HttpApiStage"]?.Properties ?? {};

  expect(stage["DefaultRouteSettings"]).toMatchObject({ ThrottlingRateLimit: "7", ThrottlingBurstLimit: "9" });
  expect(stage["AccessLogSettings"]).toBeUndefined();
  expect(made.resources["HttpLambdaFunction"]?.Properties["ReservedConcurrentExecutions"]).toBe(20);
  expect(made.resources["QueueLambdaFunction"]?.Properties["ReservedConcurrentExecutions"]).toBeUndefined();
  expect(made.resources["QueueEventSourceMappingSQSJobQueue"]?.Properties["ScalingConfig"]).toEqual({ MaximumConcurrency: 2 });
});

test("a mistake in serverless.yml fails the packaging", async () => {
  await expect(packaged("--param", "runtime=nodejs99.x")).rejects.toThrow(/runtime/);
});

function variablesOf(properties: Resource["Properties"]): Readonly<Record<string, unknown>> {
  // Safe: osls has written it.
  return (properties["Environment"] as { readonly Variables: Readonly<Record<string, unknown>> }).Variables;
}

function statementsOf({ Properties }: Resource): readonly Statement[] {
  // Safe: a policy that is written in this repository.
  const policies = Properties["Policies"] as readonly { readonly PolicyDocument: { readonly Statement: readonly Statement[] } }[];
  return policies.flatMap(({ PolicyDocument }) => PolicyDocument.Statement);
}

test("what a cold start reads needs no file of helpers, and its source maps lead to the source", () => {
  const dist = join(root, "infra/dist");
  const read = readdirSync(dist).filter((name) => /^(lambda|first-.*)\.mjs$/.test(name));
  expect(read).toHaveLength(2);
  const texts = ["this is not a server", "handler.abandoned"];
  const found = read.flatMap((name) => {
    const lines = readFileSync(join(dist, name), "utf8").split("\n");
    expect(lines.some((line) => /^import\{[^}]*\}from"\.\/rolldown-runtime/.test(line))).toBe(false);
    // Safe: Rolldown has written it.
    const map = new SourceMap(JSON.parse(readFileSync(join(dist, `${name}.map`), "utf8")));
    return texts.flatMap((text) => {
      const line = lines.findIndex((one) => one.includes(text));
      if (line === -1) return [];
      const { originalSource, originalLine } = map.findEntry(line, String(lines[line]).indexOf(text)) as {
        readonly originalSource: string;
        readonly originalLine: number;
      };
      return readFileSync(join(dist, originalSource), "utf8").split("\n")[originalLine]?.includes(text) ? [text] : [];
    });
  });
  expect(found.sort()).toEqual(texts.sort());
});
