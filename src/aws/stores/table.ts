import type { PutItemCommandInput, UpdateItemCommandInput } from "@aws-sdk/client-dynamodb";
import type {
  QueryCommandInput,
  ScanCommandInput,
  ScanCommandOutput,
  TransactWriteCommand,
  TransactWriteCommandInput,
} from "@aws-sdk/lib-dynamodb";
import { quoted } from "../../base/errors/quoted.ts";
import type { Database } from "../../base/types/database.ts";
import type { Item } from "./claim-item.ts";

type Key = Readonly<Record<string, string>>;
type Input = Omit<QueryCommandInput, "TableName">;
type Condition = Omit<Partial<PutItemCommandInput>, "TableName" | "Item">;

/** Calls of a table. Reads are consistent by default. */
export function tableOf(database: Database, TableName: string) {
  const query = async (input: Input) => {
    const { QueryCommand } = await sdk();
    return database.send(new QueryCommand({ TableName, ConsistentRead: true, ...input }));
  };
  const scan = async (input: Input) => {
    const { ScanCommand } = await sdk();
    return database.send(new ScanCommand({ TableName, ConsistentRead: true, ...input }));
  };
  return {
    get: async (Key: Key) => {
      const { GetCommand } = await sdk();
      const command = new GetCommand({ TableName, Key, ConsistentRead: true });
      return (await database.send(command)).Item;
    },
    /** Resolves to `false` if the condition failed. */
    put: async (Item: Item, condition: Condition = {}) => {
      const { PutItemCommand } = await sdk();
      const command = new PutItemCommand({ TableName, Item, ...condition });
      return (await held(database.send(command))) !== undefined;
    },
    /** Resolves to `undefined` if the condition failed. */
    update: async (Key: Item, change: Omit<UpdateItemCommandInput, "TableName" | "Key">) => {
      const { UpdateItemCommand } = await sdk();
      const command = new UpdateItemCommand({ TableName, Key, ...change });
      return held(database.send(command));
    },
    /** Resolves to `false` if the condition failed. */
    remove: async (Key: Item, condition: Condition = {}) => {
      const { DeleteItemCommand } = await sdk();
      const command = new DeleteItemCommand({ TableName, Key, ...condition });
      return (await held(database.send(command))) !== undefined;
    },
    query,
    queryAll: (input: Input) => pagesOf((start) => query({ ...input, ...start })),
    scan,
    /** @param onPage - called behind each page, with the number of rows read so far. */
    scanAll: (input: Input, onPage?: (scanned: number) => void) =>
      pagesOf((start) => scan({ ...input, ...start }), onPage),
  };
}

export async function* pagesOf(
  read: (start: Pick<ScanCommandInput, "ExclusiveStartKey">) => Promise<ScanCommandOutput>,
  onPage?: (scanned: number) => void,
): AsyncGenerator<ScanCommandOutput> {
  let start: ScanCommandInput["ExclusiveStartKey"];
  let scanned = 0;
  do {
    const page = await read({ ExclusiveStartKey: start });
    yield page;
    scanned += page.ScannedCount ?? 0;
    onPage?.(scanned);
    start = page.LastEvaluatedKey;
  } while (start !== undefined);
}

/** Resolves to `undefined` if the condition of a write failed. */
export async function held<Answer>(write: Promise<Answer>): Promise<Answer | undefined> {
  try {
    return await write;
  } catch (error) {
    if (isNamed(error, "ConditionalCheckFailedException")) return undefined;
    throw error;
  }
}

/**
 * If cancelled, resolves to the error and a code for each item.
 *
 * @param ClientRequestToken - lets the same transaction be sent in several calls. The default is one for each call.
 */
export async function transact(
  database: Database,
  TransactItems: NonNullable<TransactWriteCommandInput["TransactItems"]>,
  ClientRequestToken?: string,
) {
  const { TransactWriteCommand } = await sdk();
  try {
    await database.send(new TransactWriteCommand({ TransactItems, ClientRequestToken }));
    return undefined;
  } catch (error) {
    if (!isNamed(error, "TransactionCanceledException")) throw error;
    const { CancellationReasons: reasons } = error as { readonly CancellationReasons?: unknown }; // safe: the member is optional
    const codes: unknown[] = Array.isArray(reasons) ? reasons.map(({ Code }) => Code) : [];
    return { error, codes };
  }
}

