/** IAM's question for a call. */
export interface IamRequest {
  readonly action: string;
  readonly resource: string;
  readonly context: Readonly<Record<string, string | readonly string[]>>;
}

/** The partition keys of a table and of its indexes. */
export interface TableKeys {
  readonly partitionKey: string;
  readonly indexes?: Readonly<Record<string, string>>;
}

/** Facts about tables, by name. */
export type KeysOf = (table: string) => TableKeys;

type Fields = Readonly<Record<string, unknown>>;

/**
 * DynamoDB's questions to IAM for a command, by the service authorization reference: for a batch, one per table, for a transaction, one per
 * item. `LeadingKeys` are the partition keys of the items; a query has the key of its table or index, a scan does not have one.
 * `EnclosingOperation` is set for actions that are also commands.
 */
export function iamRequests(operation: string, input: Fields, keysOf: KeysOf): IamRequest[] {
  const { RequestItems: requests, TransactItems: items, TableName: name } = input;
  if (operation === "BatchGetItem" || operation === "BatchWriteItem") {
    return Object.entries(fieldsOf(requests)).map(([table, given]) => {
      const keys = Array.isArray(given)
        ? given.map(writtenKey)
        : (fieldsOf(given)["Keys"] as readonly unknown[]); // safe: as the command has it
      return requestOf(
        operation,
        table,
        {},
        keys.map((key) => keyOf(key, keysOf(nameOf(table)).partitionKey)),
      );
    });
  }
  if (operation === "TransactWriteItems" || operation === "TransactGetItems") {
    return (items as readonly unknown[]).flatMap((item) =>
      Object.entries(fieldsOf(item)).map(([kind, action]) => {
        const { TableName, Item, Key } = fieldsOf(action);
        const enclosed =
          kind === "ConditionCheck" ? {} : { "dynamodb:EnclosingOperation": operation };
        const table = String(TableName);
        return requestOf(`${kind}Item`, table, enclosed, [
          keyOf(Item ?? Key, keysOf(nameOf(table)).partitionKey),
        ]);
      }),
    );
  }
  const table = String(name);
  if (operation === "Query") return [queryRequest(table, input, keysOf(nameOf(table)))];
  if (operation === "Scan")
    return [requestOf(operation, tableAndIndex(table, input), {}, undefined)];
  return [
    requestOf(operation, table, {}, [
      keyOf(input["Item"] ?? input["Key"], keysOf(nameOf(table)).partitionKey),
    ]),
  ];
}

function queryRequest(
  table: string,
  input: Fields,
  { partitionKey, indexes = {} }: TableKeys,
): IamRequest {
  const {
    IndexName: index,
    KeyConditionExpression: text,
    ExpressionAttributeNames: names,
    ExpressionAttributeValues: values,
  } = input;
  const wanted = index === undefined ? partitionKey : indexes[String(index)];
  const conditions = [...String(text).matchAll(/([#\w]+)\s*=\s*(:\w+)/g)];
  const found = conditions.find(
    ([, name = ""]) => (name.startsWith("#") ? fieldsOf(names)[name] : name) === wanted,
  );
  const key = keyOf({ key: fieldsOf(values)[found?.[2] ?? ""] }, "key");
  return requestOf("Query", tableAndIndex(table, input), {}, [key]);
}

function tableAndIndex(table: string, { IndexName: index }: Fields): string {
  return index === undefined ? table : `${table}/index/${String(index)}`;
}

function requestOf(
  operation: string,
  table: string,
  context: IamRequest["context"],
  keys: readonly string[] | undefined,
): IamRequest {
  return {
    action: `dynamodb:${operation}`,
    resource: table.startsWith("arn:") ? table : `${tablesArn}${table}`,
    context: { ...context, ...(keys === undefined ? {} : { "dynamodb:LeadingKeys": keys }) },
  };
}

/** Prefix of the ARNs of the account's tables. */
export const tablesArn = "arn:aws:dynamodb:eu-west-1:123456789012:table/";

const nameOf = (table: string) => table.replace(/^arn:.*:table\//, "");

function writtenKey(request: unknown): unknown {
  const { PutRequest, DeleteRequest } = fieldsOf(request);
  return fieldsOf(PutRequest)["Item"] ?? fieldsOf(DeleteRequest)["Key"];
}

/** Value of an item or a key, in the form of document clients or of DynamoDB's API. */
function keyOf(item: unknown, attribute: string): string {
  const value = fieldsOf(item)[attribute];
  return typeof value === "string" ? value : String(fieldsOf(value)["S"]);
}

function fieldsOf(value: unknown): Fields {
  return typeof value === "object" && value !== null ? (value as Fields) : {}; // safe: it was just looked at
}
