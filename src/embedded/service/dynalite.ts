import { createRequire } from "node:module";
import { cacheExpressions, type ExpressionParser } from "./expression-cache.ts";
import {
  type Input,
  invalidMember,
  ServiceError,
  serializationError,
  unknownOperation,
} from "./service.ts";

export type Item = Readonly<Record<string, Input>>;

export interface Table {
  readonly TableName: string;
  readonly TableId: string;
  readonly TableArn: string;
  readonly TableStatus: string;
  readonly KeySchema: KeySchema;
  readonly AttributeDefinitions: readonly AttributeDefinition[];
  readonly LocalSecondaryIndexes?: readonly TableIndex[];
  readonly GlobalSecondaryIndexes?: readonly TableIndex[];
}

export interface TableIndex {
  readonly IndexName: string;
  readonly KeySchema: KeySchema;
  readonly Projection: object;
}

export type AttributeDefinition = Readonly<Record<"AttributeName" | "AttributeType", string>>;

type KeySchema = readonly { readonly AttributeName: string }[];

export type Addressed = { readonly item: Item } | { readonly key: Item };

export type Change =
  | { readonly type: "put"; readonly key: string; readonly value: unknown }
  | { readonly type: "del"; readonly key: string };

type Callback<Result = void> = (error: unknown, result?: Result) => void;

export interface Section {
  lock(key: string, work: (release: (done: Callback) => Callback) => void): void;
  get(key: string, done: Callback<Item>): void;
  put(key: string, value: Item, done: Callback): void;
  del(key: string, done: Callback): void;
}

export interface Store {
  readonly options: object;
  readonly db: Level;
  readonly tableDb: object;
  getTable(name: string, checkStatus: boolean | Callback<Table>, done?: Callback<Table>): void;
  getItemDb(table: string): Section;
  getIndexDb(type: string, table: string, index: string): Section;
}

type Range = Readonly<Record<"gte" | "lt", string>>;

interface Level {
  open(): Promise<void>;
  close(): Promise<void>;
  get(key: string): Promise<unknown>;
  batch(changes: readonly Change[]): Promise<void>;
  clear(range: Range): Promise<void>;
  iterator(range: Range & { readonly limit?: number }): AsyncIterable<[string, unknown]>;
}

type Action = (store: Store, input: object, done: Callback<Record<string, unknown>>) => void;

interface Database {
  create(options: object): Store;
  validateKey(key: Item, table: Table): Error | null | undefined;
  validateItem(item: Item, table: Table): Error | null | undefined;
  createKey(item: Item, table: Table): string;
  itemSize(item: Item): number;
  getIndexActions(
    indexes: readonly object[],
    before: undefined,
    item: Item,
    table: Table,
  ): { puts: readonly { readonly index: string; readonly key: string; readonly item: Item }[] };
}

interface Validations {
  checkTypes(input: object, types: object): object;
  checkValidations(input: object, types: object, custom: unknown, store: Store): void;
}

const operations = [
  ["read", /^(GetItem|BatchGetItem|Query|Scan|DescribeTable|ListTables|ListTagsOfResource)$/],
  ["write", /^(PutItem|UpdateItem|DeleteItem|BatchWriteItem)$/],
  ["table", /^(CreateTable|UpdateTable|DeleteTable|TagResource|UntagResource)$/],
] as const;

export type Dynalite = Awaited<ReturnType<typeof openDynalite>>;

/**
 * Without its HTTP server, so that a write can run against a write batch.
 * @throws Error if dynalite is missing or stores items in another layout than version 4.0.
 */
export async function openDynalite(
  path?: string,
  load: (id: string) => unknown = createRequire(import.meta.url),
) {
  // The modules are untyped. The contract suite verifies the types above.
  const part = (id: string) => requireDynalite(load, `dynalite/${id}`);
  const database = part("db") as Database;
  const validations = part("validations") as Validations;
  for (const kind of ["condition", "update", "projection"])
    cacheExpressions(part(`db/${kind}Parser`) as ExpressionParser);

  const options = { createTableMs: 0, updateTableMs: 0, deleteTableMs: 0 };
  const store = database.create(path === undefined ? options : { ...options, path });
  await store.db.open();
  await checkLayout(store);
  const running = new Set<(error: unknown) => void>();

  return {
    store,
    kindOf,
    /** Validates an input and parses its expressions. The result is for a single run. */
    prepare(operation: string, input: object): object {
      const rules = part(`validations/${lowerFirst(operation)}`);
      const { types, custom } = rules as { readonly types: object; readonly custom?: unknown };
      try {
        const checked = validations.checkTypes({ ...input }, types);
        validations.checkValidations(checked, types, custom, store);
        return checked;
      } catch (error) {
        // dynalite fails, for example, if a structure is null.
        const translated = translate(error);
        throw translated instanceof ServiceError
          ? translated
          : serializationError("A member of the request is null or of a wrong type");
      }
    },
    run: (operation: string, prepared: object, on = store) =>
      new Promise<Record<string, unknown>>((resolve, reject) => {
        running.add(reject);
        const act = part(`actions/${lowerFirst(operation)}`) as Action;
        act(on, prepared, (error, result = {}) => {
          running.delete(reject);
          if (error) reject(translate(error));
          else resolve(result);
        });
      }),
    table: (name: string) =>
      new Promise<Table>((resolve, reject) => {
        store.getTable(name, (error, table) =>
          table === undefined ? reject(translate(error)) : resolve(table),
        );
      }),
    placeOf(table: Table, of: Addressed): string {
      const invalid =
        "item" in of ? database.validateItem(of.item, table) : database.validateKey(of.key, table);
      if (invalid) throw translate(invalid);
      return database.createKey("item" in of ? of.item : of.key, table);
    },
    itemAt: (table: string, place: string) =>
      new Promise<Item | undefined>((resolve, reject) => {
        store.getItemDb(table).get(place, (error, item) => (error ? reject(error) : resolve(item)));
      }),
    /** Empty if the item lacks a key of the index. */
    indexEntries: (table: Table, index: object, item: Item): readonly Change[] =>
      database.getIndexActions([index], undefined, item, table).puts.map((put) => ({
        type: "put",
        key: indexPrefix("Global", table.TableName, put.index) + put.key,
        value: put.item,
      })),
    sizeOf: (item: Item) => database.itemSize(item),
    /** Rejects all running operations: the exception named none. */
    abandon(error: unknown) {
      for (const fail of running) fail(error);
      running.clear();
    },
  };
}