/** Attempts of a transaction that conflicts with another. */
const maxAttempts = 5;

/** Resolves to `false` if a condition failed. */
export async function transactIf(
  database: Database,
  items: Parameters<typeof transact>[1],
): Promise<boolean> {
  for (let attempt = 1; ; attempt += 1) {
    const failed = await transact(database, items);
    if (failed === undefined) return true;
    if (failed.codes.includes("ConditionalCheckFailed")) return false;
    if (!failed.codes.includes("TransactionConflict") || attempt === maxAttempts)
      throw failed.error;
  }
}

/** A command that was only converted. The message is empty, or the reason why the SDK cannot. */
export class NotSentError extends Error {}

/**
 * For a `Date`, `NaN` or an empty set, the SDK throws a plain `Error` before it sends the command; for
 * a `Map` that contains itself, a `RangeError`.
 *
 * @throws TypeError if `error` is such an error: the SDK throws it again when the command stops
 * after its conversion. Also if DynamoDB refuses the items as a whole.
 */
export async function assertStorable(
  database: Database,
  command: TransactWriteCommand,
  error: unknown,
): Promise<void> {
  if (isNamed(error, "ValidationException", "SerializationException"))
    throw new TypeError(`ctx.commit: DynamoDB refuses the items: ${error.message}`, {
      cause: error,
    });
  if (!isNamed(error, "Error", "RangeError")) return;
  const { middlewareStack: stack } = command;
  const toMiddleware = "DocumentMarshall";
  const named =
    <Given, Output>(next: (given: Given) => Promise<Output>) =>
    (given: Given): Promise<Output> =>
      next(given).catch((thrown: unknown) => {
        // Safe cast: the SDK throws only errors.
        throw thrown instanceof NotSentError ? thrown : new NotSentError((thrown as Error).message);
      });
  stack.addRelativeTo(named, { relation: "before", toMiddleware });
  const stopped = () => () => Promise.reject(new NotSentError());
  stack.addRelativeTo(stopped, { relation: "after", toMiddleware });
  const again: unknown = await database.send(command).catch((thrown: unknown) => thrown);
  // Any other error is of the credentials, which the SDK may load first.
  if (again instanceof NotSentError && again.message !== "")
    throw new TypeError(`ctx.commit: the SDK cannot convert an item: ${again.message}`, {
      cause: error,
    });
}

/** Returns a number of a row; NaN for any other value, and for none. */
export function numberIn(value: unknown): number {
  return typeof value === "number" || typeof value === "bigint" ? Number(value) : Number.NaN;
}

/**
 * Returns numbers of a row that keelson has written, which may have been changed by hand since.
 * @throws Error that names the row and the attribute, if one is missing or no number.
 */
export function numbersIn<Name extends string>(
  item: Readonly<Record<string, unknown>>,
  ...names: readonly Name[]
): Record<Name, number> {
  const numbers = names.map((name) => [name, numberIn(item[name])] as const);
  const wrong = numbers.find(([, number]) => !Number.isFinite(number))?.[0];
  if (wrong !== undefined) throw malformedRow(item, `${wrong} is ${quoted(item[wrong])}`);
  return Object.fromEntries(numbers) as Record<Name, number>; // safe: it has each name
}

export function malformedRow(
  { pk, sk }: Readonly<Record<string, unknown>>,
  problem: string,
): Error {
  return new Error(`the row ${quoted(pk)} ${quoted(sk)} cannot be read: ${problem}; correct it`);
}

export function isNamed(error: unknown, ...names: readonly string[]): error is Error {
  return error instanceof Error && names.includes(error.name);
}

function sdk() {
  return import("../clients/dynamodb-sdk.ts");
}
