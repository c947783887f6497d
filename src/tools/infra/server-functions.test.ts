// biome-ignore-all lint/suspicious/noTemplateCurlyInString: CloudFormation's own placeholders
import { describe, expect, test } from "vitest";
import { z } from "zod";
import {
  account,
  arn,
  idsOf,
  properties,
  quiet,
  sheds,
  spades,
  sub,
  templateOf,
} from "../../../test/support/server-templates.ts";
import { defineFeature } from "../../app/features/feature.ts";
import { type Template, templateText } from "./template.ts";

const all = templateOf([spades, sheds]);
const each = templateOf([spades, sheds], { shape: "each" });
const functions = templateOf([spades, sheds], { part: "functions" });

describe("a function", () => {
  test("is an export of the code archive, named as osls would name it", () => {
    expect(all.Resources["HttpLambdaFunction"]).toMatchObject({
      Type: "AWS::Lambda::Function",
      DependsOn: "HttpLogGroup",
      Properties: {
        FunctionName: sub("${NamePrefix}-http"),
        Code: { S3Bucket: { Ref: "CodeBucket" }, S3Key: { Ref: "CodeKey" } },
        Handler: sub("${CodeEntry}.http"),
        Role: arn("HttpRole"),
        Timeout: 20,
      },
    });
    expect(
      idsOf(all, "AWS::Lambda::Function").map((id) => [id, properties(all, id)["Timeout"]]),
    ).toEqual([
      ["HttpLambdaFunction", 20],
      ["QueueLambdaFunction", 30],
      ["StreamLambdaFunction", 30],
      ["SweepLambdaFunction", 60],
      ["ScheduleLambdaFunction", 300],
    ]);
    expect(properties(each, "SpadesSpadeDigLambdaFunction")["Handler"]).toEqual(
      sub("${CodeEntry}.spadesSpadeDig"),
    );
    expect(properties(all, "SweepLogGroup")).toEqual({
      LogGroupName: sub("/aws/lambda/${NamePrefix}-sweep"),
      RetentionInDays: { Ref: "LogRetentionDays" },
    });
  });

  test("has variables that locate its data", () => {
    const told = (template: Template, id: string) =>
      (properties(template, id)["Environment"] as { readonly Variables: object }).Variables; // safe: each has one
    expect(told(all, "QueueLambdaFunction")).toEqual({
      NODE_ENV: "production",
      KEELSON_TABLE_CONFIG: { Ref: "ConfigTable" },
      KEELSON_TABLE_ONCE: { Ref: "OnceTable" },
      KEELSON_TABLE_OUTBOX: { Ref: "OutboxTable" },
      KEELSON_TABLE_SPADES: { Ref: "SpadesTable" },
      KEELSON_TABLE_SHEDS: { Ref: "ShedsTable" },
      KEELSON_EVENT_BUS: { Ref: "EventBus" },
      KEELSON_EVENT_QUEUE: { Ref: "EventQueue" },
      KEELSON_JOB_QUEUE: { Ref: "JobQueue" },
    });
    expect(told(functions, "QueueLambdaFunction")).toMatchObject({
      KEELSON_TABLE_SPADES: sub("${NamePrefix}-spades"),
      KEELSON_EVENT_BUS: sub("${NamePrefix}"),
      KEELSON_JOB_QUEUE: sub(
        "https://sqs.${AWS::Region}.${AWS::URLSuffix}/${AWS::AccountId}/${NamePrefix}-jobs.fifo",
      ),
    });
    expect(told(templateOf([quiet], {}, {}), "HttpLambdaFunction")).toEqual({
      NODE_ENV: "production",
      KEELSON_TABLE_CONFIG: { Ref: "ConfigTable" },
      KEELSON_TABLE_ONCE: { Ref: "OnceTable" },
      KEELSON_AUTH_SECRET: expect.anything(),
    });
  });

  test("has the token secret and reserved concurrency if it answers requests", () => {
    for (const template of [all, each]) {
      for (const id of idsOf(template, "AWS::Lambda::Function")) {
        const answers = /^(Http|Spades)/.test(id);
        const { Environment, ReservedConcurrentExecutions: reserved } = properties(template, id);
        expect(JSON.stringify(Environment).includes("KEELSON_AUTH_SECRET"), id).toBe(answers);
        expect(reserved !== undefined, id).toBe(answers);
      }
    }
    expect(all.Resources["AuthSecret"]).toMatchObject({
      Type: "AWS::SecretsManager::Secret",
      Condition: "MakesAuthSecret",
    });
    const jwks = templateOf(
      [quiet],
      {},
      { auth: { jwks: "https://id.example.com/keys", audience: "garden" } },
    );
    expect(templateText(jwks)).not.toContain("AuthSecret");
  });

  test("may send messages to the queues that call it without end, only if queues call it", () => {
    for (const template of [all, each, functions]) {
      const loops = idsOf(template, "AWS::Lambda::Function").flatMap((id) => {
        const { RecursiveLoop } = properties(template, id);
        return RecursiveLoop === undefined ? [] : [[id, RecursiveLoop]];
      });
      expect(loops).toEqual([["QueueLambdaFunction", "Allow"]]);
    }
  });

  test("is called by its queue, stream or schedule", () => {
    expect(properties(all, "QueueEventSourceMappingSQSJobQueue")).toMatchObject({
      EventSourceArn: arn("JobQueue"),
      FunctionResponseTypes: ["ReportBatchItemFailures"],
      ScalingConfig: { MaximumConcurrency: { Ref: "QueueConcurrency" } },
    });
    expect(properties(all, "StreamEventSourceMappingDynamodbOutboxTable")).toMatchObject({
      EventSourceArn: { "Fn::GetAtt": ["OutboxTable", "StreamArn"] },
      MaximumBatchingWindowInSeconds: 5,
      BisectBatchOnFunctionError: true,
      FunctionResponseTypes: ["ReportBatchItemFailures"],
      FilterCriteria: { Filters: [{ Pattern: '{"eventName":["INSERT"]}' }] },
    });
    for (const name of ["Sweep", "Schedule"]) {
      expect(properties(all, `${name}EventsRuleSchedule1`)).toMatchObject({
        ScheduleExpression: "rate(1 minute)",
        Targets: [{ Arn: arn(`${name}LambdaFunction`) }],
      });
      expect(properties(all, `${name}LambdaPermissionEventsRuleSchedule1`)).toMatchObject({
        Principal: "events.amazonaws.com",
        SourceArn: arn(`${name}EventsRuleSchedule1`),
      });
    }
  });
});

