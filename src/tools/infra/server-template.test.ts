import { describe, expect, test, vi } from "vitest";
import { z } from "zod";
import { defineFeature } from "../../app/features/feature.ts";
import { buildServer, serverInternals } from "../../app/server/server.ts";
import { namePrefix } from "./parameters.ts";
import { serverTemplate } from "./server-template.ts";
import { templateText } from "./template.ts";

declare module "../../base/types/names.ts" {
  interface Events {
    "plate.broken": Record<string, never>;
  }
}

const plain = defineFeature("plain", () => undefined);
const plates = defineFeature("plates", (r) => {
  r.table("plates", { partitionKey: "id", tenant: false });
  r.table("plate-parts", {
    partitionKey: "pk",
    sortKey: "sk",
    indexes: {
      byOwner: { partitionKey: "owner", sortKey: "createdAt" },
      byColour: { partitionKey: "colour", sortKey: "owner", project: ["size"] },
      bySize: { partitionKey: "size", project: [] },
    },
    tenant: false,
  });
  r.event("plate.broken", z.object({}));
});
const mourners = defineFeature("mourners", (r) => {
  r.on("plate.broken", { name: "mourn", handler: async () => undefined });
});

function templateOf(
  features: Parameters<typeof buildServer>[0]["features"],
  prefix?: string,
  stage = "dev",
) {
  const server = buildServer({
    features,
    ...(prefix === undefined ? {} : { dynamodb: { prefix } }),
  });
  return serverTemplate(serverInternals(server), { stage, part: "data" });
}
const resourcesOf = (...features: Parameters<typeof buildServer>[0]["features"]) =>
  Object.keys(templateOf(features).Resources);
const tables = (...features: Parameters<typeof buildServer>[0]["features"]) =>
  Object.fromEntries(
    Object.entries(templateOf(features).Resources)
      .filter(([, { Type }]) => Type === "AWS::DynamoDB::Table")
      .map(([id, resource]) => [id, resource]),
  );

describe("the template of a server's data", () => {
  test("has only the resources that the declarations need", () => {
    expect(resourcesOf(plain)).toEqual(["ConfigTable", "OnceTable"]);
    expect(resourcesOf(plates)).toEqual([
      "ConfigTable",
      "OnceTable",
      "OutboxTable",
      "PlatesTable",
      "PlatePartsTable",
      "EventBus",
      "JobQueue",
      "JobDeadQueue",
      "JobQueuePolicy",
      "JobDeadQueuePolicy",
    ]);
    expect(resourcesOf(plates, mourners).slice(5, 11)).toEqual([
      "EventBus",
      "EventRule",
      "EventQueue",
      "EventDeadQueue",
      "EventQueuePolicy",
      "EventDeadQueuePolicy",
    ]);
    const jobs = defineFeature(
      "jobs",
      (r) => void r.job("plate.wash", { input: z.object({}), handler: async () => undefined }),
    );
    expect(resourcesOf(jobs)).toEqual([
      "ConfigTable",
      "OnceTable",
      "OutboxTable",
      "JobQueue",
      "JobDeadQueue",
      "JobQueuePolicy",
      "JobDeadQueuePolicy",
    ]);
  });

  test("is the same text for the same server, whatever the environment variables", () => {
    const text = templateText(templateOf([plates, mourners]));
    vi.stubEnv("KEELSON_TABLE_PLATES", "others");
    vi.stubEnv("KEELSON_EVENT_QUEUE", "another");
    vi.stubEnv("AWS_REGION", "eu-west-1");
    expect(templateText(templateOf([plates, mourners]))).toBe(text);
    vi.unstubAllEnvs();
    expect(text.endsWith("}\n")).toBe(true);
  });

  test("prefixes every name with one parameter, by default the server's prefix and the stage", () => {
    const { Parameters, Resources } = templateOf([plates, mourners], "my.app", "prod");
    expect(Parameters["NamePrefix"]?.Default).toBe("my-app-prod");
    const names = Object.values(Resources).flatMap(({ Properties = {} }) =>
      ["TableName", "QueueName", "Name"].flatMap((name) =>
        Properties[name] === undefined ? [] : [Properties[name]],
      ),
    );
    expect(names).toEqual([
      ...["config", "once", "outbox", "plates", "plate-parts"].map((name) => ({
        "Fn::Sub": `\${NamePrefix}-${name}`,
      })),
      { "Fn::Sub": namePrefix },
      "my-app-events", // a rule of a bus of its own
      ...["events", "events-dead", "jobs.fifo", "jobs-dead.fifo"].map((name) => ({
        "Fn::Sub": `\${NamePrefix}-${name}`,
      })),
    ]);
  });

  test("uses the server's own prefix as the source of events, without the stage", () => {
    const { Resources } = templateOf([plates, mourners], "my.app", "prod");
    expect(Resources["EventRule"]?.Properties?.["EventPattern"]).toEqual({ source: ["my.app"] });
  });

  test("refuses names that are too long for a queue", () => {
    expect(templateOf([plates], "p".repeat(61)).Parameters["NamePrefix"]?.Default).toHaveLength(65);
    expect(() => templateOf([plates], "p".repeat(62))).toThrow(
      /^names would start with "p+-dev", which is longer than 65/,
    );
  });

  test("refuses two tables with the same logical ID", () => {
    const twins = defineFeature("twins", (r) => {
      r.table("a-1", { partitionKey: "pk", tenant: false });
      r.table("a1", { partitionKey: "pk", tenant: false });
    });
    expect(() => templateOf([twins])).toThrow(
      "two names come to the logical ID A1Table; rename one of the two",
    );
  });
});

