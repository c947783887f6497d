// biome-ignore-all lint/suspicious/noTemplateCurlyInString: IAM's and CloudFormation's own placeholders
import { describe, expect, test } from "vitest";
import { z } from "zod";
import {
  arn,
  everyone,
  idsOf,
  properties,
  sheds,
  sids,
  spades,
  statement,
  statementsOf,
  sub,
  templateOf,
} from "../../../test/support/server-templates.ts";
import { defineFeature } from "../../app/features/feature.ts";

const rakes = defineFeature(
  "rakes",
  (r) => {
    r.table("rakes", {
      partitionKey: "pk",
      tenant: true,
      indexes: { byOwner: { partitionKey: "owner" } },
    });
    r.table("counts", { partitionKey: "pk", tenant: false });
    r.query("rake.list", { route: "GET /rakes", ...everyone });
    r.write("rake.lend", { route: "POST /rakes", ...everyone });
  },
  { uses: { hoses: "read" } },
);
const hoses = defineFeature("hoses", (r) => {
  r.table("hoses", { partitionKey: "pk", tenant: false });
  r.write("hose.roll", { route: "POST /hoses", ...everyone });
});
const isolated = templateOf([rakes, hoses], { shape: "each" }, { isolation: {} });
const open = templateOf([rakes, hoses], { shape: "each" }, {});
const roles = (template: typeof isolated) => idsOf(template, "AWS::IAM::Role");

// What the statements allow, and what they do not, is tried out in a simulator of IAM: test/deploy/tenant-role.deploy.ts.
describe("a server with tenant isolation", () => {
  test("has a tenant role for each function that reaches tenants' rows, and for no other", () => {
    expect(roles(isolated).filter((id) => !roles(open).includes(id))).toEqual([
      "RakesRakeListTenantRole",
      "RakesRakeLendTenantRole",
    ]);
    const told = (id: string) =>
      (properties(isolated, `${id}LambdaFunction`)["Environment"] as { readonly Variables: object })
        .Variables; // safe: each has one
    expect(told("RakesRakeLend")).toMatchObject({
      KEELSON_ISOLATION_ROLE: arn("RakesRakeLendTenantRole"),
    });
    expect(told("HosesHoseRoll")).not.toHaveProperty("KEELSON_ISOLATION_ROLE");
  });

  test("removes access to tenants' rows from the functions' own roles, and nothing else", () => {
    expect(statement(open, "RakesRakeLendRole", "WriteTables")?.Resource).toEqual([
      arn("RakesTable"),
      arn("CountsTable"),
    ]);
    expect(statement(isolated, "RakesRakeLendRole", "WriteTables")?.Resource).toEqual([
      arn("CountsTable"),
    ]);
    expect(sids(isolated, "RakesRakeLendRole")).not.toContain("QueryIndexes");
    expect(statementsOf(isolated, "HosesHoseRollRole")).toEqual(
      statementsOf(open, "HosesHoseRollRole"),
    );
  });
});

describe("the tenant role", () => {
  test("can be assumed only by its function's role, and only with a session tag", () => {
    expect(properties(isolated, "RakesRakeLendTenantRole")["AssumeRolePolicyDocument"]).toEqual({
      Version: "2012-10-17",
      Statement: [
        {
          Effect: "Allow",
          Principal: { AWS: arn("RakesRakeLendRole") },
          Action: ["sts:AssumeRole", "sts:TagSession"],
          Condition: {
            "ForAllValues:StringEquals": { "aws:TagKeys": ["tenant", "across"] },
            Null: { "aws:TagKeys": "false" },
          },
        },
      ],
    });
  });

  test('of a query reads the rows of the tagged tenant, and those of all tenants with the tag "across"', () => {
    const role = "RakesRakeListTenantRole";
    expect(sids(isolated, role)).toEqual([
      ...["TenantReadTables", "TenantQueryIndexes", "AcrossReadTables", "AcrossQueryIndexes"],
      ...["ReadTogether", "UseCustomerKey"],
    ]);
    expect(statement(isolated, role, "TenantReadTables")).toEqual({
      Sid: "TenantReadTables",
      Effect: "Allow",
      Action: ["dynamodb:BatchGetItem", "dynamodb:GetItem", "dynamodb:Query"],
      Resource: [arn("RakesTable")],
      Condition: {
        "ForAllValues:StringLike": { "dynamodb:LeadingKeys": ["${aws:PrincipalTag/tenant}/*"] },
        Null: { "dynamodb:LeadingKeys": "false" },
      },
    });
    expect(statement(isolated, role, "TenantQueryIndexes")).toMatchObject({
      Action: ["dynamodb:Query"],
      Resource: [sub("${RakesTable.Arn}/index/byOwner")],
    });
    expect(statement(isolated, role, "AcrossReadTables")).toMatchObject({
      Action: ["dynamodb:BatchGetItem", "dynamodb:GetItem", "dynamodb:Query", "dynamodb:Scan"],
      Condition: { StringEquals: { "aws:PrincipalTag/across": "true" } },
    });
  });

  test("of a write accesses claims and tables without tenants in transactions", () => {
    const role = "RakesRakeLendTenantRole";
    const found = ["ReadTogether", "CheckTogether", "WriteTogether", "Commit"].map(
      (sid) => statement(isolated, role, sid)?.Resource,
    );
    expect(found).toEqual([
      [arn("CountsTable"), arn("HosesTable")],
      [arn("CountsTable"), arn("HosesTable"), arn("OnceTable")], // an answer with cookies checks its claim
      [arn("CountsTable")],
      [arn("OnceTable")],
    ]);
    expect(sids(isolated, role)).toContain("TenantWriteTables");
    const publishing = templateOf(
      [rakes, hoses, spades, sheds],
      { shape: "each" },
      { isolation: {} },
    );
    expect(statement(publishing, role, "Commit")).toEqual({
      Sid: "Commit",
      Effect: "Allow",
      Action: ["dynamodb:PutItem"],
      Resource: [arn("OnceTable"), arn("OutboxTable")],
      Condition: { StringEquals: { "dynamodb:EnclosingOperation": "TransactWriteItems" } },
    });
    const counting = defineFeature(
      "beds",
      (r) => void r.quota("plants", { limit: 9, window: "forever" }),
    );
    const counted = templateOf([rakes, hoses, counting], { shape: "each" }, { isolation: {} });
    expect(statement(counted, role, "Count")).toMatchObject({
      Action: ["dynamodb:UpdateItem"],
      Resource: [arn("OnceTable")],
    });
    const kept = defineFeature(
      "kept",
      (r) => void r.event("leek.kept" as never, z.object({}) as never, { keep: true }),
    );
    const keeping = templateOf([rakes, hoses, kept], { shape: "each" }, { isolation: {} });
    expect(statement(keeping, role, "Commit")?.Resource).toEqual([
      arn("OnceTable"),
      arn("OutboxTable"),
      arn("KeptEventsTable"),
    ]);
  });
});
