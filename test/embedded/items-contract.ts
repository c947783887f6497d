import { BatchWriteItemCommand } from "@aws-sdk/client-dynamodb";
import {
  BatchGetCommand,
  BatchWriteCommand,
  DeleteCommand,
  GetCommand,
  PutCommand,
  QueryCommand,
  ScanCommand,
  UpdateCommand,
} from "@aws-sdk/lib-dynamodb";
import { describe, expect, test } from "vitest";
import { type ContractTable, fresh, keyOf, refusal } from "./table-contract.ts";

/** The part of the contract about single items, queries, indexes and batches. */
export function describeItems(table: ContractTable): void {
  const { documents, client, get, put, ofOwner } = table;

  describe("items", () => {
    test("an item comes back with every type it was written with", async () => {
      const item = {
        ...keyOf(fresh()),
        text: "tätä \u{1F600}",
        empty: "",
        number: -12.5,
        yes: true,
        nothing: null,
        bytes: new Uint8Array([0, 255, 7]),
        list: [1, "a", { deep: [false] }],
        map: { "with.dot": { and: "more" } },
        tags: new Set(["a", "b"]),
      };
      await put(item);
      expect(await get(item.pk)).toEqual(item);
    });

    test("an item that is not there is no item", async () => {
      expect(await get(fresh())).toBeUndefined();
    });

    test("a failed condition of a put, an update and a delete tells the item only where asked for", async () => {
      const key = keyOf(fresh());
      await put({ ...key, state: "old" });
      const condition = { TableName: table.name, ConditionExpression: "attribute_not_exists(pk)" };
      const asked = { ...condition, ReturnValuesOnConditionCheckFailure: "ALL_OLD" as const };
      const old = { pk: { S: key.pk }, sk: { S: "-" }, state: { S: "old" } };
      for (const [with_, expected] of [
        [condition, undefined],
        [asked, old],
      ] as const) {
        const failures = [
          await refusal(
            documents().send(new PutCommand({ ...with_, Item: { ...key, state: "new" } })),
          ),
          await refusal(
            documents().send(
              new UpdateCommand({ ...with_, Key: key, UpdateExpression: "SET x = sk" }),
            ),
          ),
          await refusal(documents().send(new DeleteCommand({ ...with_, Key: key }))),
        ];
        for (const failure of failures) {
          expect(failure).toMatchObject({
            name: "ConditionalCheckFailedException",
            message: "The conditional request failed",
          });
          expect("Item" in failure ? failure.Item : undefined).toEqual(expected);
        }
      }
      expect(await get(key.pk)).toEqual({ ...key, state: "old" });
    });

    test("a failed condition on an absent item tells no item", async () => {
      const failure = await refusal(
        documents().send(
          new UpdateCommand({
            TableName: table.name,
            Key: keyOf(fresh()),
            UpdateExpression: "SET x = :x",
            ConditionExpression: "attribute_exists(pk)",
            ExpressionAttributeValues: { ":x": 1 },
            ReturnValuesOnConditionCheckFailure: "ALL_OLD",
          }),
        ),
      );
      expect(failure.name).toBe("ConditionalCheckFailedException");
      expect("Item" in failure ? failure.Item : undefined).toBeUndefined();
    });

    test("of 50 concurrent conditional puts exactly one wins", async () => {
      const key = keyOf(fresh());
      const puts = Array.from({ length: 50 }, (_, owner) =>
        documents().send(
          new PutCommand({
            TableName: table.name,
            Item: { ...key, n: owner },
            ConditionExpression: "attribute_not_exists(pk)",
          }),
        ),
      );
      const outcomes = await Promise.allSettled(puts);
      const winners = outcomes.flatMap(({ status }, owner) =>
        status === "fulfilled" ? [owner] : [],
      );
      expect(winners).toHaveLength(1);
      expect(await get(key.pk)).toEqual({ ...key, n: winners[0] });
    });

    test("50 concurrent additions all count", async () => {
      const key = keyOf(fresh());
      const add = new UpdateCommand({
        TableName: table.name,
        Key: key,
        UpdateExpression: "ADD n :one",
        ExpressionAttributeValues: { ":one": 1 },
      });
      await Promise.all(Array.from({ length: 50 }, () => documents().send(add)));
      expect(await get(key.pk)).toEqual({ ...key, n: 50 });
    });

    test("an update returns the item as it is afterwards", async () => {
      const update = await documents().send(
        new UpdateCommand({
          TableName: table.name,
          Key: keyOf(fresh()),
          UpdateExpression: "SET #n = if_not_exists(#n, :zero) + :two, l = list_append(:a, :b)",
          ExpressionAttributeNames: { "#n": "n" },
          ExpressionAttributeValues: { ":zero": 0, ":two": 2, ":a": ["a"], ":b": ["b"] },
          ReturnValues: "ALL_NEW",
        }),
      );
      expect(update.Attributes).toMatchObject({ n: 2, l: ["a", "b"] });
    });

    test("an item above 400 KB is refused", async () => {
      const failure = await refusal(put({ ...keyOf(fresh()), d: "x".repeat(410_000) }));
      expect(failure).toMatchObject({
        name: "ValidationException",
        message: "Item size has exceeded the maximum allowed size",
      });
    });

    test("a table that is not there is named as such", async () => {
      const failure = await refusal(
        documents().send(new GetCommand({ TableName: `${table.name}-none`, Key: keyOf("a") })),
      );
      expect(failure.name).toBe("ResourceNotFoundException");
    });
  });

  describe("collections", () => {
    test("a query answers in the order of the sort key, in pages and in reverse", async () => {
      const pk = fresh();
      await Promise.all(["b#2", "a#1", "b#1", "b#3", "c"].map((sk) => put(keyOf(pk, sk))));
      const query = {
        TableName: table.name,
        ConsistentRead: true,
        KeyConditionExpression: "pk = :p AND begins_with(sk, :s)",
        ExpressionAttributeValues: { ":p": pk, ":s": "b#" },
      };
      const first = await documents().send(new QueryCommand({ ...query, Limit: 2 }));
      expect(first.Items?.map(({ sk }) => sk)).toEqual(["b#1", "b#2"]);
      const rest = await documents().send(
        new QueryCommand({ ...query, ExclusiveStartKey: first.LastEvaluatedKey }),
      );
      expect(rest.Items?.map(({ sk }) => sk)).toEqual(["b#3"]);
      expect(rest.LastEvaluatedKey).toBeUndefined();
      const reverse = await documents().send(
        new QueryCommand({ ...query, ScanIndexForward: false }),
      );
      expect(reverse.Items?.map(({ sk }) => sk)).toEqual(["b#3", "b#2", "b#1"]);
    });

    test("an index follows puts, updates and deletions, and leaves out items without its key", async () => {
      const owner = fresh();
      const [one, two, none] = [fresh(), fresh(), fresh()];
      await put({ ...keyOf(one, "1"), owner });
      await put({ ...keyOf(two, "2"), owner });
      await put(keyOf(none));
      expect((await ofOwner(owner))?.map(({ pk }) => pk)).toEqual([one, two]);
      const rename = new UpdateCommand({
        TableName: table.name,
        Key: keyOf(one, "1"),
        UpdateExpression: "SET #o = :o",
        ExpressionAttributeNames: { "#o": "owner" },
        ExpressionAttributeValues: { ":o": `${owner}-other` },
      });
      await documents().send(rename);
      await documents().send(new DeleteCommand({ TableName: table.name, Key: keyOf(two, "2") }));
      expect(await ofOwner(owner)).toEqual([]);
      expect(await ofOwner(`${owner}-other`)).toEqual([
        { ...keyOf(one, "1"), owner: `${owner}-other` },
      ]);
    });

    test("batches write 25 items and read 100 keys, present or not", async () => {
      const pk = fresh();
      const sorts = Array.from({ length: 25 }, (_, n) => String(n));
      const requests = sorts.map((sk) => ({
        PutRequest: { Item: { ...keyOf(pk, sk), owner: pk } },
      }));
      await documents().send(new BatchWriteCommand({ RequestItems: { [table.name]: requests } }));
      const keys = Array.from({ length: 100 }, (_, n) => keyOf(pk, String(n)));
      const read = await documents().send(
        new BatchGetCommand({
          RequestItems: { [table.name]: { Keys: keys, ConsistentRead: true } },
        }),
      );
      expect(new Set(read.Responses?.[table.name]?.map(({ sk }) => sk))).toEqual(new Set(sorts));
      expect(read.UnprocessedKeys ?? {}).toEqual({});
      expect(await ofOwner(pk)).toHaveLength(25);
      const scan = await documents().send(
        new ScanCommand({
          TableName: table.name,
          FilterExpression: "pk = :p",
          ExpressionAttributeValues: { ":p": pk },
          Select: "COUNT",
        }),
      );
      expect(scan.Count).toBe(25);
    });

    test("a batch of 26 writes is refused", async () => {
      const requests = Array.from({ length: 26 }, (_, n) => ({
        PutRequest: { Item: { pk: { S: "x" }, sk: { S: String(n) } } },
      }));
      const failure = await refusal(
        client().send(new BatchWriteItemCommand({ RequestItems: { [table.name]: requests } })),
      );
      expect(failure.name).toBe("ValidationException");
    });
  });
}
