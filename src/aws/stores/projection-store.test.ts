import { expect, test } from "vitest";
import type { Database } from "../../base/types/database.ts";
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
