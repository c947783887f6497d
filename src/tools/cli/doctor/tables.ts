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
  type Keyed,
  keySchema,
  shownKeys,
} from "../../../aws/tables/table-indexes.ts";
import type { NeededTable } from "../../infra/needs.ts";
import { failureName } from "./call-error.ts";
import {
  asked,
  type Check,
  doubtful,
  fine,
  following,
  type Outcome,
  unchecked,
  wrong,
} from "./outcome.ts";
import type { Place } from "./place.ts";

export function tableChecks(client: DynamoDBClient, place: Place, table: NeededTable): Check[] {
  const { tableName, timeToLive } = table;
  const describe = asked(async () => {
    try {
      const command = new DescribeTableCommand({ TableName: tableName });
      return (
        await place.call("DescribeTable", tableName, () =>
          client.send(command, { abortSignal: place.signal }),
        )
      ).Table;
    } catch (error) {
      if (failureName(error) === "ResourceNotFoundException") return undefined;
      throw error;
    }
  });
  const name = `table ${tableName}`;
  const then = (what: string, look: (described: TableDescription) => Outcome | Promise<Outcome>) =>
    following(`${name}: ${what}`, { name, find: describe }, look);
  return [
    { name, run: async () => tableOutcome(place, table, await describe()) },
    ...table.indexes.map((index) =>
      then(`index ${index.name}`, (described) => indexOutcome(place, table, index, described)),
    ),
    ...(timeToLive === undefined
      ? []
      : [then("time to live", () => timeToLiveOutcome(client, place, tableName, timeToLive))]),
    ...(table.isLasting
      ? [
          then("point-in-time recovery", () => recoveryOutcome(client, place, tableName)),
          then("deletion protection", (described) =>
            protectionOutcome(place, tableName, described),
          ),
        ]
      : []),
    ...(table.stream === undefined
      ? []
      : [then("stream", (described) => streamOutcome(place, tableName, described))]),
  ];
}

function tableOutcome(
  place: Place,
  table: NeededTable,
  found: TableDescription | undefined,
): Outcome {
  const { tableName } = table;
  if (found === undefined)
    return wrong("it does not exist", createCommand(place, table, tableName));
  const types = new Map(
    found.AttributeDefinitions?.map(({ AttributeName, AttributeType }) => [
      AttributeName,
      AttributeType,
    ]),
  );
  const has = (found.KeySchema ?? [])
    .map(({ AttributeName = "" }) => `${AttributeName} (${types.get(AttributeName)})`)
    .join(", ");
  const wanted = shownKeys(table);
  if (has !== wanted) {
    const other = `${tableName}-2`;
    return wrong(
      `its keys are ${has}, not ${wanted}; keys cannot be changed, so create another table`,
      createCommand(place, table, other),
      `export ${table.variable}=${other}`,
    );
  }
  if (found.TableStatus !== "ACTIVE") {
    return wrong(
      `it is ${found.TableStatus}`,
      place.aws("wait", "table-exists", "--table-name", tableName),
    );
  }
  return fine(`active, with the keys ${wanted}`);
}

function createCommand(place: Place, table: NeededTable, tableName: string): string {
  const { indexes } = table;
  return place.aws(
    "create-table",
    ...["--table-name", tableName, "--billing-mode", "PAY_PER_REQUEST"],
    ...definitionsOption(table, ...indexes),
    ...[
      "--key-schema",
      ...keySchema(table).map(
        ({ AttributeName, KeyType }) => `AttributeName=${AttributeName},KeyType=${KeyType}`,
      ),
    ],
    ...(indexes.length === 0
      ? []
      : ["--global-secondary-indexes", JSON.stringify(indexes.map(indexDescription))]),
    ...(table.isLasting ? ["--deletion-protection-enabled"] : []),
    ...(table.stream === undefined
      ? []
      : ["--stream-specification", `StreamEnabled=true,StreamViewType=${table.stream}`]),
  );
}

function definitionsOption(...keyed: readonly Keyed[]): string[] {
  const definitions = attributeDefinitions(...keyed).map(
    ({ AttributeName, AttributeType }) =>
      `AttributeName=${AttributeName},AttributeType=${AttributeType}`,
  );
  return ["--attribute-definitions", ...definitions];
}

