import type { BatchGetItemCommandInput, QueryCommandInput } from "@aws-sdk/client-dynamodb";
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

test("requests a key once that is asked for twice, because DynamoDB refuses duplicates", async () => {
  const store = database((keys) => ({ Responses: { config: keys.map(({ sk }) => item(sk.S)) } }));
  const addresses = [address("a"), address("b"), address("a")];
  const rows = await dynamoConfigRows(store.database, "config").read(addresses);

  expect(rows.map((row) => row?.value)).toEqual(["a", "b", "a"]);
  expect(store.asked).toEqual([2]);
});

const numbers = (count: number) => Array.from({ length: count }, (_, index) => index);

/** A partition whose Query ends a page after `perPage` rows. */
function partition(stored: readonly string[], perPage: number) {
  const calls: string[] = [];
  const send = async ({
    input,
  }: {
    readonly input: QueryCommandInput & BatchGetItemCommandInput;
  }) => {
    const { RequestItems, ExpressionAttributeValues: values, Limit = 0 } = input;
    if (RequestItems !== undefined) {
      const keys = (RequestItems["config"]?.Keys ?? []).map(({ sk }) => sk?.S ?? "");
      calls.push(`BatchGetItem ${keys.length}`);
      const found = keys.filter((key) => stored.includes(key));
      return { Responses: { config: found.map(item) } };
    }
    const [first, last] = [values?.[":first"]?.S ?? "", values?.[":last"]?.S ?? ""];
    const range = stored.toSorted().filter((key) => key >= first && key <= last);
    const page = range.slice(0, Math.min(perPage, Limit));
    calls.push(`Query ${page.length}`);
    const end = page.length < range.length ? { sk: { S: page.at(-1) } } : undefined;
    return { Items: page.map(item), LastEvaluatedKey: end };
  };
  return { calls, database: { send } as never };
}

test.each([
  ["three keys by a batch", 3, ["BatchGetItem 3"]],
  ["four keys by a Query", 4, ["Query 4"]],
  ["a hundred keys by a Query of each page", 100, ["Query 40", "Query 40", "Query 20"]],
  ["what few keys a page leaves by a batch", 42, ["Query 40", "BatchGetItem 2"]],
])("reads %s", async (_what, count, calls) => {
  const keys = numbers(count).map((n) => `k${n + 100}`);
  const store = partition(keys, 40);
  const rows = await dynamoConfigRows(store.database, "config").read(keys.map(address));

  expect(rows.map((row) => row?.value)).toEqual(keys);
  expect(store.calls).toEqual(calls);
});

test("evaluates at most two rows per key, however many rows of undeclared keys a partition has", async () => {
  const undeclared = numbers(10_000).map((n) => `k100-${n}`);
  const keys = numbers(10).map((n) => `k${n + 100}`);
  const store = partition([...undeclared, ...keys], Infinity);
  const rows = await dynamoConfigRows(store.database, "config").read(keys.map(address));

  expect(rows.map((row) => row?.value)).toEqual(keys);
  expect(store.calls).toEqual(["Query 20", "BatchGetItem 9"]);
});

test("reads partitions at the same time, up to 25", async () => {
  let [running, most] = [0, 0];
  const send = async () => {
    running += 1;
    most = Math.max(most, running);
    await Promise.resolve();
    running -= 1;
    return {};
  };
  const addresses = numbers(60).flatMap((n) =>
    numbers(4).map((key) => ({ partition: `config#tenant#t${n}`, key: `k${key}` })),
  );
  const rows = await dynamoConfigRows({ send } as never, "config").read(addresses);

  expect(rows).toEqual(addresses.map(() => undefined));
  expect(most).toBe(25);
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
