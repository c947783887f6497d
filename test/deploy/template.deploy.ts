import { readdirSync, readFileSync } from "node:fs";
import { SourceMap } from "node:module";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import * as functions from "../../examples/files/lambda.ts";
import { server } from "../../examples/files/server.ts";
import { ofType, type Package, packaged, type Resource, root } from "./package.ts";

interface Statement {
  readonly Sid?: string;
  readonly Action: string | readonly string[];
  readonly Resource: unknown;
}

describe.each([
  ["one function for all routes", [], 5],
  ["one function for each handler, in production", ["--stage", "prod", "--shape", "each"], 12],
])("packaged as %s", (_name, args, count) => {
  let made: Package;
  beforeAll(async () => {
    made = await packaged(...args);
  });

  test("each function is exported by the module, and its log group expires", () => {
    const lambdas = ofType(made, "AWS::Lambda::Function");
    expect(lambdas.length).toBe(count);
    for (const [name, { Properties }] of lambdas) {
      const { "Fn::Sub": handler } = Properties["Handler"] as { readonly "Fn::Sub"?: string }; // safe: or the test fails
      expect(Object.keys(functions).map((one) => `\${CodeEntry}.${one}`)).toContain(handler);
      const group = made.resources[name.replace("LambdaFunction", "LogGroup")];
      expect([name, group?.Properties["RetentionInDays"]]).toEqual([
        name,
        { Ref: "LogRetentionDays" },
      ]);
    }
    expect(made.printed).toContain("fits the server and infra/dist/lambda.mjs");
  });

  test("each function gets the names of all tables, the bus and the queues", () => {
    const names = ["config", "once", "outbox", ...server.registry.tables.keys()].map(
      (name) => `KEELSON_TABLE_${name.toUpperCase()}`,
    );
    for (const [, { Properties }] of ofType(made, "AWS::Lambda::Function")) {
      expect(Properties["Environment"]).toEqual({
        Variables: expect.objectContaining({
          ...Object.fromEntries(
            names.map((name) => [name, { Ref: expect.stringMatching(/Table$/) }]),
          ),
          KEELSON_EVENT_BUS: { Ref: "EventBus" },
          KEELSON_EVENT_QUEUE: { Ref: "EventQueue" },
          KEELSON_JOB_QUEUE: { Ref: "JobQueue" },
          FILES_BUCKET: { Ref: "FilesBucket" },
          FILES_PARAMETERS: { Ref: "ParametersPath" },
        }),
      });
    }
  });

  test("only functions that answer requests get the token secret", () => {
    for (const [name, { Properties }] of ofType(made, "AWS::Lambda::Function")) {
      const answers = !/^(Queue|Schedule|Stream|Sweep)LambdaFunction$/.test(name);
      const secret = JSON.stringify(variablesOf(Properties)["KEELSON_AUTH_SECRET"]);
      expect([name, secret?.includes("{{resolve:secretsmanager:")]).toEqual([
        name,
        answers ? true : undefined,
      ]);
    }
  });

  test("the API is throttled, and logs each request without secret headers", () => {
    const { DefaultRouteSettings, AccessLogSettings } =
      made.resources["HttpApiStage"]?.Properties ?? {};
    const throttling = {
      ThrottlingRateLimit: { Ref: "ThrottleRate" },
      ThrottlingBurstLimit: { Ref: "ThrottleBurst" },
    };
    expect(DefaultRouteSettings).toEqual({ DetailedMetricsEnabled: false, ...throttling });
    const lines = {
      DestinationArn: { "Fn::GetAtt": ["HttpApiLogGroup", "Arn"] },
      Format: expect.not.stringMatching(/header|querystring|authorizer|body|claims/i),
    };
    expect(AccessLogSettings).toEqual({
      "Fn::If": ["HasAccessLog", lines, { Ref: "AWS::NoValue" }],
    });
    // Safe: it was just looked at.
    const { Format } = (
      AccessLogSettings as { readonly "Fn::If": [string, { readonly Format: string }] }
    )["Fn::If"][1];
    const members = Object.keys(JSON.parse(Format));
    expect(members).toEqual(
      expect.arrayContaining([
        "requestId",
        "routeKey",
        "status",
        "latencyMs",
        "sourceIp",
        "integrationError",
      ]),
    );
    // A client that closes a quote cannot write a member that counts after these.
    expect(members.slice(0, 2)).toEqual(["userAgent", "path"]);
  });

  test("queues cannot exhaust the account's concurrency, and no concurrency is reserved by default", () => {
    expect(made.parameters["HttpConcurrency"]?.Default).toBe(0);
    const mappings = ofType(made, "AWS::Lambda::EventSourceMapping").filter(([name]) =>
      name.startsWith("Queue"),
    );
    expect(mappings.map(([, { Properties }]) => Properties["ScalingConfig"])).toEqual(
      [1, 2].map(() => ({ MaximumConcurrency: { Ref: "QueueConcurrency" } })),
    );
  });

  test("queues and buckets refuse requests without TLS", () => {
    const policies = [
      ...ofType(made, "AWS::SQS::QueuePolicy"),
      ...ofType(made, "AWS::S3::BucketPolicy"),
    ];
    const queues = ofType(made, "AWS::SQS::Queue").map(([name]) => name);
    expect(policies.flatMap(([, { Properties }]) => Properties["Queues"] ?? [])).toEqual(
      expect.arrayContaining(queues.map((name) => ({ Ref: name }))),
    );
    expect(policies.length).toBe(queues.length + ofType(made, "AWS::S3::Bucket").length);
    for (const [name, { Properties }] of policies) {
      const { Statement } = Properties["PolicyDocument"] as {
        readonly Statement: readonly object[];
      }; // safe: of this repository
      const denied = Statement.filter(
        (statement) => "Effect" in statement && statement.Effect === "Deny",
      );
      const condition = {
        Bool: { "aws:SecureTransport": expect.toSatisfy((value) => String(value) === "false") },
      };
      expect([name, denied]).toEqual([
        name,
        [expect.objectContaining({ Principal: "*", Condition: condition })],
      ]);
    }
  });

  test("no role allows all actions or all resources, and only Lambda can assume one", () => {
    const roles = ofType(made, "AWS::IAM::Role");
    expect(roles.length).toBeGreaterThan(3);
    for (const [name, role] of roles) {
      for (const { Sid, Action, Resource } of statementsOf(role)) {
        expect([name, Sid, [Action].flat().filter((action) => action.includes("*"))]).toEqual([
          name,
          expect.any(String),
          [],
        ]);
        // Its resource is a single one, or everything below a path.
        expect([name, Sid, JSON.stringify(Resource)]).toEqual([
          name,
          Sid,
          expect.not.stringMatching(/"\*"|:\*"|:table\/\*/),
        ]);
      }
      expect(role.Properties["AssumeRolePolicyDocument"]).toMatchObject({
        Statement: [{ Principal: { Service: "lambda.amazonaws.com" } }],
      });
    }
  });

  test("every event source mapping reports batch item failures", () => {
    const mappings = ofType(made, "AWS::Lambda::EventSourceMapping");
    expect(mappings.length).toBe(3);
    for (const [, { Properties }] of mappings)
      expect(Properties["FunctionResponseTypes"]).toEqual(["ReportBatchItemFailures"]);
  });

  test("the visibility timeout is at least six times the function's timeout", () => {
    const timeoutSeconds = Number(made.resources["QueueLambdaFunction"]?.Properties["Timeout"]);
    for (const name of ["EventQueue", "JobQueue"]) {
      expect(made.resources[name]?.Properties["VisibilityTimeout"]).toBeGreaterThanOrEqual(
        6 * timeoutSeconds,
      );
    }
  });

  test("the stream of the outbox contains no payloads", () => {
    expect(made.resources["OutboxTable"]?.Properties["StreamSpecification"]).toEqual({
      StreamViewType: "KEYS_ONLY",
    });
  });

  test("the archive contains the bundle without source maps, and no local files", () => {
    expect(made.archive).toContain("lambda.mjs");
    expect(made.archive).not.toMatch(/\.map|\.env|\.keelson|development-secret|node_modules/);
  });

  test("data resources are retained when the stack is deleted, and a parameter protects them from deletion", () => {
    const lasting = ["ConfigTable", "OutboxTable", "FilesTable", "FilesBucket"];
    expect(lasting.map((name) => made.resources[name]?.DeletionPolicy)).toEqual(
      lasting.map(() => "Retain"),
    );
    for (const name of lasting.slice(0, 3)) {
      expect(made.resources[name]?.Properties).toMatchObject({
        DeletionProtectionEnabled: { Ref: "DeletionProtection" },
        PointInTimeRecoverySpecification: { PointInTimeRecoveryEnabled: true },
      });
    }
  });

  test("the values in infra/parameters.json are parameters of the template", () => {
    // Safe: the file of this repository.
    const stages = JSON.parse(readFileSync(join(root, "infra/parameters.json"), "utf8")) as Record<
      string,
      object
    >;
    expect(stages["prod"]).toEqual({
      DeletionProtection: "true",
      LogRetentionDays: "90",
      ThrottleRate: "500",
      ThrottleBurst: "1000",
    });
    for (const values of Object.values(stages))
      expect(Object.keys(made.parameters)).toEqual(expect.arrayContaining(Object.keys(values)));
  });

  test("every route of the sample's handlers is a route of the API, or one route serves all", () => {
    const routes = ofType(made, "AWS::ApiGatewayV2::Route").map(([, { Properties }]) =>
      String(Properties["RouteKey"]),
    );
    const asked = routes.filter((route) => !route.startsWith("HEAD ")); // of queries
    const declared = [...server.registry.handlers.values()].flatMap(({ name, route }) =>
      /^(files|billing)\./.test(name) && route !== undefined
        ? [route.replaceAll(/:(\w+)/g, "{$1}")]
        : [],
    );

    expect(declared.length).toBe(7);
    expect(asked.sort()).toEqual([...(count === 5 ? [] : declared), "$default"].sort());
  });

  test("the bundle sizes are printed", () => {
    expect(made.printed).toMatch(/read at start, without SDK and zod: \d+ KB/);
  });
});

test("the same code gives the same archive, in every stage", async () => {
  const [one, other] = [await packaged(), await packaged("--stage", "prod")];
  expect(one.archive === other.archive).toBe(true);
});

test("an invalid stage and an unknown option fail the packaging", async () => {
  await expect(packaged("--stage", "PROD")).rejects.toThrow(/--stage "PROD" is not a valid name/);
  await expect(packaged("--shapes", "each")).rejects.toThrow(/Unknown option '--shapes'/);
});

function variablesOf(properties: Resource["Properties"]): Readonly<Record<string, unknown>> {
  // Safe: `keelson infra` has written it.
  return (properties["Environment"] as { readonly Variables: Readonly<Record<string, unknown>> })
    .Variables;
}

function statementsOf({ Properties }: Resource): readonly Statement[] {
  // Safe: a policy of `keelson infra`.
  const policies = Properties["Policies"] as readonly {
    readonly PolicyDocument: { readonly Statement: readonly object[] };
  }[];
  return policies
    .flatMap(({ PolicyDocument }) => PolicyDocument.Statement)
    .map(
      (statement) =>
        ("Fn::If" in statement
          ? (statement["Fn::If"] as readonly Statement[])[1]
          : statement) as Statement,
    );
}

test("the source maps of the files that a cold start reads lead to the source", () => {
  const dist = join(root, "infra/dist");
  const read = readdirSync(dist).filter((name) => /^(lambda|first-.*)\.mjs$/.test(name));
  expect(read).toHaveLength(2);
  const texts = ["this is not a server", "handler.abandoned"];
  const found = read.flatMap((name) => {
    const lines = readFileSync(join(dist, name), "utf8").split("\n");
    // Safe: Rolldown has written it.
    const map = new SourceMap(JSON.parse(readFileSync(join(dist, `${name}.map`), "utf8")));
    return texts.flatMap((text) => {
      const line = lines.findIndex((one) => one.includes(text));
      if (line === -1) return [];
      const { originalSource, originalLine } = map.findEntry(
        line,
        String(lines[line]).indexOf(text),
      ) as {
        readonly originalSource: string;
        readonly originalLine: number;
      };
      return readFileSync(join(dist, originalSource), "utf8")
        .split("\n")
        [originalLine]?.includes(text)
        ? [text]
        : [];
    });
  });
  expect(found.sort()).toEqual(texts.sort());
});
