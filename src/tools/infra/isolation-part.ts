import { keptEventsTable, onceTable, outboxTable } from "../../app/handlers/table.ts";
import { isolationVariable } from "../../app/registry/isolation.ts";
import { separator } from "../../parts/wall/tenant-prefix.ts";
import type { DataPlace } from "./data-place.ts";
import type { NeededFunction } from "./functions.ts";
import type { Needs } from "./needs.ts";
import { reachActions, useCustomerKey } from "./statements.ts";
import { attributeOf, type TemplatePart, type Value } from "./template.ts";

type Reached = NeededFunction["tables"];
type TablePlace = Pick<DataPlace, "tableArn" | "indexArn">;

/** True if the function needs a tenant role. */
export function reachesTenants({ tables }: NeededFunction, { isIsolated }: Needs): boolean {
  return isIsolated && tables.some(({ table }) => table.tenant === true);
}

export function isolationVariables(tenantRole: string): Readonly<Record<string, Value>> {
  return { [isolationVariable]: attributeOf(tenantRole, "Arn") };
}

export interface RoleIds {
  readonly role: string;
  readonly tenantRole: string;
}

/**
 * Only the function's role may assume it, with a tagged session. In tables with tenants it reaches
 * only that tenant's rows, but also the other items of the same transaction.
 */
export function tenantRolePart(
  needed: NeededFunction,
  place: TablePlace,
  ids: RoleIds,
): TemplatePart {
  const walled = needed.tables.filter(({ table }) => table.tenant === true);
  const open = needed.tables.filter(({ table }) => table.tenant !== true);
  return {
    Resources: {
      [ids.tenantRole]: {
        Type: "AWS::IAM::Role",
        Properties: {
          AssumeRolePolicyDocument: {
            Version: "2012-10-17",
            Statement: [
              {
                Effect: "Allow",
                Principal: { AWS: attributeOf(ids.role, "Arn") },
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
                  useCustomerKey,
                ],
              },
            },
          ],
        },
      },
    },
  };
}

type Condition = Readonly<Record<string, Readonly<Record<string, Value>>>>;

/**
 * `ForAllValues` also matches a command without keys, such as a scan, so `Null` requires one. A
 * session without the tag does not match.
 */
const ofTenant: Condition = {
  "ForAllValues:StringLike": {
    "dynamodb:LeadingKeys": [`\${aws:PrincipalTag/tenant}${separator}*`],
  },
  Null: { "dynamodb:LeadingKeys": "false" },
};
const ofEveryTenant: Condition = { StringEquals: { "aws:PrincipalTag/across": "true" } };

/** Only a session for all tenants can scan. */
function rowStatements(
  walled: Reached,
  place: TablePlace,
  name: string,
  condition: Condition,
): Value[] {
  const scan = condition === ofEveryTenant ? ["dynamodb:Scan"] : [];
  const indexes = walled.flatMap(({ table }) =>
    table.indexes.map((index) => place.indexArn(table, index.name)),
  );
  return [
    ...(["query", "check", "write"] as const).flatMap((reach) => {
      const { Sid, Action } = reachActions[reach];
      const tables = walled
        .filter((one) => one.reach === reach)
        .map(({ table }) => place.tableArn(table));
      return statement(`${name}${Sid}`, [...Action, ...scan], tables, condition);
    }),
    ...statement(`${name}QueryIndexes`, ["dynamodb:Query", ...scan], indexes, condition),
  ];
}

/**
 * Other items of a transaction use the same credentials. Only transactions use
 * `ConditionCheckItem`, so it does not support the condition on the enclosing operation.
 */
function commitStatements({ duties }: NeededFunction, open: Reached, place: TablePlace): Value[] {
  const committed = [
    ...(duties.has("claim") ? [onceTable] : []),
    ...(duties.has("publish") || duties.has("later") ? [outboxTable] : []),
    ...(duties.has("keep-events") ? [keptEventsTable] : []),
  ];
  const inside = (operation: string): Condition => ({
    StringEquals: { "dynamodb:EnclosingOperation": operation },
  });
  const arnsOf = (...reaches: readonly string[]) =>
    open.filter(({ reach }) => reaches.includes(reach)).map(({ table }) => place.tableArn(table));
  return [
    ...statement(
      "ReadTogether",
      ["dynamodb:GetItem"],
      arnsOf("query", "check", "write"),
      inside("TransactGetItems"),
    ),
    ...statement(
      "CheckTogether",
      ["dynamodb:ConditionCheckItem"],
      [...arnsOf("check", "write"), ...(duties.has("claim") ? [place.tableArn(onceTable)] : [])],
    ),
    ...statement(
      "WriteTogether",
      ["dynamodb:DeleteItem", "dynamodb:PutItem", "dynamodb:UpdateItem"],
      arnsOf("write"),
      inside("TransactWriteItems"),
    ),
    ...statement(
      "Commit",
      ["dynamodb:PutItem"],
      committed.map(place.tableArn),
      inside("TransactWriteItems"),
    ),
  ];
}

function statement(
  Sid: string,
  Action: readonly string[],
  Resource: readonly Value[],
  Condition?: Condition,
): Value[] {
  return Resource.length === 0
    ? []
    : [
        {
          Sid,
          Effect: "Allow",
          Action,
          Resource,
          ...(Condition === undefined ? {} : { Condition }),
        },
      ];
}