function indexOutcome(
  place: Place,
  table: NeededTable,
  index: IndexDeclaration,
  described: TableDescription,
): Outcome {
  const { tableName } = table;
  const fault = indexFault(index, table, described);
  if (fault === undefined) return fine(`active, with the keys ${shownKeys(index)}`);
  switch (fault.kind) {
    case "missing": {
      const updates = JSON.stringify([{ Create: indexDescription(index) }]);
      return wrong(
        fault.message,
        place.aws(
          "update-table",
          ...[
            "--table-name",
            tableName,
            ...definitionsOption(table, index),
            "--global-secondary-index-updates",
            updates,
          ],
        ),
      );
    }
    case "status": {
      const query = `Table.GlobalSecondaryIndexes[?IndexName=='${index.name}'].[IndexStatus,Backfilling]`;
      return wrong(
        fault.message,
        place.aws("describe-table", "--table-name", tableName, "--query", query),
      );
    }
    case "extra":
      return doubtful(`${fault.message}: that is paid for with every write`);
    default:
      return wrong(
        `${fault.message}; an index cannot be changed, so declare it under another name`,
      );
  }
}

async function timeToLiveOutcome(
  client: DynamoDBClient,
  place: Place,
  tableName: string,
  attribute: string,
): Promise<Outcome> {
  const command = new DescribeTimeToLiveCommand({ TableName: tableName });
  const { TimeToLiveDescription: { TimeToLiveStatus = "DISABLED", AttributeName } = {} } =
    await place.call("DescribeTimeToLive", tableName, () =>
      client.send(command, { abortSignal: place.signal }),
    );
  const set = (Enabled: boolean, name: string) =>
    place.aws(
      "update-time-to-live",
      ...[
        "--table-name",
        tableName,
        "--time-to-live-specification",
        `Enabled=${Enabled},AttributeName=${name}`,
      ],
    );
  const isOn = ["ENABLED", "ENABLING"].includes(TimeToLiveStatus);
  if (isOn && AttributeName === attribute) return fine(`by ${attribute}`);
  if (!isOn)
    return wrong(
      `it is ${TimeToLiveStatus}, so expired items are never deleted`,
      set(true, attribute),
    );
  return wrong(
    `it is by ${AttributeName}, not ${attribute}; AWS lets an hour pass between the two`,
    set(false, String(AttributeName)),
    set(true, attribute),
  );
}

async function recoveryOutcome(
  client: DynamoDBClient,
  place: Place,
  tableName: string,
): Promise<Outcome> {
  const command = new DescribeContinuousBackupsCommand({ TableName: tableName });
  const { ContinuousBackupsDescription: found } = await place.call(
    "DescribeContinuousBackups",
    tableName,
    () => client.send(command, { abortSignal: place.signal }),
  );
  if (found?.PointInTimeRecoveryDescription?.PointInTimeRecoveryStatus === "ENABLED")
    return fine("on");
  return doubtful(
    "it is off: what is overwritten or deleted by mistake is lost",
    place.aws(
      "update-continuous-backups",
      ...[
        "--table-name",
        tableName,
        "--point-in-time-recovery-specification",
        "PointInTimeRecoveryEnabled=true",
      ],
    ),
  );
}

function protectionOutcome(
  place: Place,
  tableName: string,
  { DeletionProtectionEnabled: isOn }: TableDescription,
): Outcome {
  if (isOn === true) return fine("on");
  if (isOn === undefined && place.isEmulator) return unchecked("the emulator does not know it");
  return doubtful(
    "it is off: a bad deployment can delete what all tenants have in it",
    place.aws("update-table", "--table-name", tableName, "--deletion-protection-enabled"),
  );
}

function streamOutcome(
  place: Place,
  tableName: string,
  { StreamSpecification: stream }: TableDescription,
): Outcome {
  const set = (specification: string) =>
    place.aws("update-table", "--table-name", tableName, "--stream-specification", specification);
  const on = set("StreamEnabled=true,StreamViewType=KEYS_ONLY");
  if (stream?.StreamEnabled === true) {
    if (stream.StreamViewType === "KEYS_ONLY") return fine("with the keys only");
    const message = `it carries ${stream.StreamViewType}: its readers see all events, and keys are enough`;
    return doubtful(message, set("StreamEnabled=false"), on);
  }
  if (place.isEmulator) return unchecked("there is none, and not every emulator has streams");
  return doubtful(
    "there is none: in Lambda only the sweep dispatches leftover events; a container needs no stream",
    on,
  );
}
