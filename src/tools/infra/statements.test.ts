// biome-ignore-all lint/suspicious/noTemplateCurlyInString: CloudFormation's own placeholders
import { describe, expect, test } from "vitest";
import { z } from "zod";
import {
  account,
  arn,
  quiet,
  sheds,
  sids,
  spades,
  statement,
  statementsOf,
  sub,
  templateOf,
} from "../../../test/support/server-templates.ts";
import { defineFeature } from "../../app/features/feature.ts";
import { access } from "../../base/identity/access.ts";
import { createTenantConfig } from "../../parts/config/declare/declaration.ts";

const all = templateOf([spades, sheds]);
const each = templateOf([spades, sheds], { shape: "each" });
const functions = templateOf([spades, sheds], { part: "functions" });

describe("a role", () => {
  test("has one named statement for each thing that its function does", () => {
    const every = ["ReadParameters", "ReadKeyRing"];
    const effects = ["Claim", "Step", "Publish", "PutEvents", "Enqueue"];
    const tables = ["CheckTables", "WriteTables", "QueryIndexes"];
    const last = ["Log", "UseCustomerKey"];
    const http = [
      ...every,
      "ReadConfig",
      "OperateConfig",
      "Claim",
      "Step",
      "Publish",
      "PutEvents",
      "Enqueue",
    ];
    expect(sids(all, "HttpRole")).toEqual([...http, ...tables, ...last]);
    expect(sids(all, "QueueRole")).toEqual([
      ...[...every, "ReadConfig", ...effects, "Consume", "DeadLetter", "SendAgain"],
      ...[...tables, ...last],
    ]);
    expect(sids(all, "StreamRole")).toEqual([
      ...every,
      "Claim",
      "SweepOutbox",
      "PutEvents",
      "ReadStream",
      ...last,
    ]);
    expect(sids(all, "SweepRole")).toEqual([
      ...every,
      "Claim",
      "SweepOutbox",
      "PutEvents",
      "MarkDue",
      "Enqueue",
      ...last,
    ]);
    expect(sids(all, "ScheduleRole")).toEqual([
      ...every,
      "ReadConfig",
      ...effects,
      ...tables,
      ...last,
    ]);
    expect(sids(each, "SpadesSpadeListRole")).toEqual([
      ...every,
      "ReadConfig",
      "ReadTables",
      "QueryIndexes",
      ...last,
    ]);
    expect(sids(each, "HttpRole")).toEqual([
      ...every,
      "ReadConfig",
      "OperateConfig",
      "Claim",
      ...last,
    ]);
    expect(sids(templateOf([quiet], {}, {}), "HttpRole")).toEqual(last);
  });

  test("with API keys may identify callers by them, and only the function of their routes changes them", () => {
    const options = { auth: { apiKeys: true } };
    const one = templateOf([quiet], {}, options);
    expect(sids(one, "HttpRole")).toEqual([
      ...["IdentifyApiKeys", "ManageApiKeys", "Claim"],
      ...["Log", "UseCustomerKey"],
    ]);
    const asking = templateOf([quiet], { shape: "each" }, options);
    expect(sids(asking, "QuietQuietAskRole")).toEqual(["IdentifyApiKeys", "Log", "UseCustomerKey"]);
    expect(statement(asking, "QuietQuietAskRole", "IdentifyApiKeys")).toMatchObject({
      Action: ["dynamodb:GetItem", "dynamodb:UpdateItem"],
      Resource: [arn("OnceTable")],
      Condition: {
        "ForAllValues:StringLike": { "dynamodb:LeadingKeys": ["api-key#*", "api-keys#*"] },
        Null: { "dynamodb:LeadingKeys": "false" },
      },
    });
    const acting = templateOf([spades, sheds], { shape: "each" }, options);
    expect(sids(acting, "SpadesSpadeDigRole")).toContain("IdentifyApiKeys");
    expect(sids(acting, "QueueRole")).not.toContain("IdentifyApiKeys");
  });

  test("with a registry of tenants may read it, and nothing else of its table", () => {
    const options = { tenants: true };
    const asking = templateOf([quiet], { shape: "each" }, options);
    expect(sids(asking, "HttpRole")).toEqual(["ReadTenants", "Log", "UseCustomerKey"]);
    expect(sids(asking, "QuietQuietAskRole")).toEqual(["ReadTenants", "Log", "UseCustomerKey"]);
    expect(statement(asking, "QuietQuietAskRole", "ReadTenants")).toMatchObject({
      Action: ["dynamodb:GetItem", "dynamodb:Query"],
      Resource: [arn("OnceTable")],
      Condition: {
        "ForAllValues:StringLike": { "dynamodb:LeadingKeys": ["tenant-registry*"] },
        Null: { "dynamodb:LeadingKeys": "false" },
      },
    });
    const acting = templateOf([spades, sheds], {}, options);
    for (const role of ["HttpRole", "QueueRole", "ScheduleRole"])
      expect(sids(acting, role)).toContain("ReadTenants");
  });

  test("may take from rate limits in functions whose handlers have them", () => {
    const route = { access: access.everyone, handler: async () => ({}) };
    const limiting = defineFeature("limiting", (r) => {
      r.query("fence.list", {
        ...{ route: "GET /fences", ...route },
        rateLimit: { per: "tenant", requests: 1, window: "day" },
      });
      r.query("fence.show", { route: "GET /fences/:id", ...route });
    });
    const taking = defineFeature("taking", (r) => {
      r.rateLimit("sms", { per: "tenant", requests: 1, window: "day" });
      r.query("text.list", { route: "GET /texts", ...route });
    });
    const apart = templateOf([limiting], { shape: "each" });
    expect(statement(apart, "LimitingFenceListRole", "TakeRates")).toMatchObject({
      Action: ["dynamodb:UpdateItem"],
      Resource: [arn("OnceTable")],
    });
    expect(statement(apart, "LimitingFenceListRole", "TakeRates")).toMatchObject({
      Condition: { "ForAllValues:StringLike": { "dynamodb:LeadingKeys": ["rate:*"] } },
    });
    for (const role of ["LimitingFenceShowRole", "HttpRole"])
      expect(sids(apart, role)).not.toContain("TakeRates");
    expect(sids(templateOf([limiting]), "HttpRole")).toContain("TakeRates");
    expect(sids(templateOf([taking]), "HttpRole")).toContain("TakeRates");
  });

  test("may read usage of quotas, and no other row of the table", () => {
    const counting = defineFeature("counting", (r) => {
      r.quota("plants", { limit: 9, window: "forever" });
      r.query("plant.list", {
        route: "GET /plants",
        access: access.everyone,
        handler: async () => ({}),
      });
    });
    const apart = templateOf([counting], { shape: "each" });
    expect(statement(apart, "CountingPlantListRole", "ReadUsage")).toMatchObject({
      Action: ["dynamodb:GetItem"],
      Resource: [arn("OnceTable")],
      Condition: {
        "ForAllValues:StringLike": { "dynamodb:LeadingKeys": ["quota#*"] },
        Null: { "dynamodb:LeadingKeys": "false" },
      },
    });
  });

  test("may rename configuration rows only if a key has a former name", () => {
    const renaming = defineFeature("renaming", (r) => {
      r.config({ keys: { limit: createTenantConfig("number", { formerly: "sheds:config:max" }) } });
    });
    expect(statement(templateOf([renaming]), "HttpRole", "RenameConfig")).toMatchObject({
      Action: ["dynamodb:ConditionCheckItem", "dynamodb:UpdateItem"],
      Resource: [arn("ConfigTable")],
    });
    expect(sids(all, "HttpRole")).not.toContain("RenameConfig");
  });

  test("may write kept events in functions with writes, and read them in all functions with handlers", () => {
    const keeping = defineFeature("keeping", (r) => {
      r.event("leek.pulled" as never, z.object({}) as never, { keepDays: 30 });
      r.query("leek.list", {
        route: "GET /leeks",
        access: access.everyone,
        handler: async () => ({}),
      });
      r.write("leek.pull", {
        route: "POST /leeks",
        access: access.everyone,
        handler: async () => ({}),
      });
    });
    const own = (template: typeof all, role: string) =>
      sids(template, role).filter((sid) => /KeepEvents|ReadEvents/.test(sid));
    const apart = templateOf([keeping], { shape: "each" });
    expect(own(apart, "KeepingLeekListRole")).toEqual(["ReadEvents"]);
    expect(own(apart, "KeepingLeekPullRole")).toEqual(["KeepEvents", "ReadEvents"]);
    expect(own(apart, "HttpRole")).toEqual([]);
    const together = templateOf([keeping]);
    expect(own(together, "HttpRole").sort()).toEqual(["KeepEvents", "ReadEvents"]);
    expect(statement(together, "HttpRole", "KeepEvents")).toMatchObject({
      Action: ["dynamodb:BatchGetItem", "dynamodb:PutItem"],
      Resource: [arn("KeptEventsTable")],
    });
    expect(statement(together, "HttpRole", "ReadEvents")).toMatchObject({
      Action: ["dynamodb:GetItem", "dynamodb:Query"],
      Resource: [arn("KeptEventsTable")],
    });
  });

  test("of the sweep may send due jobs if the server has jobs", () => {
    const jobs = defineFeature(
      "jobs",
      (r) => void r.job("spade.clean", { input: z.object({}), handler: async () => 1 }),
    );
    const template = templateOf([jobs], {}, {});
    const [claim, sweep, mark, enqueue] = statementsOf(template, "SweepRole");
    expect(claim?.Sid).toBe("Claim");
    expect(sweep).toMatchObject({ Sid: "SweepOutbox", Resource: [arn("OutboxTable")] });
    expect(mark).toMatchObject({
      Sid: "MarkDue",
      Action: ["dynamodb:UpdateItem"],
      Resource: [arn("OutboxTable")],
    });
    expect(enqueue).toMatchObject({
      Sid: "Enqueue",
      Action: ["sqs:SendMessage"],
      Resource: [arn("JobQueue")],
    });
    expect(sids(template, "SweepRole")).not.toContain("PutEvents");
    expect(statement(template, "QueueRole", "Publish")).toMatchObject({
      Resource: [arn("OutboxTable")],
    });
  });

  test("may read tables for queries, and write them for writes", () => {
    expect(statement(each, "SpadesSpadeListRole", "ReadTables")).toEqual({
      Sid: "ReadTables",
      Effect: "Allow",
      Action: ["dynamodb:BatchGetItem", "dynamodb:GetItem", "dynamodb:Query"],
      Resource: [arn("SpadesTable"), arn("ShedsTable")],
    });
    expect(statement(each, "SpadesSpadeDigRole", "WriteTables")).toMatchObject({
      Action: [
        ...["BatchWriteItem", "DeleteItem", "PutItem", "UpdateItem", "ConditionCheckItem"],
        ...["BatchGetItem", "GetItem", "Query"],
      ].map((action) => `dynamodb:${action}`),
      Resource: [arn("SpadesTable")],
    });
    expect(statement(each, "SpadesSpadeDigRole", "CheckTables")).toMatchObject({
      Action: expect.not.arrayContaining(["dynamodb:PutItem"]),
      Resource: [arn("ShedsTable")],
    });
  });

  test("may only query indexes, each by its name", () => {
    expect(statement(all, "HttpRole", "QueryIndexes")).toMatchObject({
      Action: ["dynamodb:Query"],
      Resource: [sub("${SpadesTable.Arn}/index/byOwner"), sub("${SpadesTable.Arn}/index/byAge")],
    });
  });

  test("may read the server's parameters, with or without a leading slash", () => {
    const parameter = (name: string) =>
      sub(`arn:\${AWS::Partition}:ssm:${account}:parameter/${name}`);
    expect(statement(all, "SweepRole", "ReadParameters")?.Resource).toEqual([
      parameter("garden/config"),
      parameter("garden/config/*"),
    ]);
    expect(statement(all, "SweepRole", "ReadKeyRing")?.Resource).toEqual([
      parameter("garden-ring"),
    ]);
    const [named] = statementsOf(
      templateOf([quiet], {}, { keyRing: { parameter: "/garden/ring" } }),
      "HttpRole",
    );
    expect(named?.Resource).toEqual([parameter("garden/ring")]);
  });

  test("may use the customer's key", () => {
    expect(statement(all, "HttpRole", "UseCustomerKey")).toEqual({
      Sid: "UseCustomerKey",
      Effect: "Allow",
      Action: ["kms:Decrypt", "kms:GenerateDataKey"],
      Resource: [{ Ref: "CustomerKeyArn" }],
    });
  });

  test("may write only to its function's log group", () => {
    expect(statement(all, "QueueRole", "Log")?.Resource).toEqual([arn("QueueLogGroup")]);
  });

  test("names the data of another stack by its ARN", () => {
    const of = (service: string, name: string) =>
      sub(`arn:\${AWS::Partition}:${service}:${account}:${name}`);
    const named = (sid: string, role = "QueueRole") => statement(functions, role, sid)?.Resource;
    expect(named("WriteTables")).toEqual([of("dynamodb", "table/${NamePrefix}-spades")]);
    expect(named("QueryIndexes")?.[0]).toEqual(
      of("dynamodb", "table/${NamePrefix}-spades/index/byOwner"),
    );
    expect(named("PutEvents")).toEqual([of("events", "event-bus/${NamePrefix}")]);
    expect(named("Consume")).toEqual([
      of("sqs", "${NamePrefix}-events"),
      of("sqs", "${NamePrefix}-jobs.fifo"),
    ]);
    expect(named("DeadLetter")).toEqual([
      of("sqs", "${NamePrefix}-events-dead"),
      of("sqs", "${NamePrefix}-jobs-dead.fifo"),
    ]);
    expect(named("ReadStream", "StreamRole")).toEqual([{ Ref: "OutboxTableStreamArn" }]);
    expect(Object.keys(functions.Parameters)).toContain("OutboxTableStreamArn");
    expect(Object.keys(functions.Parameters)).not.toContain("DeletionProtection");
    expect(Object.keys(templateOf([quiet], { part: "functions" }).Parameters)).not.toContain(
      "OutboxTableStreamArn",
    );
  });
});