describe("a table of the template", () => {
  test("is recoverable, protected and retained, unless it holds only short-lived claims", () => {
    const kept = {
      DeletionPolicy: "Retain",
      UpdateReplacePolicy: "Retain",
      Properties: {
        BillingMode: "PAY_PER_REQUEST",
        DeletionProtectionEnabled: { Ref: "DeletionProtection" },
        PointInTimeRecoverySpecification: { PointInTimeRecoveryEnabled: true },
      },
    };
    const { OnceTable: once, ...others } = tables(plates);
    expect(Object.keys(others)).toEqual([
      "ConfigTable",
      "OutboxTable",
      "PlatesTable",
      "PlatePartsTable",
    ]);
    for (const table of Object.values(others)) expect(table).toMatchObject(kept);
    expect(once).not.toHaveProperty("DeletionPolicy");
    expect(once?.Properties).not.toHaveProperty("DeletionProtectionEnabled");
    expect(once?.Properties?.["TimeToLiveSpecification"]).toEqual({
      AttributeName: "expiration",
      Enabled: true,
    });
  });

  test("has its keys and indexes, and defines each attribute once", () => {
    const { PlatesTable, PlatePartsTable } = tables(plates);
    expect(PlatesTable?.Properties).toMatchObject({
      AttributeDefinitions: [{ AttributeName: "id", AttributeType: "S" }],
      KeySchema: [{ AttributeName: "id", KeyType: "HASH" }],
    });
    expect(PlatesTable?.Properties).not.toHaveProperty("GlobalSecondaryIndexes");
    const keys = (...names: string[]) =>
      names.map((AttributeName, index) => ({
        AttributeName,
        KeyType: index === 0 ? "HASH" : "RANGE",
      }));
    expect(PlatePartsTable?.Properties).toMatchObject({
      AttributeDefinitions: ["pk", "sk", "owner", "createdAt", "colour", "size"].map(
        (AttributeName) => ({
          AttributeName,
          AttributeType: "S",
        }),
      ),
      KeySchema: keys("pk", "sk"),
      GlobalSecondaryIndexes: [
        {
          IndexName: "byOwner",
          KeySchema: keys("owner", "createdAt"),
          Projection: { ProjectionType: "ALL" },
        },
        {
          IndexName: "byColour",
          KeySchema: keys("colour", "owner"),
          Projection: { ProjectionType: "INCLUDE", NonKeyAttributes: ["size"] },
        },
        {
          IndexName: "bySize",
          KeySchema: keys("size"),
          Projection: { ProjectionType: "KEYS_ONLY" },
        },
      ],
    });
  });

  test("has a stream of keys only if it is the outbox", () => {
    const streams = Object.entries(tables(plates)).map(([id, { Properties }]) => [
      id,
      Properties?.["StreamSpecification"],
    ]);
    expect(streams.filter(([, stream]) => stream !== undefined)).toEqual([
      ["OutboxTable", { StreamViewType: "KEYS_ONLY" }],
    ]);
  });

  test("is encrypted with the customer's key if there is one", () => {
    for (const { Properties } of Object.values(tables(plates))) {
      expect(Properties?.["SSESpecification"]).toEqual({
        "Fn::If": [
          "HasCustomerKey",
          { SSEEnabled: true, SSEType: "KMS", KMSMasterKeyId: { Ref: "CustomerKeyArn" } },
          { Ref: "AWS::NoValue" },
        ],
      });
    }
  });
});

