import { createWall } from "../src/parts/wall/wall.ts";
import type { Stack } from "../src/parts/wall/walled-stack.ts";
import { type Result, sideBySide } from "./measure.ts";

const TableName = "keelson-files";
const Key = { pk: { S: "acme/files" }, sk: { S: "0191e7a0-5d1c-7000-8000-000000000001" } };
const Item = { ...Key, owner: { S: "acme/ann" }, name: { S: "report.pdf" }, sizeMb: { N: "3" } };
const byOwner = {
  IndexName: "byOwner",
  KeyConditionExpression: "#owner = :owner AND createdAt > :since",
  ExpressionAttributeNames: { "#owner": "owner" },
  ExpressionAttributeValues: { ":owner": { S: "acme/ann" }, ":since": { S: "2026" } },
};

/** Commands as they are about to be written out. */
const commands: readonly (readonly [commandName: string, input: object])[] = [
  ["GetItemCommand", { TableName, Key, ConsistentRead: true }],
  ["PutItemCommand", { TableName, Item, ConditionExpression: "attribute_not_exists(pk)" }],
  [
    "UpdateItemCommand",
    {
      TableName,
      Key,
      UpdateExpression: "SET #owner = :owner, sizeMb = sizeMb + :more REMOVE #old",
      ExpressionAttributeNames: { "#owner": "owner", "#old": "old" },
      ExpressionAttributeValues: { ":owner": { S: "acme/ann" }, ":more": { N: "1" } },
    },
  ],
  ["DeleteItemCommand", { TableName, Key }],
  [
    "QueryCommand",
    {
      TableName,
      ...byOwner,
      Limit: 20,
      ExclusiveStartKey: { ...Key, owner: { S: "acme/ann" }, createdAt: { S: "2026" } },
    },
  ],
  [
    "TransactWriteItemsCommand",
    { TransactItems: [{ Put: { TableName, Item } }], ClientRequestToken: "t" },
  ],
];

/** The check of a command, beside what anything has to do that knows tables by name: look the table up. */
export async function wallResults(): Promise<Result[]> {
  const indexes = [{ name: "byOwner", partitionKey: "owner" }];
  const wall = createWall([{ name: "files", tableName: TableName, partitionKey: "pk", indexes }]);
  const log = { error: () => undefined };
  const handlers = commands.map(([commandName]) =>
    checking(wall.stackFor(bareStack(), { tenantId: "acme", log }), commandName),
  );
  const tables = new Map([[TableName, "pk"]]);
  let passed = 0;
  return [
    await sideBySide({
      id: "wall-command",
      times: 600_000,
      ours: async (times) => {
        for (let i = 0; i < times; i++) {
          const at = i % commands.length;
          if (handlers[at]?.({ input: commands[at]?.[1] }) !== true)
            throw new Error("a command of the tenant's own was refused");
        }
      },
      peer: async (times) => {
        for (let i = 0; i < times; i++) {
          const input = commands[i % commands.length]?.[1] as { readonly TableName?: string };
          if (tables.has(input.TableName ?? TableName)) passed += 1;
        }
        if (passed === 0) throw new Error("no table is known");
      },
    }),
  ];
}

type Handler = (given: { readonly input: unknown }) => unknown;

/** Middlewares that are none: what is added is all that runs. */
function bareStack(): Stack {
  let added: ((next: Handler, context: object) => Handler) | undefined;
  const stack = {
    clone: () => stack,
    addRelativeTo: (middleware: typeof added) => {
      added = middleware;
    },
    resolve: (next: Handler, context: object) => added?.(next, context),
  };
  // Safe: the wall asks for no more.
  return stack as unknown as Stack;
}

function checking(stack: Stack, commandName: string): Handler {
  const resolved = stack.resolve((() => true) as never, { commandName } as never);
  return resolved as unknown as Handler; // safe: as above
}
