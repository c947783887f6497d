import { marshall } from "@aws-sdk/util-dynamodb";
import { expect, test } from "vitest";
import { allConfigRows, dynamoConfigRows } from "./config-rows.ts";

const address = (key: string) => ({ partition: "config#system", key });
const item = (key: string) => marshall({ pk: "config#system", sk: key, value: key, version: 1 });

interface Key {
  readonly pk: { readonly S: string };
  readonly sk: { readonly S: string };
}

/** A database that answers each BatchGetItem with what `answer` makes of the keys asked for. */
function database(answer: (keys: Key[], call: number) => unknown) {
  const asked: number[] = [];
  const send = async ({ input }: { input: { RequestItems: { config: { Keys: Key[] } } } }) => {
    const { Keys } = input.RequestItems.config;
    asked.push(Keys.length);
    return answer(Keys, asked.length);
  };
  return { asked, database: { send } as never };
}

test("returns rows in the requested order, with undefined for absent ones", async () => {
  const store = database(() => ({ Responses: { config: [item("b"), item("a")] } }));
  const rows = await dynamoConfigRows(store.database, "config").read([
    address("a"),
    address("x"),
    address("b"),
  ]);

  expect(rows.map((row) => row?.value)).toEqual(["a", undefined, "b"]);
});

test("requests more than a hundred keys in chunks", async () => {
  const store = database((keys) => ({ Responses: { config: keys.map(({ sk }) => item(sk.S)) } }));
  const rows = await dynamoConfigRows(store.database, "config").read(
    Array.from({ length: 250 }, (_, index) => address(`k${index}`)),
  );

  expect(store.asked).toEqual([100, 100, 50]);
  expect(rows.map((row) => row?.value)).toEqual(
    Array.from({ length: 250 }, (_, index) => `k${index}`),
  );
});

test("requests unprocessed keys again after a pause, and never treats them as absent", async () => {
  const waits: number[] = [];
  const store = database((keys, call) =>
    call < 3
      ? { UnprocessedKeys: { config: { Keys: keys } } }
      : { Responses: { config: keys.map(({ sk }) => item(sk.S)) } },
  );
  const reader = dynamoConfigRows(store.database, "config", {
    wait: async (attempt) => void waits.push(attempt),
  });

  expect((await reader.read([address("a")]))[0]?.value).toBe("a");
  expect(waits).toEqual([1, 2]);
});

test("pauses by default", async () => {
  const store = database((keys, call) =>
    call === 1 ? { UnprocessedKeys: { config: { Keys: keys } } } : {},
  );

  expect(await dynamoConfigRows(store.database, "config").read([address("a")])).toEqual([
    undefined,
  ]);
});

test("fails if keys stay unprocessed, instead of treating the rows as absent", async () => {
  const store = database((keys) => ({ UnprocessedKeys: { config: { Keys: keys } } }));

  await expect(
    dynamoConfigRows(store.database, "config", { wait: async () => {} }).read([address("a")]),
  ).rejects.toThrow(/1 configuration rows unprocessed after 8 attempts/);
});

test("reads consistently unless requested otherwise", async () => {
  const asked: unknown[] = [];
  const send = async ({
    input,
  }: {
    input: { RequestItems: { config: { ConsistentRead: boolean } } };
  }) => {
    asked.push(input.RequestItems.config.ConsistentRead);
    return {};
  };
  const reader = dynamoConfigRows({ send } as never, "config");
  await reader.read([address("a")]);
  await reader.read([address("a")], {});
  await reader.read([address("a")], { consistent: false });

  expect(asked).toEqual([true, true, false]);
});

test("reads pages until there is no next one, and treats a response without items as an empty page", async () => {
  const asked: unknown[] = [];
  const answers = [
    {
      Items: [{ pk: "config#system", sk: "app:config:a", value: 5, version: 1 }],
      ScannedCount: 3,
      LastEvaluatedKey: { pk: "p", sk: "s" },
    },
    {},
  ];
  const send = async ({ input }: { readonly input: { readonly ExclusiveStartKey?: unknown } }) => {
    asked.push(input.ExclusiveStartKey);
    return answers[asked.length - 1];
  };

  const pages: unknown[] = [];
  for await (const page of allConfigRows({ send } as never, "config")) pages.push(page);
  expect(pages).toEqual([
    {
      rows: [
        {
          address: { partition: "config#system", key: "app:config:a" },
          row: { value: 5, version: 1 },
        },
      ],
      scanned: 3,
    },
    { rows: [], scanned: 0 },
  ]);
  expect(asked).toEqual([undefined, { pk: "p", sk: "s" }]);
});