describe("a queue of the template", () => {
  const { Resources } = templateOf([plates, mourners]);

  test("has a visibility timeout of six function timeouts, and five attempts before the dead-letter queue", () => {
    for (const [id, dead] of [
      ["EventQueue", "EventDeadQueue"],
      ["JobQueue", "JobDeadQueue"],
    ] as const) {
      expect(Resources[id]?.Properties).toMatchObject({
        VisibilityTimeout: 180,
        MessageRetentionPeriod: 604_800,
        RedrivePolicy: { deadLetterTargetArn: { "Fn::GetAtt": [dead, "Arn"] }, maxReceiveCount: 5 },
      });
      expect(Resources[dead]?.Properties).toMatchObject({ MessageRetentionPeriod: 1_209_600 });
      expect(Resources[dead]?.Properties).not.toHaveProperty("RedrivePolicy");
    }
  });

  test("is encrypted, with the customer's key if there is one", () => {
    const queues = Object.values(Resources).filter(({ Type }) => Type === "AWS::SQS::Queue");
    expect(queues).toHaveLength(4);
    for (const { Properties } of queues) {
      expect(Properties).toMatchObject({
        KmsMasterKeyId: {
          "Fn::If": ["HasCustomerKey", { Ref: "CustomerKeyArn" }, { Ref: "AWS::NoValue" }],
        },
        SqsManagedSseEnabled: { "Fn::If": ["HasCustomerKey", false, true] },
      });
    }
  });

  test("accepts only TLS, and from AWS services only the rule's events", () => {
    const statements = (id: string): readonly { readonly Effect: string }[] => {
      const { PolicyDocument: document } = Resources[`${id}Policy`]?.Properties ?? {};
      return (document as { readonly Statement: readonly { readonly Effect: string }[] }).Statement; // safe: every policy has one
    };
    for (const id of ["EventQueue", "EventDeadQueue"]) {
      expect(statements(id)).toEqual([
        {
          Effect: "Allow",
          Principal: { Service: "events.amazonaws.com" },
          Action: "sqs:SendMessage",
          Resource: { "Fn::GetAtt": [id, "Arn"] },
          Condition: { ArnEquals: { "aws:SourceArn": { "Fn::GetAtt": ["EventRule", "Arn"] } } },
        },
        expect.objectContaining({
          Effect: "Deny",
          Condition: { Bool: { "aws:SecureTransport": "false" } },
        }),
      ]);
    }
    for (const id of ["JobQueue", "JobDeadQueue"])
      expect(statements(id).map(({ Effect }) => Effect)).toEqual(["Deny"]);
  });
});

test("each output names the variable that takes its value", () => {
  const { Outputs } = templateOf([plates, mourners]);
  expect(
    Object.entries(Outputs).map(([name, { Description }]) => `${name}: ${Description}`),
  ).toEqual([
    "ConfigTableName: KEELSON_TABLE_CONFIG",
    "OnceTableName: KEELSON_TABLE_ONCE",
    "OutboxTableName: KEELSON_TABLE_OUTBOX",
    "OutboxTableStreamArn: The stream of KEELSON_TABLE_OUTBOX",
    "PlatesTableName: KEELSON_TABLE_PLATES",
    "PlatePartsTableName: KEELSON_TABLE_PLATE_PARTS",
    "EventBusName: KEELSON_EVENT_BUS",
    "EventBusArn: The ARN of KEELSON_EVENT_BUS",
    "EventQueueUrl: KEELSON_EVENT_QUEUE",
    "EventQueueArn: The ARN of KEELSON_EVENT_QUEUE",
    "JobQueueUrl: KEELSON_JOB_QUEUE",
    "JobQueueArn: The ARN of KEELSON_JOB_QUEUE",
  ]);
});
