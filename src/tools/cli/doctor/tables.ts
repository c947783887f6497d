import {
  DescribeContinuousBackupsCommand,
  DescribeTableCommand,
  DescribeTimeToLiveCommand,
  type DynamoDBClient,
  type TableDescription,
} from "@aws-sdk/client-dynamodb";
import type { IndexDeclaration } from "../../../app/handlers/table.ts";
import {
  attributeDefinitions,
  indexDescription,
  indexFault,
  keySchema,
  shownKeys,
} from "../../../aws/tables/tables.ts";
import type { NeededTable } from "../../infra/needs.ts";
import {
  after,
  asked,
  type Check,
  check,
  doubtful,
  fine,
  type Outcome,
  unchecked,
  unlessMissing,
  wrong,
} from "./outcome.ts";
import type { Place, PlaceOf } from "./place.ts";
import { regionRule, regionsOutcome } from "./regions.ts";

/** `aws` adds the table's name to each command. */
interface TableAt extends PlaceOf<DynamoDBClient> {
  readonly table: NeededTable;
}

type Look = (described: TableDescription) => Outcome | Promise<Outcome>;

export function tableChecks(place: PlaceOf<DynamoDBClient>, table: NeededTable): Check[] {
  const { tableName, timeToLive, isLasting, stream } = table;
  const rule = regionRule(table.name);
  const aws: Place["aws"] = (action, options) =>
    place.aws(action, { "table-name": tableName, ...options });
  const at: TableAt = { ...place, table, aws };
  const name = `table ${tableName}`;
  const describe = new DescribeTableCommand({ TableName: tableName });
  const find = asked(() =>
    unlessMissing(async () => (await place.send(describe, tableName)).Table),
  );
  const then = (what: string, look: Look, isNeeded = true): Check[] =>
    isNeeded ? [check(`${name}: ${what}`, () => after({ name, find }, look))] : [];
  return [
    check(name, async () => tableOutcome(at, await find())),
    ...table.indexes.flatMap((index) =>
      then(`index ${index.name}`, (found) => indexOutcome(at, index, found)),
    ),
    ...(timeToLive === undefined
      ? []
      : then("time to live", () => timeToLiveOutcome(at, timeToLive))),
    ...then("point-in-time recovery", () => recoveryOutcome(at), isLasting),
    ...then("deletion protection", (found) => protectionOutcome(at, found), isLasting),
    ...then("stream", (found) => streamOutcome(at, found), stream !== undefined),
    ...(rule === undefined
      ? []
      : then("Regions", async (found) =>
          regionsOutcome(rule, await place.client.config.region(), found, anotherTable(at)),
        )),
  ];
}

function tableOutcome(at: TableAt, found: TableDescription | undefined) {
  const { table, aws } = at;
  if (found === undefined) return wrong("it does not exist", createCommand(at));
  const { AttributeDefinitions: definitions, KeySchema: schema = [] } = found;
  const typeOf = (name: string | undefined) =>
    definitions?.find(({ AttributeName }) => AttributeName === name)?.AttributeType;
  const has = schema.map(({ AttributeName: key }) => `${key} (${typeOf(key)})`).join(", ");
  const wanted = shownKeys(table);
  if (has !== wanted)
    return wrong(
      `its keys are ${has}, not ${wanted}; keys cannot be changed, so create another table`,
      ...anotherTable(at),
    );
  if (found.TableStatus !== "ACTIVE")
    return wrong(`it is ${found.TableStatus}`, aws("wait table-exists", {}));
  return fine(`active, with the keys ${wanted}`);
}

function anotherTable(at: TableAt) {
  const other = `${at.table.tableName}-2`;
  return [createCommand(at, other), `export ${at.table.variable}=${other}`];
}

function createCommand({ table, aws }: TableAt, tableName = table.tableName) {
  const { indexes, isLasting, stream } = table;
  return aws("create-table", {
    "table-name": tableName,
    "billing-mode": "PAY_PER_REQUEST",
    "attribute-definitions": attributeDefinitions(table, ...indexes).map(shorthand),
    "key-schema": keySchema(table).map(shorthand),
    "global-secondary-indexes":
      indexes.length === 0 ? undefined : JSON.stringify(indexes.map(indexDescription)),
    "deletion-protection-enabled": isLasting || undefined,
    "stream-specification": stream && `StreamEnabled=true,StreamViewType=${stream}`,
  });
}

