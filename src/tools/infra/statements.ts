import { configTable, keptEventsTable, onceTable, outboxTable } from "../../app/handlers/table.ts";
import type { Reach } from "../../app/registry/reach.ts";
import { keyPartition, secretPartition } from "../../parts/api-keys/api-key.ts";
import { quotaPartition } from "../../parts/limits/quota-change.ts";
import { ratePartition } from "../../parts/limits/rate-store.ts";
import { registryPartition } from "../../parts/tenant-registry/tenant.ts";
import { separator } from "../../parts/wall/tenant-prefix.ts";
import { arnOf, type DataPlace } from "./data-parts.ts";
import type { Duty, NeededFunction } from "./functions.ts";
import { type NeededQueue, type Needs, queuesOf } from "./needs.ts";
import { withCustomerKey } from "./parameters.ts";
import { arnRef, ref, type Value, type Values } from "./template.ts";

/** Never allows the action or resource `*`. */
interface Statement extends Values {
  readonly Sid: string;
}

export function statementsOf(
  needed: NeededFunction,
  needs: Needs,
  place: DataPlace,
  logGroups: readonly string[],
) {
  const queues = queuesOf(needs);
  // With isolation, only the tenant role reaches rows of tenants.
  const tables = needed.tables.filter(({ table }) => !needs.isIsolated || table.tenant !== true);
  const statements = [
    ...parameterStatements(needs),
    ...[...needed.duties]
      .flatMap((duty) => grants[duty])
      .flatMap(([sid, actions, resources, condition]) =>
        statement(sid, actions, resources(place, queues), condition),
      ),
    ...tableStatements(tables, place),
    ...statement("Log", ["logs:CreateLogStream", "logs:PutLogEvents"], logGroups.map(arnRef)),
  ];
  return [...new Map(statements.map((one) => [one.Sid, one])).values(), useCustomerKey];
}

/** Parameters are read at the start, and the key ring again when a new key appears. */
function parameterStatements({ parameters: { overrides, keyRing } }: Needs) {
  const arns = (name: string | undefined, ...ends: readonly string[]) =>
    name === undefined
      ? []
      : ends.map((end) => arnOf("ssm", `parameter${name.startsWith("/") ? "" : "/"}${name}${end}`));
  return [
    // IAM accepts either form for parameters below a path.
    ...statement("ReadParameters", ["ssm:GetParametersByPath"], arns(overrides, "", "/*")),
    ...statement("ReadKeyRing", ["ssm:GetParameter"], arns(keyRing, "")),
  ];
}

type Resources = (place: DataPlace, queues: readonly NeededQueue[]) => Value[];
type Grant = readonly [
  sid: string,
  actions: readonly string[],
  resources: Resources,
  condition?: Value,
];

const [config, once, outbox, kept] = [configTable, onceTable, outboxTable, keptEventsTable].map(
  (table): Resources =>
    (place) => [place.tableArn(table)],
) as [Resources, Resources, Resources, Resources]; // safe cast: four tables
const dynamodb = (...actions: readonly string[]) => actions.map((action) => `dynamodb:${action}`);
/** Only rows whose partitions start so. `Null` requires a key, as in {@link ofTenant}. */
const startingWith = (...prefixes: readonly string[]): Value => ({
  "ForAllValues:StringLike": {
    "dynamodb:LeadingKeys": prefixes.map((prefix) => `${prefix}*`),
  },
  Null: { "dynamodb:LeadingKeys": "false" },
});
const ofApiKeys = startingWith(secretPartition, keyPartition);
const ofTenants = startingWith(registryPartition);
const ofRates = startingWith(ratePartition);
const ofUsage = startingWith(quotaPartition);
const leave: Grant = ["Publish", dynamodb("DeleteItem", "PutItem"), outbox];
const putEvents: Grant = ["PutEvents", ["events:PutEvents"], (place) => [place.busArn]];
const holdsJobs: ReadonlySet<NeededQueue["kind"]> = new Set(["jobs", "fair-jobs"]);
const enqueue: Grant = [
  "Enqueue",
  ["sqs:SendMessage"],
  (place, queues) => queues.filter(({ kind }) => holdsJobs.has(kind)).map(place.queueArn),
];
const sweep: Grant = ["SweepOutbox", dynamodb("DeleteItem", "PutItem", "Query"), outbox];

