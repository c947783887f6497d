import { keptEventsTable, onceTable, outboxTable } from "../../app/handlers/table.ts";
import { separator } from "../../parts/wall/tenant-prefix.ts";
import type { DataPlace } from "./data-place.ts";
import type { NeededFunction } from "./functions.ts";
import type { Needs } from "./needs.ts";
import { statement, tableStatements, useCustomerKey } from "./statements.ts";
import type { Value } from "./template.ts";

/**
 * Statements of the tenant role, or `undefined` if the function needs none. The role reaches only
 * rows of the session's tenant, and in tables without tenants the other items of a transaction.
 */
export function tenantStatements(
  needed: NeededFunction,
  { isIsolated }: Needs,
  place: DataPlace,
): Value[] | undefined {
  const walled = needed.tables.filter(({ table }) => table.tenant === true);
  if (!isIsolated || walled.length === 0) return undefined;
  return [
    ...tableStatements(walled, place, "Tenant", [], ofTenant),
    // Only a session for all tenants can scan.
    ...tableStatements(walled, place, "Across", ["dynamodb:Scan"], ofEveryTenant),
    ...commitStatements(needed, place),
    useCustomerKey,
  ];
}

/** `ForAllValues` also matches a command without keys, such as a scan, so `Null` requires a key. */
const ofTenant = {
  "ForAllValues:StringLike": {
    "dynamodb:LeadingKeys": [`\${aws:PrincipalTag/tenant}${separator}*`],
  },
  Null: { "dynamodb:LeadingKeys": "false" },
};
const ofEveryTenant = { StringEquals: { "aws:PrincipalTag/across": "true" } };

/**
 * A transaction uses one role for all items. `ConditionCheckItem` does not support the condition on
 * the enclosing operation, and only transactions use it.
 */
function commitStatements({ duties, tables }: NeededFunction, place: DataPlace): Value[] {
  const claimed = duties.has("claim") ? [onceTable] : [];
  const committed = [
    ...claimed,
    ...(duties.has("publish") || duties.has("later") ? [outboxTable] : []),
    ...(duties.has("keep-events") ? [keptEventsTable] : []),
  ];
  const inside = (operation: string) => ({
    StringEquals: { "dynamodb:EnclosingOperation": operation },
  });
  const arnsOf = (...reaches: readonly string[]) =>
    tables
      .filter(({ table, reach }) => table.tenant !== true && reaches.includes(reach))
      .map(({ table }) => place.tableArn(table));
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
      [...arnsOf("check", "write"), ...claimed.map(place.tableArn)],
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
