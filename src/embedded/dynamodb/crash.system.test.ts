import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { openDynalite } from "../service/dynalite.ts";
import { openDynamoDb } from "./dynamodb.ts";

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "keelson-crash-"));
});
afterEach(() => rmSync(directory, { recursive: true, maxRetries: 20 }));

const transaction = {
  ClientRequestToken: "token",
  TransactItems: [
    { Put: { TableName: "tab", Item: { pk: { S: "new" }, owner: { S: "o" } } } },
    {
      Update: {
        TableName: "tab",
        Key: { pk: { S: "count" } },
        UpdateExpression: "ADD n :n",
        ExpressionAttributeValues: { ":n": { N: "1" } },
      },
    },
    { Delete: { TableName: "tab", Key: { pk: { S: "gone" } } } },
  ],
};

// A process of its own that runs the transaction and is killed at the n-th call to the store.
const script = `
const [path, cut, moment, module] = process.argv.slice(1);
const { openDynalite } = await import(new URL("../service/dynalite.ts", module));
const { transactWrite } = await import(new URL("transactions.ts", module));
const { createReadWriteLock } = await import(new URL("atomic-writes.ts", module));
const dynalite = await openDynalite(path);
const { db } = dynalite.store;
let calls = 0;
const kill = () => process.kill(process.pid, "SIGKILL");
for (const name of ["get", "put", "del", "batch"]) {
  const original = db[name];
  db[name] = (...parameters) => {
    const isLast = ++calls === Number(cut);
    if (isLast && moment === "before") return kill();
    const result = original(...parameters);
    if (isLast && moment === "during") kill();
    if (isLast) result?.then?.(kill) ?? setImmediate(kill);
    return result;
  };
}
await transactWrite(dynalite, createReadWriteLock(), { now: () => Date.now() }, ${JSON.stringify(transaction)});
await db.close();
`;

async function runKilled(cut: number, moment: string): Promise<NodeJS.Signals | null> {
  const child = spawn(
    process.execPath,
    ["--input-type=module", "-e", script, directory, String(cut), moment, import.meta.url],
    {
      stdio: ["ignore", "inherit", "inherit"],
    },
  );
  const [code, signal] = await once(child, "exit");
  expect([0, null]).toContain(code);
  return signal;
}

async function prepare(): Promise<void> {
  const db = await openDynamoDb({ path: directory });
  await db.call("CreateTable", {
    TableName: "tab",
    BillingMode: "PAY_PER_REQUEST",
    AttributeDefinitions: ["pk", "owner"].map((AttributeName) => ({
      AttributeName,
      AttributeType: "S",
    })),
    KeySchema: [{ AttributeName: "pk", KeyType: "HASH" }],
    GlobalSecondaryIndexes: [
      {
        IndexName: "byOwner",
        KeySchema: [{ AttributeName: "owner", KeyType: "HASH" }],
        Projection: { ProjectionType: "ALL" },
      },
    ],
  });
  await db.call("PutItem", { TableName: "tab", Item: { pk: { S: "count" }, n: { N: "1" } } });
  await db.call("PutItem", { TableName: "tab", Item: { pk: { S: "gone" }, owner: { S: "o" } } });
  await db.close();
}

async function found() {
  const db = await openDynamoDb({ path: directory });
  const scan = (input: object) =>
    db.call("Scan", { TableName: "tab", ...input }) as Promise<{
      Items: { pk: { S: string }; n?: { N: string } }[];
    }>; // the items above
  const { Items } = await scan({});
  const indexed = await scan({ IndexName: "byOwner" });
  await db.close();
  return {
    items: Items.map(({ pk }) => pk.S).sort(),
    n: Items.find(({ pk }) => pk.S === "count")?.n?.N,
    indexed: indexed.Items.map(({ pk }) => pk.S),
  };
}

const nothing = { items: ["count", "gone"], n: "1", indexed: ["gone"] };
const everything = { items: ["count", "new"], n: "2", indexed: ["new"] };

test.each(["before", "during", "after"])(
  "a process killed %s any of its calls to the store leaves no half-done transaction",
  async (moment) => {
    await prepare();
    const outcomes: string[] = [];
    for (let cut = 1; outcomes.at(-1) !== "completed"; cut += 1) {
      const killed = await runKilled(cut, moment);
      const state = await found();
      const isDone = state.items.includes("new");
      expect({ cut, ...state }).toEqual({ cut, ...(isDone ? everything : nothing) });
      outcomes.push(killed === null ? "completed" : isDone ? "done" : "not done");
      if (isDone && killed !== null) {
        // What the client does next: the same token again. It must not count twice.
        const db = await openDynamoDb({ path: directory });
        await db.call("TransactWriteItems", structuredClone(transaction));
        await db.close();
        expect(await found()).toEqual(everything);
        break;
      }
    }
    expect(outcomes.filter((outcome) => outcome === "not done").length).toBeGreaterThan(5);
    expect(["completed", "done"]).toContain(outcomes.at(-1));
  },
);

test("a killed process leaves a store that dynalite opens, with its table active", async () => {
  await prepare();
  expect(await runKilled(1, "before")).toBe("SIGKILL");
  const dynalite = await openDynalite(directory);
  expect(await dynalite.table("tab")).toMatchObject({ TableStatus: "ACTIVE" });
  await dynalite.store.db.close();
});