export function itemPrefix(table: string) {
  return `item-${table}~`;
}

export function indexPrefix(type: string, table: string, index = "") {
  return `index-${type.toLowerCase()}~${table}~${index === "" ? "" : `${index}~`}`;
}

export function rangeOf(prefix: string): Range {
  return { gte: prefix, lt: `${prefix}\u{10FFFF}` };
}

export async function namesUnder({ db }: Store, prefix: string) {
  const names: string[] = [];
  for await (const [key] of db.iterator(rangeOf(prefix))) names.push(key.slice(prefix.length));
  return names;
}

function requireDynalite(load: (id: string) => unknown, id: string): unknown {
  try {
    return load(id);
  } catch (error) {
    throw new Error(
      "keelson/embedded: dynalite, an optional dependency, cannot be loaded; npm i -D dynalite@4",
      { cause: error },
    );
  }
}

function kindOf(operation: string) {
  for (const [kind, names] of operations) if (names.test(operation)) return kind;
  throw unknownOperation(operation);
}

export function lowerFirst(name: string) {
  return name.charAt(0).toLowerCase() + name.slice(1);
}

/** Errors without a status and an AWS body stay unchanged. */
function translate(error: unknown): unknown {
  if (!(error instanceof Error) || !("statusCode" in error) || !("body" in error)) return error;
  const { __type, message, Message } = error.body as Record<string, unknown>; // set together with statusCode
  return new ServiceError(String(__type), String(message ?? Message));
}

/** dynalite has to find items under the keys that atomic-writes.ts writes. */
async function checkLayout(store: Store) {
  const sections: [Section, string][] = [
    [store.getItemDb("layout"), `${itemPrefix("layout")}k`],
    [store.getIndexDb("Global", "layout", "i"), `${indexPrefix("Global", "layout", "i")}k`],
  ];
  for (const [section, key] of sections) {
    await store.db.batch([{ type: "put", key, value: {} }]);
    const found = await new Promise((resolve) =>
      section.get("k", (_error, value) => resolve(value !== undefined)),
    );
    await store.db.batch([{ type: "del", key }]);
    if (!found)
      throw new Error(
        "keelson/embedded: this version of dynalite stores items in another way; npm i -D dynalite@4.0",
      );
  }
}

export type ItemOperation = ReturnType<typeof prepareOperation>;

/** dynalite lacks `ReturnValuesOnConditionCheckFailure`. */
export function prepareOperation(
  dynalite: Dynalite,
  operation: "PutItem" | "UpdateItem" | "DeleteItem",
  input: Input,
) {
  const onFailure = input["ReturnValuesOnConditionCheckFailure"] ?? "NONE";
  if (onFailure !== "ALL_OLD" && onFailure !== "NONE")
    throw invalidMember(
      String(onFailure).slice(0, 100),
      "returnValuesOnConditionCheckFailure",
      "satisfy enum value set: [ALL_OLD, NONE]",
    );
  const prepared = dynalite.prepare(operation, input);
  // prepare has checked the table name, and the item of a put or the key of other writes.
  const { TableName, Item, Key } = prepared as { TableName: string; Item: Item; Key: Item };
  const of: Addressed = operation === "PutItem" ? { item: Item } : { key: Key };
  return { operation, table: TableName, of, returnsItem: onFailure === "ALL_OLD", prepared };
}

export async function itemOnFailure(
  dynalite: Dynalite,
  { table, of, returnsItem }: ItemOperation,
): Promise<{ readonly Item?: Item }> {
  if (!returnsItem) return {};
  const item = await dynalite.itemAt(table, dynalite.placeOf(await dynalite.table(table), of));
  return item === undefined ? {} : { Item: item };
}

export async function existingTable(dynalite: Dynalite, { TableName }: Input): Promise<Table> {
  const checked = dynalite.prepare("DescribeTable", { TableName }) as { TableName: string }; // prepare checks the name
  return dynalite.table(checked.TableName);
}

export function isConditionFailure(error: unknown): error is ServiceError {
  return error instanceof ServiceError && error.type.endsWith("#ConditionalCheckFailedException");
}
