import { isolationVariable } from "../declare/isolation.ts";
import type { TableDeclaration } from "../declare/table.ts";
import { separator } from "../wall/tenant-prefix.ts";
import { attributeOf, type TemplatePart, type Value } from "./template.ts";

/** A function whose runs reach rows of tenants. */
export interface IsolatedFunction {
  /** The logical ID of its own role. */
  readonly role: string;
  /** The tables of features, and how it reaches them. */
  readonly tables: readonly { readonly table: TableDeclaration; readonly reach: "query" | "check" | "write" }[];
  /** keelson's own tables that its commits write to: claims, and events. */
  readonly committed: readonly TableDeclaration[];
}

/** Where tables are. */
export interface TablePlace {
  readonly tableArn: (table: Pick<TableDeclaration, "name">) => Value;
  readonly indexArn: (table: Pick<TableDeclaration, "name">, index: string) => Value;
}

type Reached = IsolatedFunction["tables"];

/** Whether a function reaches rows of tenants at all. */
export function reachesTenants({ tables }: Pick<IsolatedFunction, "tables">): boolean {
  return tables.some(({ table }) => table.tenant === true);
}

/** The logical ID of the role that a function assumes for each tenant. */
export function tenantRoleId(role: string): string {
  return role.replace(/Role$/, "TenantRole");
}

/** What a function is told of its role for tenants. */
export function isolationVariables(role: string): Readonly<Record<string, Value>> {
  return { [isolationVariable]: attributeOf(tenantRoleId(role), "Arn") };
}

/**
 * The role that a function assumes for each tenant: the function's own role alone may, and has to tag the session. Of the tables with
 * tenants it has the rows of the tag's tenant, by what the function does with the table, and what a commit has besides them in one
 * transaction.
 */
export function tenantRolePart(needed: IsolatedFunction, place: TablePlace, others: readonly Value[] = []): TemplatePart {
  const walled = needed.tables.filter(({ table }) => table.tenant === true);
  const open = needed.tables.filter(({ table }) => table.tenant !== true);
  return {
    Resources: {
      [tenantRoleId(needed.role)]: {
        Type: "AWS::IAM::Role",
        Properties: {
          AssumeRolePolicyDocument: {
            Version: "2012-10-17",
            Statement: [
              {
                Effect: "Allow",
                Principal: { AWS: attributeOf(needed.role, "Arn") },
                Action: ["sts:AssumeRole", "sts:TagSession"],
                Condition: {
                  "ForAllValues:StringEquals": { "aws:TagKeys": ["tenant", "across"] },
                  Null: { "aws:TagKeys": "false" },
                },
              },
            ],
          },
          Policies: [
            {
              PolicyName: "tenants",
              PolicyDocument: {
                Version: "2012-10-17",
                Statement: [
                  ...rowStatements(walled, place, "Tenant", ofTenant),
                  ...rowStatements(walled, place, "Across", ofEveryTenant),
                  ...commitStatements(needed, open, place),
                  ...others,
                ],
              },
            },
          ],
        },
      },
    },
  };
}

/** A condition of a statement: operators, keys, values. */
type Condition = Readonly<Record<string, Readonly<Record<string, Value>>>>;

/**
 * Every key of a command begins with the tag's tenant. `ForAllValues` holds where a command has no keys at all, as a scan, so there has to be
 * one. Where a session has no such tag, nothing matches.
 */
const ofTenant: Condition = {
  "ForAllValues:StringLike": { "dynamodb:LeadingKeys": [`\${aws:PrincipalTag/tenant}${separator}*`] },
  Null: { "dynamodb:LeadingKeys": "false" },
};
const ofEveryTenant: Condition = { StringEquals: { "aws:PrincipalTag/across": "true" } };

const reading = ["dynamodb:BatchGetItem", "dynamodb:GetItem", "dynamodb:Query"];
const checking = ["dynamodb:ConditionCheckItem", ...reading];
const writing = ["dynamodb:BatchWriteItem", "dynamodb:DeleteItem", "dynamodb:PutItem", "dynamodb:UpdateItem", ...checking];
const actions = { query: ["Read", reading], check: ["Check", checking], write: ["Write", writing] } as const;

/** The rows of tables with tenants. Only a session for every tenant scans. */
function rowStatements(walled: Reached, place: TablePlace, name: string, condition: Condition): Value[] {
  const scan = condition === ofEveryTenant ? ["dynamodb:Scan"] : [];
  const indexes = walled.flatMap(({ table }) => table.indexes.map((index) => place.indexArn(table, index.name)));
  return [
    ...(["query", "check", "write"] as const).flatMap((reach) => {
      const [does, allowed] = actions[reach];
      const tables = walled.filter((one) => one.reach === reach).map(({ table }) => place.tableArn(table));
      return statement(`${name}${does}`, [...allowed, ...scan], tables, condition);
    }),
    ...statement(`${name}QueryIndexes`, ["dynamodb:Query", ...scan], indexes, condition),
  ];
}

/**
 * What a transaction has besides rows of tenants, which takes the same credentials: claims and events, and tables without tenants. Only
 * a transaction checks conditions of items, so that action knows no enclosing operation.
 */
function commitStatements({ committed }: IsolatedFunction, open: Reached, place: TablePlace): Value[] {
  const inside = (operation: string): Condition => ({ StringEquals: { "dynamodb:EnclosingOperation": operation } });
  const arnsOf = (...reaches: readonly string[]) =>
    open.filter(({ reach }) => reaches.includes(reach)).map(({ table }) => place.tableArn(table));
  return [
    ...statement("ReadTogether", ["dynamodb:GetItem"], arnsOf("query", "check", "write"), inside("TransactGetItems")),
    ...statement("CheckTogether", ["dynamodb:ConditionCheckItem"], arnsOf("check", "write")),
    ...statement(
      "WriteTogether",
      ["dynamodb:DeleteItem", "dynamodb:PutItem", "dynamodb:UpdateItem"],
      arnsOf("write"),
      inside("TransactWriteItems"),
    ),
    ...statement("Commit", ["dynamodb:PutItem"], committed.map(place.tableArn), inside("TransactWriteItems")),
  ];
}

function statement(Sid: string, Action: readonly string[], Resource: readonly Value[], Condition?: Condition): Value[] {
  return Resource.length === 0
    ? []
    : [{ Sid, Effect: "Allow", Action, Resource, ...(Condition === undefined ? {} : { Condition }) }];
}