describe("the API", () => {
  const routes = (template: Template) =>
    idsOf(template, "AWS::ApiGatewayV2::Route").map((id) => [
      id,
      properties(template, id)["RouteKey"],
    ]);

  test("has one route for all requests, or one for each handler and a default, named as osls would", () => {
    expect(routes(all)).toEqual([["HttpApiRouteDefault", "$default"]]);
    expect(routes(each)).toEqual([
      ["HttpApiRouteGetSpades", "GET /spades"],
      ["HttpApiRouteHeadSpades", "HEAD /spades"],
      ["HttpApiRoutePostSpadesIdVarDig", "POST /spades/{id}/dig"],
      ["HttpApiRouteDefault", "$default"],
    ]);
    expect(properties(each, "HttpApiRouteHeadSpades")["Target"]).toEqual(
      sub("integrations/${HttpApiIntegrationSpadesSpadeList}"),
    );
  });

  test("is throttled, uses payload format 2.0, and leaves tokens to the server", () => {
    expect(properties(all, "HttpApiStage")).toMatchObject({
      StageName: "$default",
      DefaultRouteSettings: {
        ThrottlingRateLimit: { Ref: "ThrottleRate" },
        ThrottlingBurstLimit: { Ref: "ThrottleBurst" },
      },
    });
    expect(properties(all, "HttpApiIntegrationHttp")).toMatchObject({
      IntegrationType: "AWS_PROXY",
      IntegrationUri: arn("HttpLambdaFunction"),
      PayloadFormatVersion: "2.0",
    });
    expect(properties(all, "HttpLambdaPermissionHttpApi")["SourceArn"]).toEqual(
      sub(`arn:\${AWS::Partition}:execute-api:${account}:\${HttpApi}/*`),
    );
    expect(templateText(each)).not.toContain("Authoriz");
  });

  test("logs a line for each request, without headers, query string or body", () => {
    const { AccessLogSettings: settings } = properties(all, "HttpApiStage");
    const [condition, { Format }] = (
      settings as { readonly "Fn::If": [string, { readonly Format: string }] }
    )["Fn::If"]; // safe: it is written so
    expect(condition).toBe("HasAccessLog");
    // Any other name uses up room in the account's resource policy of CloudWatch Logs.
    expect(properties(all, "HttpApiLogGroup")["LogGroupName"]).toEqual(
      sub("/aws/vendedlogs/http-api/${NamePrefix}"),
    );
    const line = JSON.parse(Format);
    expect(Object.keys(line).slice(0, 2)).toEqual(["userAgent", "path"]);
    expect(line).toMatchObject({
      status: "$context.status",
      integrationRequestId: "$context.integration.requestId",
    });
    expect(Format).not.toMatch(/header|query|body|authoriz/i);
  });

  test("has a URL with the server's base path", () => {
    const { Outputs } = templateOf([quiet], {}, { basePath: "/api" });
    expect(Outputs["HttpApiUrl"]?.Value).toEqual(
      sub("https://${HttpApi}.execute-api.${AWS::Region}.${AWS::URLSuffix}/api"),
    );
  });
});

