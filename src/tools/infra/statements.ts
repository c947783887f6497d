import { configTable, keptEventsTable, onceTable, outboxTable } from "../../app/handlers/table.ts";
import type { Reach } from "../../app/registry/reach.ts";
import { arnOf, type DataPlace } from "./data-place.ts";
import type { Duty, NeededFunction } from "./functions.ts";
import { type Needs, queuesOf } from "./needs.ts";
import { withCustomerKey } from "./parameters.ts";
import { attributeOf, ref, type Value } from "./template.ts";

/** Statement of a role. Its `Sid` describes its purpose. No action or resource is `*`. */
interface Statement {
  readonly Sid: string;
  readonly Action: readonly string[];
  readonly Resource: readonly Value[];
}

/** Returns the permissions of a function's role: the minimal set of actions that its work needs. */
export function statementsOf(
  needed: NeededFunction,
  needs: Needs,
  place: DataPlace,
  logGroup: string,
): Value[] {
  const statements = [
    ...parameterStatements(needs),
    ...[...needed.duties].flatMap((duty) => dutyStatements(duty, needs, place)),
    ...tableStatements(needed, needs, place),
    {
      Sid: "Log",
      Action: ["logs:CreateLogStream", "logs:PutLogEvents"],
      Resource: [attributeOf(logGroup, "Arn")],
    },
  ];
  const merged = statements.filter(
    ({ Sid }, index) => statements.findIndex((one) => one.Sid === Sid) === index,
  );
  return [...merged.map(allowed), useCustomerKey];
}

/**
 * Returns the statements for overrides and key ring. Both are read when a function starts, and the
 * key ring again when a new key appears.
 */
function parameterStatements({ parameters: { overrides, keyRing } }: Needs): Statement[] {
  const parameter = (name: string) =>
    arnOf("ssm", `parameter${name.startsWith("/") ? "" : "/"}${name}`);
  return [
    ...(overrides === undefined
      ? []
      : [
          {
            Sid: "ReadParameters",
            Action: ["ssm:GetParametersByPath"],
            // IAM accepts either form for parameters below a path.
            Resource: [parameter(overrides), parameter(`${overrides}/*`)],
          },
        ]),
    ...(keyRing === undefined
      ? []
      : [{ Sid: "ReadKeyRing", Action: ["ssm:GetParameter"], Resource: [parameter(keyRing)] }]),
  ];
}