/** The AWS CLI's shorthand syntax: `Key=value,Key=value`. */
function shorthand(members: object) {
  return Object.entries(members)
    .map(([name, value]) => `${name}=${value}`)
    .join(",");
}

function indexOutcome(
  { table, aws }: TableAt,
  index: IndexDeclaration,
  described: TableDescription,
) {
  const fault = indexFault(index, table, described);
  if (fault === undefined) return fine(`active, with the keys ${shownKeys(index)}`);
  const { kind, message } = fault;
  if (kind === "missing") {
    const update = aws("update-table", {
      "attribute-definitions": attributeDefinitions(table, index).map(shorthand),
      "global-secondary-index-updates": JSON.stringify([{ Create: indexDescription(index) }]),
    });
    return wrong(message, update);
  }
  if (kind === "status") {
    const query = `Table.GlobalSecondaryIndexes[?IndexName=='${index.name}'].[IndexStatus,Backfilling]`;
    return wrong(message, aws("describe-table", { query }));
  }
  if (kind === "extra") return doubtful(`${message}: that is paid for with every write`);
  return wrong(`${message}; an index cannot be changed, so declare it under another name`);
}

async function timeToLiveOutcome(
  { table: { tableName: TableName }, send, aws }: TableAt,
  attribute: string,
) {
  const command = new DescribeTimeToLiveCommand({ TableName });
  const { TimeToLiveDescription: { TimeToLiveStatus = "DISABLED", AttributeName } = {} } =
    await send(command, TableName);
  const set = (Enabled: boolean, name: string | undefined) =>
    aws("update-time-to-live", {
      "time-to-live-specification": shorthand({ Enabled, AttributeName: name }),
    });
  const isOn = ["ENABLED", "ENABLING"].includes(TimeToLiveStatus);
  if (isOn && AttributeName === attribute) return fine(`by ${attribute}`);
  if (!isOn)
    return wrong(
      `it is ${TimeToLiveStatus}, so expired items are never deleted`,
      set(true, attribute),
    );
  return wrong(
    `it is by ${AttributeName}, not ${attribute}; AWS lets an hour pass between the two`,
    set(false, AttributeName),
    set(true, attribute),
  );
}

async function recoveryOutcome({ table, send, aws }: TableAt) {
  const { tableName: TableName } = table;
  const command = new DescribeContinuousBackupsCommand({ TableName });
  const { ContinuousBackupsDescription: found } = await send(command, TableName);
  if (found?.PointInTimeRecoveryDescription?.PointInTimeRecoveryStatus === "ENABLED")
    return fine("on");
  return doubtful(
    "it is off: rows that are overwritten or deleted by mistake are lost",
    aws("update-continuous-backups", {
      "point-in-time-recovery-specification": "PointInTimeRecoveryEnabled=true",
    }),
  );
}

function protectionOutcome(
  { isEmulator, aws }: TableAt,
  { DeletionProtectionEnabled: isOn }: TableDescription,
) {
  if (isOn === true) return fine("on");
  if (isOn === undefined && isEmulator) return unchecked("the emulator does not know it");
  return doubtful(
    "it is off: a bad deployment can delete what all tenants have in it",
    aws("update-table", { "deletion-protection-enabled": true }),
  );
}

function streamOutcome(
  { isEmulator, aws }: TableAt,
  { StreamSpecification: stream }: TableDescription,
) {
  const set = (specification: string) =>
    aws("update-table", { "stream-specification": specification });
  const on = set("StreamEnabled=true,StreamViewType=KEYS_ONLY");
  if (stream?.StreamEnabled === true) {
    if (stream.StreamViewType === "KEYS_ONLY") return fine("with the keys only");
    const message = `it carries ${stream.StreamViewType}: its readers see all events, and keys are enough`;
    return doubtful(message, set("StreamEnabled=false"), on);
  }
  if (isEmulator)
    return unchecked("the table has no stream, and not every emulator supports streams");
  return doubtful(
    "the table has no stream: in Lambda, only the sweep dispatches leftover events; a container works without one",
    on,
  );
}
