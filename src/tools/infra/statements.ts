import { configTable, keptEventsTable, onceTable, outboxTable } from "../../app/handlers/table.ts";
import type { Reach } from "../../app/registry/reach.ts";
import { arnOf, type DataPlace } from "./data-place.ts";
import type { Duty, NeededFunction } from "./functions.ts";
import { type Needs, queuesOf } from "./needs.ts";
import { withCustomerKey } from "./parameters.ts";
import { attributeOf, ref, type Value } from "./template.ts";

/** No action or resource is `*`. */
interface Statement {
  readonly Sid: string;
  readonly Action: readonly string[];
  readonly Resource: readonly Value[];
}

export function statementsOf(
  needed: NeededFunction,
  needs: Needs,
  place: DataPlace,
  logGroup: string,
): Value[] {
  const queues = queuesOf(needs);
  const statements = [
    ...parameterStatements(needs),
    ...[...needed.duties].flatMap((duty) => dutyStatements[duty](place, queues)),
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

/** Read when a function starts; the key ring again when a new key appears. */
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

const dutyStatements: Readonly<
  Record<Duty, (place: DataPlace, queues: ReturnType<typeof queuesOf>) => Statement[]>
> = {
  "read-config": (place) => [
    {
      Sid: "ReadConfig",
      Action: ["dynamodb:BatchGetItem"],
      Resource: [place.tableArn(configTable)],
    },
  ],
  // Operators' routes. One transaction writes a row with its history, and a query reads the
  // history. Keys are rotated with a person's role.
  "operate-config": (place) => [
    {
      Sid: "OperateConfig",
      Action: ["dynamodb:PutItem", "dynamodb:Query"],
      Resource: [place.tableArn(configTable)],
    },
  ],
  // The first write after a rename supersedes the row of the former key, or checks that it does
  // not exist.
  "rename-config": (place) => [
    {
      Sid: "RenameConfig",
      Action: ["dynamodb:ConditionCheckItem", "dynamodb:UpdateItem"],
      Resource: [place.tableArn(configTable)],
    },
  ],
  // Takes and completes a claim (PutItem), reads it for a duplicate (GetItem), renews it during
  // long runs (UpdateItem), and releases it after a failure (DeleteItem).
  claim: (place) => [
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
  ],
  // `ctx.step`, and responses with cookies: a transaction checks the claim without completing it.
  steps: (place) => [
    {
      Sid: "Step",
      Action: ["dynamodb:ConditionCheckItem"],
      Resource: [place.tableArn(onceTable)],
    },
  ],
  // `ctx.publish`: the event is written with the effects and deleted after dispatch.
  publish: (place) => [
    {
      Sid: "Publish",
      Action: ["dynamodb:DeleteItem", "dynamodb:PutItem"],
      Resource: [place.tableArn(outboxTable)],
    },
    putEvents(place),
  ],
  // An event is stored with the effects, after its day has been checked and recorded. A
  // projection records its version and marks the events that it has counted.
  "keep-events": (place) => [
    {
      Sid: "KeepEvents",
      Action: ["dynamodb:BatchGetItem", "dynamodb:PutItem"],
      Resource: [place.tableArn(keptEventsTable)],
    },
  ],
  // `ctx.events`, and the version of a projection.
  "read-events": (place) => [
    {
      Sid: "ReadEvents",
      Action: ["dynamodb:GetItem", "dynamodb:Query"],
      Resource: [place.tableArn(keptEventsTable)],
    },
  ],
  // A delivery, or a job that is due later, is written with the effects. It is deleted after it
  // is sent, or by `ctx.unschedule`.
  later: (place) => [
    {
      Sid: "Publish",
      Action: ["dynamodb:DeleteItem", "dynamodb:PutItem"],
      Resource: [place.tableArn(outboxTable)],
    },
  ],
  // Due jobs are read, marked (UpdateItem), sent and deleted. An invalid row is set aside
  // (PutItem).
  "send-due": (place, queues) => [
    sweepOutbox(place),
    { Sid: "MarkDue", Action: ["dynamodb:UpdateItem"], Resource: [place.tableArn(outboxTable)] },
    ...dutyStatements.enqueue(place, queues),
  ],
  // Remaining events are read, and deleted after dispatch, or set aside (PutItem) if the bus
  // rejects them permanently.
  "sweep-outbox": (place) => [sweepOutbox(place), putEvents(place)],
  // `ctx.enqueue`, and deliveries after their commit.
  enqueue: (place, queues) => [
    {
      Sid: "Enqueue",
      Action: ["sqs:SendMessage"],
      Resource: queues.filter(({ kind }) => kind === "jobs").map(place.queueArn),
    },
  ],
  consume: (place, queues) => [
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
  ],
  // Lambda's poller.
  "read-stream": (place) => [
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
  ],
};

const sweepOutbox = (place: DataPlace): Statement => ({
  Sid: "SweepOutbox",
  Action: ["dynamodb:DeleteItem", "dynamodb:PutItem", "dynamodb:Query"],
  Resource: [place.tableArn(outboxTable)],
});

const putEvents = (place: DataPlace): Statement => ({
  Sid: "PutEvents",
  Action: ["events:PutEvents"],
  Resource: [place.busArn],
});

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
export const reachActions: Readonly<
  Record<Reach, { readonly Sid: string; readonly Action: readonly string[] }>
> = {
  query: { Sid: "ReadTables", Action: reading },
  check: { Sid: "CheckTables", Action: checking },
  write: { Sid: "WriteTables", Action: writing },
};

/**
 * Indexes only support queries. With isolation, the tenant role reaches rows of tenants instead.
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

export const useCustomerKey = withCustomerKey(
  allowed({
    Sid: "UseCustomerKey",
    Action: ["kms:Decrypt", "kms:GenerateDataKey"],
    Resource: [ref("CustomerKeyArn")],
  }),
);
