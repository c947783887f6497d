import { type CancellationReason, TransactionCanceledException } from "@aws-sdk/client-dynamodb";
import { TransactGetCommand } from "@aws-sdk/lib-dynamodb";
import { describe, expect, test } from "vitest";
import {
  type ContractCapabilities,
  type ContractTable,
  fresh,
  keyOf,
  refusal,
} from "./table-contract.ts";

/** The part of the contract about transactions. */
export function describeTransactions(
  table: ContractTable,
  capabilities: ContractCapabilities,
): void {
  const { documents, get, put, ofOwner, transact } = table;

  describe("transactions", () => {
    test("a put, an update, a deletion and a check take effect together, indexes included", async () => {
      const [added, changed, gone, checked] = [fresh(), fresh(), fresh(), fresh()];
      await put({ ...keyOf(changed), n: 1 });
      await put({ ...keyOf(gone), owner: gone });
      await put(keyOf(checked));
      await transact([
        { Put: { TableName: table.name, Item: { ...keyOf(added), owner: added } } },
        {
          Update: {
            TableName: table.name,
            Key: keyOf(changed),
            UpdateExpression: "ADD n :n",
            ExpressionAttributeValues: { ":n": 2 },
          },
        },
        {
          Delete: {
            TableName: table.name,
            Key: keyOf(gone),
            ConditionExpression: "attribute_exists(pk)",
          },
        },
        {
          ConditionCheck: {
            TableName: table.name,
            Key: keyOf(checked),
            ConditionExpression: "attribute_exists(pk)",
          },
        },
      ]);
      expect(await get(added)).toEqual({ ...keyOf(added), owner: added });
      expect(await get(changed)).toEqual({ ...keyOf(changed), n: 3 });
      expect(await get(gone)).toBeUndefined();
      expect(await get(checked)).toEqual(keyOf(checked));
      expect(await ofOwner(added)).toHaveLength(1);
      expect(await ofOwner(gone)).toEqual([]);
    });

    test("a cancelled transaction has no effect and a reason for each item, in order", async () => {
      const [added, taken, absent] = [fresh(), fresh(), fresh()];
      await put({ ...keyOf(taken), n: 7 });
      const exists = {
        ConditionExpression: "attribute_exists(pk)",
        ReturnValuesOnConditionCheckFailure: "ALL_OLD" as const,
      };
      const isNew = { ...exists, ConditionExpression: "attribute_not_exists(pk)" };
      const reasons = await reasonsOf(
        transact([
          { Put: { TableName: table.name, Item: { ...keyOf(added), owner: added } } },
          { Put: { TableName: table.name, Item: keyOf(taken), ...isNew } },
          { ConditionCheck: { TableName: table.name, Key: keyOf(absent), ...exists } },
          {
            Delete: {
              TableName: table.name,
              Key: keyOf(fresh()),
              ConditionExpression: "attribute_exists(pk)",
            },
          },
          {
            Update: {
              TableName: table.name,
              Key: keyOf(fresh()),
              UpdateExpression: "SET n = :n",
              ExpressionAttributeValues: { ":n": 1 },
            },
          },
        ]),
      );
      const failed = "ConditionalCheckFailed";
      expect(reasons.map(({ Code }) => Code)).toEqual(["None", failed, failed, failed, "None"]);
      expect(reasons.map(({ Item }) => Item)).toEqual([
        undefined,
        { pk: { S: taken }, sk: { S: "-" }, n: { N: "7" } },
        undefined,
        undefined,
        undefined,
      ]);
      expect(await get(added)).toBeUndefined();
      expect(await ofOwner(added)).toEqual([]);
      expect(await get(taken)).toEqual({ ...keyOf(taken), n: 7 });
    });

    test("the message of a cancelled transaction lists the codes", async () => {
      const failure = await refusal(
        transact([
          { Put: { TableName: table.name, Item: keyOf(fresh()) } },
          {
            Delete: {
              TableName: table.name,
              Key: keyOf(fresh()),
              ConditionExpression: "attribute_exists(pk)",
            },
          },
        ]),
      );
      expect(failure.message).toBe(
        "Transaction cancelled, please refer cancellation reasons for specific reasons [None, ConditionalCheckFailed]",
      );
    });

    test("an update that the stored item does not allow cancels the transaction", async () => {
      const [added, changed] = [fresh(), fresh()];
      await put({ ...keyOf(changed), n: 1 });
      const failure = await refusal(
        transact([
          { Put: { TableName: table.name, Item: keyOf(added) } },
          {
            Update: {
              TableName: table.name,
              Key: keyOf(changed),
              UpdateExpression: "ADD n :n",
              ExpressionAttributeValues: { ":n": new Set(["a"]) },
            },
          },
        ]),
      );
      const message = "An operand in the update expression has an incorrect data type";
      if (capabilities.validationReasons) {
        expect(failure).toMatchObject({
          CancellationReasons: [{ Code: "None" }, { Code: "ValidationError", Message: message }],
        });
      } else {
        expect(failure).toMatchObject({ name: "ValidationException", message });
      }
      expect(await get(added)).toBeUndefined();
    });

    test("a key of a wrong type cancels the transaction", async () => {
      const added = fresh();
      const reasons = await reasonsOf(
        transact([
          { Put: { TableName: table.name, Item: keyOf(added) } },
          { Delete: { TableName: table.name, Key: { pk: 1, sk: "-" } } },
        ]),
      );
      expect(reasons.map(({ Code }) => Code)).toEqual(["None", "ValidationError"]);
      expect(await get(added)).toBeUndefined();
    });

    test.each([
      [
        "two operations on one item",
        () => [
          { Put: { TableName: table.name, Item: keyOf("a") } },
          { Delete: { TableName: table.name, Key: keyOf("a") } },
        ],
        "Transaction request cannot include multiple operations on one item",
      ],
      [
        "101 items",
        () =>
          Array.from({ length: 101 }, (_, n) => ({
            Put: { TableName: table.name, Item: keyOf(`${n}`) },
          })),
        "Member must have length less than or equal to 100",
      ],
      ["no items", () => [], "Member must have length greater than or equal to 1"],
      [
        "an item of two kinds",
        () => [
          {
            Put: { TableName: table.name, Item: keyOf("a") },
            Delete: { TableName: table.name, Key: keyOf("b") },
          },
        ],
        "TransactItems can only contain one of Check, Put, Update or Delete",
      ],
      [
        "a check without a condition",
        () => [
          {
            ConditionCheck: {
              TableName: table.name,
              Key: keyOf("a"),
              ConditionExpression: undefined,
            },
          },
        ],
        "Value null at 'transactItems.1.member.conditionCheck.conditionExpression' failed to satisfy constraint: Member must not be null",
      ],
      [
        "a condition that does not parse",
        () => [{ Put: { TableName: table.name, Item: keyOf("a"), ConditionExpression: "pk =" } }],
        "Invalid ConditionExpression: Syntax error",
      ],
      [
        "items of more than 4 MB",
        () =>
          Array.from({ length: 11 }, (_, n) => ({
            Put: { TableName: table.name, Item: { ...keyOf(`${n}`), d: "x".repeat(395_000) } },
          })),
        "Transaction payload size cannot exceed 4MB",
      ],
    ])("%s are refused before anything is looked at", async (_what, items, message) => {
      const failure = await refusal(transact(items()));
      expect(failure.name).toBe("ValidationException");
      expect(failure.message).toContain(message);
    });

    const testStoredItems = capabilities.countsStoredItems ? test : () => {};
    testStoredItems("a small request for more than 4 MB of stored items is refused", async () => {
      const pk = fresh();
      const sorts = Array.from({ length: 11 }, (_, n) => String(n));
      await Promise.all(sorts.map((sk) => put({ ...keyOf(pk, sk), d: "x".repeat(395_000) })));
      const failure = await refusal(
        transact(
          sorts.map((sk) => ({
            Update: {
              TableName: table.name,
              Key: keyOf(pk, sk),
              UpdateExpression: "SET n = :n",
              ExpressionAttributeValues: { ":n": 1 },
            },
          })),
        ),
      );
      expect(failure.name).toBe("ValidationException");
      expect(await get(pk, "0")).not.toHaveProperty("n");
    });

    test("a token repeats nothing, and another transaction under it is refused", async () => {
      const key = keyOf(fresh());
      const token = fresh();
      const add = (n: number) => [
        {
          Update: {
            TableName: table.name,
            Key: key,
            UpdateExpression: "ADD n :n",
            ExpressionAttributeValues: { ":n": n },
          },
        },
      ];
      await transact(add(1), token);
      await transact(add(1), token);
      expect(await get(key.pk)).toEqual({ ...key, n: 1 });
      expect((await refusal(transact(add(2), token))).name).toBe(
        "IdempotentParameterMismatchException",
      );
      await transact(add(1), fresh());
      expect(await get(key.pk)).toEqual({ ...key, n: 2 });
    });

    test("the token of a cancelled transaction is free to succeed later", async () => {
      const key = keyOf(fresh());
      const token = fresh();
      const items = [
        {
          Put: {
            TableName: table.name,
            Item: { ...key, n: 1 },
            ConditionExpression: "attribute_exists(pk)",
          },
        },
      ];
      await reasonsOf(transact(items, token));
      await put(key);
      await transact(items, token);
      expect(await get(key.pk)).toEqual({ ...key, n: 1 });
    });

    test("reads answer in order, with nothing for what is not there", async () => {
      const [one, two] = [fresh(), fresh()];
      await put({ ...keyOf(one), n: 1 });
      await put({ ...keyOf(two), n: 2 });
      const read = await documents().send(
        new TransactGetCommand({
          TransactItems: [
            { Get: { TableName: table.name, Key: keyOf(two) } },
            { Get: { TableName: table.name, Key: keyOf(fresh()) } },
            {
              Get: {
                TableName: table.name,
                Key: keyOf(one),
                ProjectionExpression: "#n",
                ExpressionAttributeNames: { "#n": "n" },
              },
            },
          ],
        }),
      );
      expect(read.Responses?.map(({ Item }) => Item)).toEqual([
        { ...keyOf(two), n: 2 },
        undefined,
        { n: 1 },
      ]);
    });

    test("two reads of one item are refused", async () => {
      const twice = { Get: { TableName: table.name, Key: keyOf("a") } };
      const failure = await refusal(
        documents().send(new TransactGetCommand({ TransactItems: [twice, twice] })),
      );
      expect(failure.message).toBe(
        "Transaction request cannot include multiple operations on one item",
      );
    });

    test("a transaction on a table that is not there is named as such", async () => {
      const failure = await refusal(
        transact([{ Put: { TableName: `${table.name}-none`, Item: keyOf("a") } }]),
      );
      expect(failure.name).toBe("ResourceNotFoundException");
    });

    test("transactional reads never see half of a concurrent transaction", async () => {
      const [left, right] = [fresh(), fresh()];
      const both = (n: number) =>
        [left, right].map((pk) => ({ Put: { TableName: table.name, Item: { ...keyOf(pk), n } } }));
      await transact(both(0));
      const writes = (async () => {
        for (let n = 1; n <= 30; n += 1) await transact(both(n));
      })();
      const reads = Array.from({ length: 30 }, async () => {
        const gets = [left, right].map((pk) => ({
          Get: { TableName: table.name, Key: keyOf(pk) },
        }));
        const read = await documents().send(new TransactGetCommand({ TransactItems: gets }));
        const [first, second] = read.Responses ?? [];
        expect(first?.Item?.["n"]).toBe(second?.Item?.["n"]);
      });
      await Promise.all([writes, ...reads]);
      expect([(await get(left))?.["n"], (await get(right))?.["n"]]).toEqual([30, 30]);
    });
  });
}

async function reasonsOf(call: Promise<unknown>): Promise<readonly CancellationReason[]> {
  const error = await refusal(call);
  expect(error).toBeInstanceOf(TransactionCanceledException);
  return error instanceof TransactionCanceledException ? (error.CancellationReasons ?? []) : [];
}
