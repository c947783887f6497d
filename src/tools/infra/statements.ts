import { configTable, keptEventsTable, onceTable, outboxTable } from "../../app/features/table.ts";
import type { Reach } from "../../app/registry/reach.ts";
import { arnOf, type DataPlace } from "./data-place.ts";
import type { Duty, NeededFunction } from "./functions.ts";
import { type Needs, queuesOf } from "./needs.ts";
import { withCustomerKey } from "./parameters.ts";
import { attributeOf, ref, type Value } from "./template.ts";

/** A statement of a role; its `Sid` says what it is for. No action and no resource is `*`. */
interface Statement {
  readonly Sid: string;
  readonly Action: readonly string[];
  readonly Resource: readonly Value[];
}

/** What a function's role allows: what its work needs, by the least of each service's actions. */
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

/** The overrides and the key ring: read when a function starts, the ring also later for a key that is new. */
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
            Resource: [parameter(overrides), parameter(`${overrides}/*`)], // IAM takes either for what is below a path
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
    // The operators' routes: a row and its history are written in one transaction, history is a query. Keys are rotated by a
    // person's role.
    case "operate-config":
      return [
        { Sid: "OperateConfig", Action: ["dynamodb:PutItem", "dynamodb:Query"], Resource: config },
      ];
    // The first write after a rename supersedes the row of the former key, or checks that there is none.
    case "rename-config":
      return [
        {
          Sid: "RenameConfig",
          Action: ["dynamodb:ConditionCheckItem", "dynamodb:UpdateItem"],
          Resource: config,
        },
      ];
    // Taken and completed (PutItem), looked at for a duplicate (GetItem), renewed for what takes long (UpdateItem), released
    // for what failed (DeleteItem).
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
    // `ctx.step`, and an answer with cookies: a transaction that checks the claim without completing it.
    case "steps":
      return [
        {
          Sid: "Step",
          Action: ["dynamodb:ConditionCheckItem"],
          Resource: [place.tableArn(onceTable)],
        },
      ];
    // `ctx.publish`: an event is written with the effects, and removed once it is dispatched.
    case "publish":
      return [
        { Sid: "Publish", Action: ["dynamodb:DeleteItem", "dynamodb:PutItem"], Resource: outbox },
        putEvents,
      ];
    // An event is kept with the effects, its day is looked at and noted before; a projection notes its version and its marks.
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
    // A delivery, or a job that is due later, is written with the effects; it is removed once it is sent, or by `ctx.unschedule`.
    case "later":
      return [
        { Sid: "Publish", Action: ["dynamodb:DeleteItem", "dynamodb:PutItem"], Resource: outbox },
      ];
    // Jobs that are due are read, marked (UpdateItem), sent and removed, or set aside (PutItem) where a row is none.
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
    // What is left is read, and removed once it is dispatched, or set aside (PutItem) where the bus refuses it for good.
    case "sweep-outbox":
      return [
        {
          Sid: "SweepOutbox",
          Action: ["dynamodb:DeleteItem", "dynamodb:PutItem", "dynamodb:Query"],
          Resource: outbox,
        },
        putEvents,
      ];
    // `ctx.enqueue`, and deliveries once they are committed.
    case "enqueue":
      return [
        {
          Sid: "Enqueue",
          Action: ["sqs:SendMessage"],
          Resource: queues.filter(({ kind }) => kind === "jobs").map(place.queueArn),
        },
      ];
    // Lambda's poller. What fails is hidden for a while; what can never be done goes to the dead-letter queue.
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
/** A transaction needs the actions of its items. */
const checking = ["dynamodb:ConditionCheckItem", ...reading];
const writing = [
  "dynamodb:BatchWriteItem",
  "dynamodb:DeleteItem",
  "dynamodb:PutItem",
  "dynamodb:UpdateItem",
  ...checking,
];
/** What may be done with a table that is reached in a way. */
export const reachActions: Readonly<
  Record<Reach, { readonly Sid: string; readonly Action: readonly string[] }>
> = {
  query: { Sid: "ReadTables", Action: reading },
  check: { Sid: "CheckTables", Action: checking },
  write: { Sid: "WriteTables", Action: writing },
};

/**
 * The tables of features: one statement for each way to reach them, and one for indexes, which can only be queried. Rows of tenants are
 * another role's where there is a wall in the account.
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

/** Tables and queues that are encrypted with a customer's key are used with it. */
export const useCustomerKey = withCustomerKey(
  allowed({
    Sid: "UseCustomerKey",
    Action: ["kms:Decrypt", "kms:GenerateDataKey"],
    Resource: [ref("CustomerKeyArn")],
  }),
);
