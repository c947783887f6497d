import { setTimeout as delay } from "node:timers/promises";
import {
  type AttributeDefinition,
  type Change,
  type Dynalite,
  existingTable,
  type Item,
  indexPrefix,
  itemPrefix,
  namesUnder,
  rangeOf,
  type Table,
  type TableIndex,
} from "../service/dynalite.ts";
import {
  asStructure,
  dynamoDbError,
  type Input,
  missingMember,
  validationError,
} from "../service/service.ts";
import { forgetTimeToLive } from "./time-to-live.ts";

/** Waits until the table is active or gone: dynalite writes late, and may not overlap others. */
export async function changeTable(dynalite: Dynalite, operation: string, prepared: object) {
  const { TableName: name } = prepared as { TableName?: string }; // tag operations name an ARN instead
  if (name === undefined) return dynalite.run(operation, prepared);
  if (operation === "DeleteTable") await dynalite.store.db.batch([forgetTimeToLive(name)]);
  const answer = await dynalite.run(operation, prepared);
  while (isChanging(await tableRecord(dynalite, name))) await delay(1);
  return answer;
}

/** Completes the changes of a killed process: activates tables, or deletes their data. */
export async function settleTables(dynalite: Dynalite) {
  for (const name of await namesUnder(dynalite.store, "table~")) {
    const table = await tableRecord(dynalite, name);
    if (table?.TableStatus === "DELETING") await removeTable(dynalite, name);
    else if (isChanging(table))
      await dynalite.store.db.batch([
        { type: "put", key: `table~${name}`, value: activated(table) },
      ]);
  }
}

async function tableRecord(dynalite: Dynalite, name: string): Promise<Table | undefined> {
  return (await dynalite.store.db.get(`table~${name}`)) as Table | undefined; // dynalite's key and value
}

function isChanging(table: Table | undefined): table is Table {
  return table !== undefined && table.TableStatus !== "ACTIVE";
}

function activated(table: Table) {
  const { GlobalSecondaryIndexes: indexes } = table;
  const active = indexes?.map((index) => ({ ...index, IndexStatus: "ACTIVE" }));
  return { ...table, TableStatus: "ACTIVE", ...(active && { GlobalSecondaryIndexes: active }) };
}

async function removeTable(dynalite: Dynalite, name: string) {
  const indexes = [indexPrefix("Local", name), indexPrefix("Global", name)];
  for (const prefix of [itemPrefix(name), ...indexes, `tag-${name}~`])
    await dynalite.store.db.clear(rangeOf(prefix));
  await dynalite.store.db.batch([{ type: "del", key: `table~${name}` }, forgetTimeToLive(name)]);
}

/** dynalite accepts such an `UpdateTable`, but does not apply it. */
export function changesIndexes(input: Input) {
  return indexUpdates(input).some(
    (update) => update?.["Create"] !== undefined || update?.["Delete"] !== undefined,
  );
}

/** The caller holds the write lock. */
export async function changeIndexes(dynalite: Dynalite, input: Input) {
  const updates = indexUpdates(input);
  const table = await existingTable(dynalite, input);
  if (updates.length > 1)
    throw dynamoDbError(
      "LimitExceededException",
      "Subscriber limit exceeded: Only 1 online index can be created or deleted simultaneously per table",
    );
  const path = "globalSecondaryIndexUpdates.1.member";
  const { Create, Delete } = asStructure(updates[0], path);
  if (Create === undefined)
    return deleteIndex(dynalite, table, asStructure(Delete, `${path}.delete`));
  const create = asStructure(Create, `${path}.create`);
  return createIndex(dynalite, table, create, input["AttributeDefinitions"]);
}

function indexUpdates({
  GlobalSecondaryIndexUpdates: updates,
}: Input): readonly (Input | undefined | null)[] {
  return Array.isArray(updates) ? updates : [];
}