describe("alarms", () => {
  test("cover the server's resources, and notify one topic", () => {
    expect(idsOf(all, "AWS::CloudWatch::Alarm")).toEqual([
      ...["DeadEventsAlarm", "DeadJobsAlarm", "HttpErrorsAlarm"],
      ...["QueueErrorsAlarm", "StreamErrorsAlarm", "SweepErrorsAlarm", "ScheduleErrorsAlarm"],
      ...["ThrottlesAlarm", "StreamAgeAlarm", "OutboxLeftAlarm", "EventsSetAsideAlarm"],
      ...["JobsSetAsideAlarm", "SchedulesGivenUpAlarm", "StepsUnknownAlarm"],
    ]);
    expect(idsOf(templateOf([quiet]), "AWS::CloudWatch::Alarm")).toEqual([
      "HttpErrorsAlarm",
      "ThrottlesAlarm",
    ]);
    for (const id of idsOf(all, "AWS::CloudWatch::Alarm")) {
      expect(properties(all, id), id).toMatchObject({
        AlarmActions: [{ Ref: "AlarmTopic" }],
        AlarmDescription: expect.any(String),
        ComparisonOperator: "GreaterThanThreshold",
        TreatMissingData: "notBreaching",
      });
    }
    expect(properties(all, "AlarmTopic")["TopicName"]).toEqual(sub("${NamePrefix}-alarms"));
  });

  test("fire on the first dead letter, and on persistent failures", () => {
    expect(properties(all, "DeadJobsAlarm")).toMatchObject({
      AlarmName: sub("${NamePrefix}-dead-jobs"),
      Dimensions: [{ Name: "QueueName", Value: { "Fn::GetAtt": ["JobDeadQueue", "QueueName"] } }],
      EvaluationPeriods: 1,
      Threshold: 0,
    });
    expect(properties(functions, "DeadEventsAlarm")["Dimensions"]).toEqual([
      { Name: "QueueName", Value: sub("${NamePrefix}-events-dead") },
    ]);
    expect(properties(all, "QueueErrorsAlarm")).toMatchObject({
      EvaluationPeriods: 5,
      DatapointsToAlarm: 3,
    });
    expect(properties(all, "StreamAgeAlarm")).toMatchObject({
      MetricName: "IteratorAge",
      Threshold: 60_000,
    });
    expect(properties(all, "ThrottlesAlarm")).not.toHaveProperty("Dimensions");
  });

  test("ignore log lines sent by a browser", () => {
    const everything = defineFeature("everything", (r) => {
      r.job("job.work", { input: z.object({}), handler: async () => 1 });
    });
    for (const template of [all, each, templateOf([spades, sheds, everything])]) {
      const filters = idsOf(template, "AWS::Logs::MetricFilter");
      expect(filters.length).toBeGreaterThan(0);
      for (const id of filters) {
        const pattern = String(properties(template, id)["FilterPattern"]);
        expect(pattern).toMatch(/ && \(\$\.source NOT EXISTS \|\| \$\.source != "client"\) \}$/);
      }
    }
  });

  test("count log lines in the functions that may log them", () => {
    expect(idsOf(all, "AWS::Logs::MetricFilter")).toEqual([
      "OutboxLeftMetric",
      "EventsSetAsideInStreamMetric",
      "EventsSetAsideInSweepMetric",
      "JobsSetAsideInSweepMetric",
      "SchedulesGivenUpInScheduleMetric",
      "StepsUnknownInHttpMetric",
      "StepsUnknownInQueueMetric",
      "StepsUnknownInScheduleMetric",
    ]);
    const jobs = defineFeature("jobs", (r) => {
      r.job("job.work", { input: z.object({}), handler: async () => 1 });
    });
    expect(idsOf(templateOf([jobs]), "AWS::Logs::MetricFilter")).toContain(
      "JobsSetAsideInSweepMetric",
    );
    expect(properties(all, "StepsUnknownInQueueMetric")).toEqual({
      LogGroupName: { Ref: "QueueLogGroup" },
      FilterPattern: '{ $.msg = "step.unknown" && ($.source NOT EXISTS || $.source != "client") }',
      MetricTransformations: [
        { MetricNamespace: sub("${NamePrefix}"), MetricName: "steps-unknown", MetricValue: "1" },
      ],
    });
    expect(properties(all, "OutboxLeftMetric")).toEqual({
      LogGroupName: { Ref: "SweepLogGroup" },
      FilterPattern:
        '{ $.msg = "outbox.swept" && $.left > 0 && ($.source NOT EXISTS || $.source != "client") }',
      MetricTransformations: [
        { MetricNamespace: sub("${NamePrefix}"), MetricName: "outbox-left", MetricValue: "$.left" },
      ],
    });
  });
});

test("outputs name the API, functions, roles and topic", () => {
  expect(Object.keys(functions.Outputs)).toEqual([
    ...["Http", "Queue", "Stream", "Sweep", "Schedule"].flatMap((name) => [
      `${name}FunctionName`,
      `${name}RoleName`,
    ]),
    ...["HttpApiId", "HttpApiUrl", "AlarmTopicArn"],
  ]);
  expect(functions.Outputs["HttpRoleName"]?.Value).toEqual({ Ref: "HttpRole" });
});

test("limits the name prefix so that each function's name fits", () => {
  const prefix = (template: Template) => template.Parameters["NamePrefix"]?.["MaxLength"];
  expect([
    prefix(templateOf([spades, sheds], { part: "data" })),
    prefix(all),
    prefix(each),
  ]).toEqual([65, 55, 48]);
  expect(() => templateOf([spades, sheds], {}, { dynamodb: { prefix: "p".repeat(52) } })).toThrow(
    "longer than 55 characters",
  );
});
