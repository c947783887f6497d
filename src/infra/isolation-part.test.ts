import { expect, test } from "vitest";
import { onceTable, type TableDeclaration } from "../declare/table.ts";
import { type IsolatedFunction, isolationVariables, reachesTenants, tenantRolePart } from "./isolation-part.ts";
import type { Value } from "./template.ts";

const table = (name: string, more: Partial<TableDeclaration> = {}): TableDeclaration => ({
  name,
  partitionKey: "pk",
  sortKey: undefined,
  indexes: [],
  ...more,
});
const files = table("files", {
  tenant: true,
  indexes: [{ name: "byOwner", partitionKey: "owner", sortKey: undefined, project: undefined }],
});
const place = {
  tableArn: ({ name }: { readonly name: string }) => name,
  indexArn: ({ name }: { readonly name: string }, index: string) => `${name}/${index}`,
};

/** The statements of a function's role for tenants. */
function statementsOf(needed: Omit<IsolatedFunction, "role">, others: readonly Value[] = []) {
  const { HttpTenantRole: role } = tenantRolePart({ role: "HttpRole", ...needed }, place, others).Resources ?? {};
  if (role === undefined) throw new Error("there is no role");
  // Safe: a role has these.
  const { Policies } = role.Properties as {
    readonly Policies: readonly [
      { readonly PolicyDocument: { readonly Statement: readonly Readonly<Record<string, unknown>>[] } },
    ];
  };
  return Policies[0].PolicyDocument.Statement;
}

// What the statements allow, and what they do not, is tried out in a simulator of IAM: test/deploy/tenant-role.deploy.ts.
test("a query's role reads rows of the tag's tenant, and scans those of every tenant in a session for that", () => {
  const statements = statementsOf({ tables: [{ table: files, reach: "query" }], committed: [] }, [{ Sid: "UseKey" }]);
  expect(statements).toEqual([
    {
      Sid: "TenantRead",
      Effect: "Allow",
      Action: ["dynamodb:BatchGetItem", "dynamodb:GetItem", "dynamodb:Query"],
      Resource: ["files"],
      Condition: {
        "ForAllValues:StringLike": { "dynamodb:LeadingKeys": [`\${aws:PrincipalTag/tenant}/*`] },
        Null: { "dynamodb:LeadingKeys": "false" },
      },
    },
    expect.objectContaining({ Sid: "TenantQueryIndexes", Action: ["dynamodb:Query"], Resource: ["files/byOwner"] }),
    expect.objectContaining({
      Sid: "AcrossRead",
      Action: ["dynamodb:BatchGetItem", "dynamodb:GetItem", "dynamodb:Query", "dynamodb:Scan"],
      Condition: { StringEquals: { "aws:PrincipalTag/across": "true" } },
    }),
    expect.objectContaining({ Sid: "AcrossQueryIndexes", Action: ["dynamodb:Query", "dynamodb:Scan"] }),
    { Sid: "UseKey" },
  ]);
});

test("a write's role has claims and tables without tenants inside of transactions", () => {
  const tables: IsolatedFunction["tables"] = [
    { table: table("notes", { tenant: true }), reach: "write" },
    { table: table("counts"), reach: "write" },
    { table: table("rates"), reach: "check" },
  ];
  const found = statementsOf({ tables, committed: [onceTable] }).map(({ Sid, Resource }) => [Sid, Resource]);
  expect(found).toEqual([
    ["TenantWrite", ["notes"]],
    ["AcrossWrite", ["notes"]],
    ["ReadTogether", ["counts", "rates"]],
    ["CheckTogether", ["counts", "rates"]],
    ["WriteTogether", ["counts"]],
    ["Commit", ["once"]],
  ]);
});

test("only a function that reaches rows of tenants needs the role, and is told of it", () => {
  expect(reachesTenants({ tables: [{ table: table("counts"), reach: "write" }] })).toBe(false);
  expect(reachesTenants({ tables: [{ table: files, reach: "query" }] })).toBe(true);
  expect(isolationVariables("HttpRole")).toEqual({ KEELSON_ISOLATION_ROLE: { "Fn::GetAtt": ["HttpTenantRole", "Arn"] } });
});
