import { expect, test } from "vitest";
import { withLostAnswer } from "../../../test/support/lost-answers.ts";
import type { Database } from "../../base/types/database.ts";
import { startEmbeddedStack } from "../../embedded/stack/index.ts";
import { openDatabase } from "../clients/dynamodb.ts";
import { unmarshall } from "../clients/dynamodb-sdk.ts";
import { ensureTables } from "../tables/tables.ts";
import type { Item } from "./claim-item.ts";
import { dynamoProjections } from "./projection-store.ts";

test("a failed switch does not count as one that another process has made", async () => {
  const failing = (error: unknown) =>
    // Safe: it is asked for nothing else.
    dynamoProjections({ send: () => Promise.reject(error) } as unknown as Database, "kept", {
      now: () => 0,
    });
  const next = { version: 1, revision: "r" };
  await expect(
    failing(new Error("no answer")).activate("files.usage", undefined, next, undefined),
  ).rejects.toThrow("no answer");
  await expect(failing("odd").activate("files.usage", undefined, next, undefined)).rejects.toBe(
    "odd",
  );
  const lost = Object.assign(new Error(), { name: "ConditionalCheckFailedException" });
  expect(await failing(lost).activate("files.usage", undefined, next, undefined)).toBe(false);
});

test("a switch is recognized as its own if the SDK repeats it because the answer was lost", async () => {
  const { endpoint, close } = await startEmbeddedStack({ env: { NODE_ENV: "test" } });
  const credentials = { accessKeyId: "test", secretAccessKey: "test" };
  const database = await openDatabase({ endpoint, region: "us-east-1", credentials });
  try {
    const table = { name: "kept", tableName: "kept", partitionKey: "pk", sortKey: "sk" };
    await ensureTables(database, [{ ...table, indexes: [] }], "create");
    const store = dynamoProjections(database, "kept", { now: () => 0 });
    const activate = (...given: Parameters<typeof store.activate>) =>
      withLostAnswer(database, "PutItem", () => store.activate(...given));
    const [first, second] = [
      { version: 1, revision: "one" },
      { version: 2, revision: "two" },
    ];
    expect(await activate("files.usage", undefined, first, undefined)).toBe(true);
    expect(await activate("files.usage", undefined, second, first)).toBe(true);
    expect(await store.active("files.usage", undefined)).toEqual({ all: second });
    const other = { version: 3, revision: "three" };
    expect(await store.activate("files.usage", undefined, other, first)).toBe(false);
    expect(await store.activate("files.usage", undefined, other, undefined)).toBe(false);
  } finally {
    database.destroy();
    await close();
  }
});

test("an active version is read as it was written", async () => {
  const rows: Record<string, unknown>[] = [];
  // The store sends only `Put` and `Get` here.
  const send = async ({ input }: { input: { Item?: Item; Key?: { pk: string } } }) => {
    if (input.Item !== undefined) rows.push(unmarshall(input.Item));
    return { Item: rows.find(({ pk }) => pk === input.Key?.pk) };
  };
  // Safe: see above.
  const store = dynamoProjections({ send } as unknown as Database, "kept", { now: () => 0 });
  const all = { version: 2, revision: "two" };
  const own = { version: 1, revision: "own", over: "two", overBefore: "one" };
  await store.activate("files.usage", undefined, all, undefined);
  await store.activate("files.usage", "acme", own, undefined);
  expect(await store.active("files.usage", "acme")).toEqual({ all, own });
  expect(await store.active("files.usage", "other")).toEqual({ all });
});

test("a mark lives 14 days longer than its event, as long as a redriven dead letter", () => {
  const store = dynamoProjections({} as Database, "kept", { now: () => 1_000 });
  const event = { tenantId: "acme", eventId: "e1" };
  expect(store.mark("files.usage", 2, event, 30)).toEqual({
    Put: {
      TableName: "kept",
      Item: {
        pk: "acme/mark/files.usage@2/e1",
        sk: "mark",
        tenantId: "acme",
        expiration: 1 + 44 * 86_400,
      },
      ConditionExpression: "attribute_not_exists(pk)",
    },
  });
  expect(store.mark("files.usage", 2, { eventId: "e1" }, Number.POSITIVE_INFINITY)).toMatchObject({
    Put: { Item: { pk: "/mark/files.usage@2/e1", sk: "mark" } },
  });
});