function dutyStatements(duty: Duty, needs: Needs, place: DataPlace): Statement[] {
  const config = [place.tableArn(configTable)];
  const outbox = [place.tableArn(outboxTable)];
  const kept = [place.tableArn(keptEventsTable)];
  const queues = queuesOf(needs);
  const putEvents = { Sid: "PutEvents", Action: ["events:PutEvents"], Resource: [place.busArn] };
  switch (duty) {
    // `ctx.config`.
    case "read-config":
      return [{ Sid: "ReadConfig", Action: ["dynamodb:BatchGetItem"], Resource: config }];
    // Operators' routes. One transaction writes a row with its history, and a query reads the
    // history. Keys are rotated with a person's role.
    case "operate-config":
      return [
        { Sid: "OperateConfig", Action: ["dynamodb:PutItem", "dynamodb:Query"], Resource: config },
      ];
    // The first write after a rename supersedes the row of the former key, or checks that it does
    // not exist.
    case "rename-config":
      return [
        {
          Sid: "RenameConfig",
          Action: ["dynamodb:ConditionCheckItem", "dynamodb:UpdateItem"],
          Resource: config,
        },
      ];
    // Takes and completes a claim (PutItem), reads it for a duplicate (GetItem), renews it during
    // long runs (UpdateItem), and releases it after a failure (DeleteItem).
    case "claim":
      return [
        {
          Sid: "Claim",
          Action: [
            "dynamodb:DeleteItem",
            "dynamodb:GetItem",
            "dynamodb:PutItem",
            "dynamodb:UpdateItem",
          ],
          Resource: [place.tableArn(onceTable)],
        },
      ];
    // `ctx.step`, and responses with cookies: a transaction checks the claim without completing it.
    case "steps":
      return [
        {
          Sid: "Step",
          Action: ["dynamodb:ConditionCheckItem"],
          Resource: [place.tableArn(onceTable)],
        },
      ];
    // `ctx.publish`: the event is written with the effects and deleted after dispatch.
    case "publish":
      return [
        { Sid: "Publish", Action: ["dynamodb:DeleteItem", "dynamodb:PutItem"], Resource: outbox },
        putEvents,
      ];
    // An event is stored with the effects, after its day has been checked and recorded. A
    // projection records its version and marks the events that it has counted.
    case "keep-events":
      return [
        {
          Sid: "KeepEvents",
          Action: ["dynamodb:BatchGetItem", "dynamodb:PutItem"],
          Resource: kept,
        },
      ];
    // `ctx.events`, and the version of a projection.
    case "read-events":
      return [
        { Sid: "ReadEvents", Action: ["dynamodb:GetItem", "dynamodb:Query"], Resource: kept },
      ];
    // A delivery, or a job that is due later, is written with the effects. It is deleted after it
    // is sent, or by `ctx.unschedule`.
    case "later":
      return [
        { Sid: "Publish", Action: ["dynamodb:DeleteItem", "dynamodb:PutItem"], Resource: outbox },
      ];
    // Due jobs are read, marked (UpdateItem), sent and deleted. An invalid row is set aside
    // (PutItem).
    case "send-due":
      return [
        {
          Sid: "SweepOutbox",
          Action: ["dynamodb:DeleteItem", "dynamodb:PutItem", "dynamodb:Query"],
          Resource: outbox,
        },
        { Sid: "MarkDue", Action: ["dynamodb:UpdateItem"], Resource: outbox },
        ...dutyStatements("enqueue", needs, place),
      ];
    // Remaining events are read, and deleted after dispatch, or set aside (PutItem) if the bus
    // rejects them permanently.
    case "sweep-outbox":
      return [
        {
          Sid: "SweepOutbox",
          Action: ["dynamodb:DeleteItem", "dynamodb:PutItem", "dynamodb:Query"],
          Resource: outbox,
        },
        putEvents,
      ];
    // `ctx.enqueue`, and deliveries after their commit.
    case "enqueue":
      return [
        {
          Sid: "Enqueue",
          Action: ["sqs:SendMessage"],
          Resource: queues.filter(({ kind }) => kind === "jobs").map(place.queueArn),
        },
      ];
    // Lambda's poller. Failed messages are hidden for a delay. Messages that can never succeed go
    // to the dead-letter queue.
    case "consume":
      return [
        {
          Sid: "Consume",
          Action: [
            "sqs:ChangeMessageVisibility",
            "sqs:DeleteMessage",
            "sqs:GetQueueAttributes",
            "sqs:ReceiveMessage",
          ],
          Resource: queues.map(place.queueArn),
        },
        {
          Sid: "DeadLetter",
          Action: ["sqs:GetQueueUrl", "sqs:SendMessage"],
          Resource: queues.map(place.deadQueueArn),
        },
      ];
    // Lambda's poller.
    case "read-stream":
      return [
        {
          Sid: "ReadStream",
          Action: [
            "dynamodb:DescribeStream",
            "dynamodb:GetRecords",
            "dynamodb:GetShardIterator",
            "dynamodb:ListStreams",
          ],
          Resource: [place.streamArn],
        },
      ];
  }
}

const reading = ["dynamodb:BatchGetItem", "dynamodb:GetItem", "dynamodb:Query"];
/** A transaction needs the permissions of all its items' actions. */
const checking = ["dynamodb:ConditionCheckItem", ...reading];
const writing = [
  "dynamodb:BatchWriteItem",
  "dynamodb:DeleteItem",
  "dynamodb:PutItem",
  "dynamodb:UpdateItem",
  ...checking,
];
/** Allowed actions for each kind of access to a table. */
export const reachActions: Readonly<
  Record<Reach, { readonly Sid: string; readonly Action: readonly string[] }>
> = {
  query: { Sid: "ReadTables", Action: reading },
  check: { Sid: "CheckTables", Action: checking },
  write: { Sid: "WriteTables", Action: writing },
};

/**
 * Returns the statements for the tables of features: one for each kind of access, and one for
 * indexes, which only support queries. With isolation, the tenant role has access to rows of
 * tenants instead.
 */
function tableStatements(
  { tables: reachable }: NeededFunction,
  { isIsolated }: Needs,
  place: DataPlace,
): Statement[] {
  const tables = isIsolated ? reachable.filter(({ table }) => table.tenant !== true) : reachable;
  const indexes = tables.flatMap(({ table }) =>
    table.indexes.map(({ name }) => place.indexArn(table, name)),
  );
  return [
    ...(["query", "check", "write"] as const).flatMap((reach) => {
      const reached = tables.filter((one) => one.reach === reach);
      return reached.length === 0
        ? []
        : [{ ...reachActions[reach], Resource: reached.map(({ table }) => place.tableArn(table)) }];
    }),
    ...(indexes.length === 0
      ? []
      : [{ Sid: "QueryIndexes", Action: ["dynamodb:Query"], Resource: indexes }]),
  ];
}

const allowed = ({ Sid, Action, Resource }: Statement): Value => ({
  Sid,
  Effect: "Allow",
  Action,
  Resource,
});

/** Allows use of the customer-managed key that encrypts tables and queues. */
export const useCustomerKey = withCustomerKey(
  allowed({
    Sid: "UseCustomerKey",
    Action: ["kms:Decrypt", "kms:GenerateDataKey"],
    Resource: [ref("CustomerKeyArn")],
  }),
);
