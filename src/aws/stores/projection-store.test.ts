import { expect, test } from "vitest";
import type { Database } from "../../base/types/database.ts";
import { unmarshall } from "../clients/dynamodb-sdk.ts";
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