const grants: Readonly<Record<Duty, readonly Grant[]>> = {
  "read-config": [["ReadConfig", dynamodb("BatchGetItem", "Query"), config]],
  // A row with its history. Keys are rotated with a person's role.
  "operate-config": [["OperateConfig", dynamodb("PutItem", "Query"), config]],
  // The first write after a rename replaces the former key's row, or checks that it does not exist.
  "rename-config": [["RenameConfig", dynamodb("ConditionCheckItem", "UpdateItem"), config]],
  // Taking and completing (PutItem), a duplicate (GetItem), renewal (UpdateItem) and release.
  claim: [["Claim", dynamodb("DeleteItem", "GetItem", "PutItem", "UpdateItem"), once]],
  "take-rates": [["TakeRates", dynamodb("UpdateItem"), once, ofRates]],
  // The owner of a secret (GetItem) and the last use (UpdateItem), even in functions that only read.
  "identify-api-keys": [["IdentifyApiKeys", dynamodb("GetItem", "UpdateItem"), once, ofApiKeys]],
  // The list (Query), and changes of a key with its secrets and the count.
  "manage-api-keys": [
    [
      "ManageApiKeys",
      dynamodb("DeleteItem", "GetItem", "PutItem", "Query", "UpdateItem"),
      once,
      ofApiKeys,
    ],
  ],
  // The state of the caller's tenant (GetItem), `server.tenants` and fan-outs of schedules (Query).
  // The changes of `server.tenants` are part of a claim's permissions.
  "read-tenants": [["ReadTenants", dynamodb("GetItem", "Query"), once, ofTenants]],
  // `get` of a quota. Its other calls are part of a claim's permissions.
  "read-usage": [["ReadUsage", dynamodb("GetItem"), once, ofUsage]],
  // `ctx.step`, and responses with cookies, which are never stored, only check the claim.
  steps: [["Step", dynamodb("ConditionCheckItem"), once]],
  publish: [leave, putEvents],
  // Events, after their day; versions of projections, and marks of the events they have counted.
  "keep-events": [["KeepEvents", dynamodb("BatchGetItem", "PutItem"), kept]],
  // `ctx.events`, and the active version of a projection.
  "read-events": [["ReadEvents", dynamodb("GetItem", "Query"), kept]],
  // Deliveries and later jobs.
  later: [leave],
  // Due jobs are marked (UpdateItem), sent and deleted; invalid rows are set aside (PutItem).
  "send-due": [sweep, ["MarkDue", dynamodb("UpdateItem"), outbox], enqueue],
  "sweep-outbox": [sweep, putEvents],
  enqueue: [enqueue],
  consume: [
    [
      "Consume",
      ["ChangeMessageVisibility", "DeleteMessage", "GetQueueAttributes", "ReceiveMessage"].map(
        (action) => `sqs:${action}`,
      ),
      (place, queues) => queues.map(place.queueArn),
    ],
    [
      "DeadLetter",
      ["sqs:GetQueueUrl", "sqs:SendMessage"],
      (place, queues) => queues.map(place.deadQueueArn),
    ],
  ],
  // An event that waits for a limit, or that another process is running, is sent again. A job needs
  // `enqueue` or `later`.
  wait: [
    [
      "SendAgain",
      ["sqs:SendMessage"],
      (place, queues) => queues.filter(({ kind }) => !holdsJobs.has(kind)).map(place.queueArn),
    ],
  ],
  "read-stream": [
    [
      "ReadStream",
      dynamodb("DescribeStream", "GetRecords", "GetShardIterator", "ListStreams"),
      (place) => [place.streamArn],
    ],
  ],
};