async function createIndex(dynalite: Dynalite, table: Table, create: Input, definitions: unknown) {
  const { TableName, KeySchema, LocalSecondaryIndexes: local } = table;
  const { GlobalSecondaryIndexes: before = [] } = table;
  if (before.some(({ IndexName }) => IndexName === create["IndexName"]))
    throw validationError("Attempting to create an index which already exists");
  // The same rules apply to the indexes of a new table.
  const whole = dynalite.prepare("CreateTable", {
    TableName,
    KeySchema,
    AttributeDefinitions: mergedDefinitions(table, definitions),
    BillingMode: "PAY_PER_REQUEST",
    ...(local && { LocalSecondaryIndexes: local.map(described) }),
    GlobalSecondaryIndexes: [...before.map(described), described(create)],
  }) as Pick<Table, "AttributeDefinitions" | "GlobalSecondaryIndexes">; // prepare returns its input, validated
  const index = {
    ...(whole.GlobalSecondaryIndexes?.at(-1) as TableIndex), // the list ends with the new index
    IndexArn: `${table.TableArn}/index/${create["IndexName"]}`,
    IndexStatus: "ACTIVE",
    IndexSizeBytes: 0,
    ItemCount: 0,
    ProvisionedThroughput: {
      ReadCapacityUnits: 0,
      WriteCapacityUnits: 0,
      NumberOfDecreasesToday: 0,
    },
  };
  const after = usedDefinitions({
    ...table,
    AttributeDefinitions: whole.AttributeDefinitions,
    GlobalSecondaryIndexes: [...before, index],
  });
  const entries: Change[] = [];
  for await (const [, item] of dynalite.store.db.iterator(rangeOf(itemPrefix(TableName)))) {
    entries.push(...entriesOf(dynalite, after, index, item as Item));
  }
  // An interrupted deletion may have left entries.
  await dynalite.store.db.clear(rangeOf(indexPrefix("Global", TableName, index.IndexName)));
  return store(dynalite, after, entries);
}

/**
 * Rejects items whose key has another type. DynamoDB leaves these out; dynalite could not delete
 * their entries later.
 */
function entriesOf(dynalite: Dynalite, table: Table, index: TableIndex, item: Item) {
  for (const { AttributeName: name } of index.KeySchema) {
    const [[type, value] = []] = Object.entries(item[name] ?? {});
    if (type === undefined || value === "") return [];
    const definition = table.AttributeDefinitions.find((one) => one.AttributeName === name);
    const wanted = definition?.AttributeType;
    if (type !== wanted)
      throw validationError(
        `the key ${name} of index ${index.IndexName} is of type ${wanted}, and an item has it as ${type}; rewrite or delete such items first`,
      );
  }
  return dynalite.indexEntries(table, index, item);
}

async function deleteIndex(dynalite: Dynalite, table: Table, { IndexName: name }: Input) {
  const { GlobalSecondaryIndexes: before = [], ...rest } = table;
  const left = before.filter(({ IndexName }) => IndexName !== name);
  if (left.length === before.length)
    throw dynamoDbError("ResourceNotFoundException", "Requested resource not found");
  const after = left.length === 0 ? rest : { ...rest, GlobalSecondaryIndexes: left };
  const answer = await store(dynalite, usedDefinitions(after), []);
  await dynalite.store.db.clear(rangeOf(indexPrefix("Global", table.TableName, String(name))));
  return answer;
}

async function store(dynalite: Dynalite, table: Table, entries: readonly Change[]) {
  const description = { type: "put", key: `table~${table.TableName}`, value: table } as const;
  await dynalite.store.db.batch([...entries, description]);
  return { TableDescription: table };
}

function described({ IndexName, KeySchema, Projection }: Input | TableIndex) {
  return { IndexName, KeySchema, Projection };
}

function mergedDefinitions({ AttributeDefinitions: known }: Table, given: unknown): unknown {
  if (given === undefined) return known;
  if (!Array.isArray(given)) throw missingMember("attributeDefinitions");
  const added = given.filter((definition: Partial<AttributeDefinition> | null) => {
    const same = known.find(({ AttributeName }) => AttributeName === definition?.AttributeName);
    if (same !== undefined && same.AttributeType !== definition?.AttributeType)
      throw validationError(
        `The attribute ${same.AttributeName} is of type ${same.AttributeType} in this table`,
      );
    return same === undefined;
  });
  return [...known, ...added];
}

function usedDefinitions(table: Table): Table {
  const { LocalSecondaryIndexes: local = [], GlobalSecondaryIndexes: global = [] } = table;
  const keys = [table, ...local, ...global].flatMap(({ KeySchema }) => KeySchema);
  const isUsed = ({ AttributeName: name }: AttributeDefinition) =>
    keys.some(({ AttributeName }) => AttributeName === name);
  return { ...table, AttributeDefinitions: table.AttributeDefinitions.filter(isUsed) };
}