const reading = dynamodb("BatchGetItem", "GetItem", "Query");
/** A transaction needs the permissions of all its items' actions. */
const checking = [...dynamodb("ConditionCheckItem"), ...reading];
const writing = [...dynamodb("BatchWriteItem", "DeleteItem", "PutItem", "UpdateItem"), ...checking];
const reachActions: readonly (readonly [Reach, string, readonly string[]])[] = [
  ["query", "ReadTables", reading],
  ["check", "CheckTables", checking],
  ["write", "WriteTables", writing],
];

/** Indexes only support queries. */
function tableStatements(
  tables: NeededFunction["tables"],
  place: Pick<DataPlace, "tableArn" | "indexArn">,
  prefix = "",
  more: readonly string[] = [],
  condition?: Value,
): Statement[] {
  const indexes = tables.flatMap(({ table }) =>
    table.indexes.map(({ name }) => place.indexArn(table, name)),
  );
  const allow = (sid: string, actions: readonly string[], arns: readonly Value[]) =>
    statement(`${prefix}${sid}`, [...actions, ...more], arns, condition);
  return [
    ...reachActions.flatMap(([reach, sid, actions]) => {
      const reached = tables.filter((one) => one.reach === reach);
      return allow(
        sid,
        actions,
        reached.map(({ table }) => place.tableArn(table)),
      );
    }),
    ...allow("QueryIndexes", dynamodb("Query"), indexes),
  ];
}

function statement(
  Sid: string,
  Action: readonly string[],
  Resource: readonly Value[],
  Condition?: Value,
): Statement[] {
  const conditional = Condition === undefined ? {} : { Condition };
  return Resource.length === 0 ? [] : [{ Sid, Effect: "Allow", Action, Resource, ...conditional }];
}

const [useKey] = statement(
  "UseCustomerKey",
  ["kms:Decrypt", "kms:GenerateDataKey"],
  [ref("CustomerKeyArn")],
);
const useCustomerKey = withCustomerKey(useKey as Statement); // safe cast: it has a resource

/**
 * The tenant role, if the function needs one, reaches only rows of the session's tenant, and in
 * tables without tenants the other items of a transaction.
 */
export function tenantStatements(needed: NeededFunction, needs: Needs, place: DataPlace) {
  const walled = needed.tables.filter(({ table }) => table.tenant === true);
  if (!needs.isIsolated || walled.length === 0) return undefined;
  return [
    ...tableStatements(walled, place, "Tenant", [], ofTenant),
    // Only a session for all tenants can scan.
    ...tableStatements(walled, place, "Across", ["dynamodb:Scan"], ofEveryTenant),
    ...commitStatements(needed, place, needs.hasQuotas),
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
function commitStatements(
  { duties, tables }: NeededFunction,
  place: DataPlace,
  hasQuotas: boolean,
) {
  const claimed = duties.has("claim") ? [onceTable] : [];
  const committed = [
    ...claimed,
    ...(duties.has("publish") || duties.has("later") ? [outboxTable] : []),
    ...(duties.has("keep-events") ? [keptEventsTable] : []),
  ];
  const inside = (kind: string) => ({
    StringEquals: { "dynamodb:EnclosingOperation": `Transact${kind}Items` },
  });
  const arnsOf = (...reaches: readonly string[]) =>
    tables
      .filter(({ table, reach }) => table.tenant !== true && reaches.includes(reach))
      .map(({ table }) => place.tableArn(table));
  const [read, checked, written] = [
    arnsOf("query", "check", "write"),
    [...arnsOf("check", "write"), ...claimed.map(place.tableArn)],
    arnsOf("write"),
  ];
  return [
    ...statement("ReadTogether", dynamodb("GetItem"), read, inside("Get")),
    ...statement("CheckTogether", dynamodb("ConditionCheckItem"), checked),
    ...statement(
      "WriteTogether",
      dynamodb("DeleteItem", "PutItem", "UpdateItem"),
      written,
      inside("Write"),
    ),
    ...statement(
      "Count",
      dynamodb("UpdateItem"),
      hasQuotas ? claimed.map(place.tableArn) : [],
      inside("Write"),
    ),
    ...statement("Commit", dynamodb("PutItem"), committed.map(place.tableArn), inside("Write")),
  ];
}
