import { expect, test } from "vitest";
import { withLostAnswer } from "../../../test/support/lost-answers.ts";
import { startEmbeddedStack } from "../../embedded/stack/index.ts";
import type { OutboxRow } from "../../parts/messages/outbox-store.ts";
import { openDatabase } from "../clients/dynamodb.ts";
import { ensureTables } from "../tables/tables.ts";
import { dynamoAsideStore, itemBefore } from "./aside-store.ts";
import { dynamoDueJobs, dynamoOutbox } from "./outbox-store.ts";

const row = (number: number): OutboxRow => ({
  shard: "shard#1",
  sort: `00000000000000${number}#e${number}`,
  eventId: `e${number}`,
  type: "file.created",
  ...(number % 2 === 0 ? { tenantId: "acme" } : {}),
  text: `{"eventId":"e${number}"}`,
});

test("reads waiting rows in order, before a time and after a row, until they are removed", async () => {
  const stack = await startEmbeddedStack({ env: { NODE_ENV: "test" } });
  const credentials = { accessKeyId: "test", secretAccessKey: "test" };
  const database = await openDatabase({
    endpoint: stack.endpoint,
    region: "us-east-1",
    credentials,
  });
  try {
    await ensureTables(
      database,
      [{ name: "outbox", tableName: "outbox", partitionKey: "pk", sortKey: "sk", indexes: [] }],
      "create",
    );
    const outbox = dynamoOutbox(database, "outbox");
    const { TransactWriteCommand } = await import("../clients/dynamodb-sdk.ts");
    const items = [4, 2, 1, 3].flatMap(
      (number) => outbox.items(row(number)) as Record<string, never>[],
    ); // an item of a transaction
    await database.send(new TransactWriteCommand({ TransactItems: items }));

    expect(await outbox.pending("shard#1", row(4).sort, 10)).toEqual([row(1), row(2), row(3)]);
    expect(await outbox.pending("shard#1", row(4).sort, 2)).toEqual([row(1), row(2)]);
    expect(await outbox.pending("shard#1", row(4).sort, 10, row(2).sort)).toEqual([row(3)]);
    expect(await outbox.pending("shard#2", row(4).sort, 10)).toEqual([]);
    expect(await outbox.firsts(["shard#2", "shard#1"], row(4).sort)).toEqual([
      { status: "fulfilled", value: [] },
      { status: "fulfilled", value: [{ sort: row(1).sort }] },
    ]);
    await outbox.remove(row(1));
    await outbox.remove(row(1));
    expect(await outbox.pending("shard#1", row(4).sort, 10)).toEqual([row(2), row(3)]);

    // What is set aside is in no shard, has all that it had, and can be put back.
    const { GetCommand, PutCommand } = await import("@aws-sdk/lib-dynamodb");
    const odd = {
      pk: "shard#1",
      sk: "000000000000003#odd",
      envelope: { not: "a text" },
      tags: new Set(["a"]),
    };
    await database.send(new PutCommand({ TableName: "outbox", Item: odd }));
    const [, , unreadable] = await outbox.pending("shard#1", row(4).sort, 10);
    expect(unreadable).toEqual({
      shard: "shard#1",
      sort: odd.sk,
      eventId: "odd",
      type: "unknown",
      text: "",
      unreadable: odd,
    });
    const asideOf = async (sort: string) => {
      const Key = { pk: "aside", sk: `${sort}#shard#1` };
      return (await database.send(new GetCommand({ TableName: "outbox", Key }))).Item;
    };
    const since = { asideReason: "never", asideAt: "1970-01-01T00:00:00.007Z" };
    expect(await outbox.setAside(row(2), "never", 7)).toBe(true);
    expect(await outbox.setAside(row(2), "again", 8)).toBe(false);
    const { eventId, type, tenantId, text: envelope } = row(2);
    const aside = {
      pk: "aside",
      sk: `${row(2).sort}#shard#1`,
      eventId,
      type,
      tenantId,
      envelope,
      ...since,
    };
    expect(await asideOf(row(2).sort)).toEqual(aside);
    expect(itemBefore(aside)).toEqual({
      pk: "shard#1",
      sk: row(2).sort,
      eventId,
      type,
      tenantId,
      envelope,
    });
    expect(await outbox.setAside(unreadable as OutboxRow, "never", 7)).toBe(true); // safe: it was looked at
    expect(await asideOf(odd.sk)).toEqual({
      ...odd,
      pk: "aside",
      sk: `${odd.sk}#shard#1`,
      ...since,
    });
    expect(await outbox.pending("shard#1", row(4).sort, 10)).toEqual([row(3)]);

    // A job that is due later is its tenant's to take back, until it is being sent.
    const [due, other] = [
      { ...row(5), shard: "due#2", tenantId: "acme" },
      { ...row(6), shard: "due#2", tenantId: undefined },
    ];
    await database.send(
      new TransactWriteCommand({
        TransactItems: [due, other].flatMap((job) => outbox.items(job) as never[]),
      }),
    );
    const jobs = dynamoDueJobs(database, "outbox");
    expect(await jobs.takeBack(due, "evil")).toBe(false);
    expect(await jobs.takeBack(due, undefined)).toBe(false);
    expect(await jobs.takeBack(other, due.tenantId)).toBe(false);
    // The SDK repeats the call, because the first answer is lost.
    const takingBack = () => jobs.takeBack(other, undefined);
    expect(await withLostAnswer(database, "TransactWriteItems", takingBack)).toBe(true);
    expect(await takingBack()).toBe(false);
    expect(await jobs.begin(other)).toBe(false);
    expect([await jobs.begin(due), await jobs.begin(due)]).toEqual([true, true]);
    expect(await jobs.takeBack(due, due.tenantId)).toBe(false);
    await expect(dynamoDueJobs(database, "elsewhere").begin(due)).rejects.toThrow("not found");
    expect(await outbox.setAside(due, "never", 7)).toBe(true);
    const { shard: pk, sort: sk } = due;
    expect(itemBefore({ pk: "aside", sk: `${sk}#${pk}`, ...since, envelope: due.text })).toEqual({
      pk,
      sk,
      envelope: due.text,
    });
    await expect(dynamoOutbox(database, "elsewhere").setAside(row(3), "never", 7)).rejects.toThrow(
      "not found",
    );

    const asides = dynamoAsideStore(database, "outbox");
    expect(await asides.putBack(aside)).toBe("put back");
    expect(await asides.putBack(aside)).toBe("gone");
    expect(await asides.putBack({ ...aside, sk: "odd" })).toBe("foreign");
  } finally {
    database.destroy();
    await stack.close();
  }
});

test("a large row lies in parts, which are read, set aside, put back and deleted with it", async () => {
  const stack = await startEmbeddedStack({ env: { NODE_ENV: "test" } });
  const credentials = { accessKeyId: "test", secretAccessKey: "test" };
  const { endpoint } = stack;
  const database = await openDatabase({ endpoint, region: "us-east-1", credentials });
  try {
    const table = { name: "outbox", tableName: "outbox", partitionKey: "pk", sortKey: "sk" };
    await ensureTables(database, [{ ...table, indexes: [] }], "create");
    const { ScanCommand } = await import("@aws-sdk/lib-dynamodb");
    const { TransactWriteCommand, DeleteItemCommand } = await import("../clients/dynamodb-sdk.ts");
    const places = async () => {
      const all: string[] = [];
      let start: Record<string, unknown> | undefined;
      do {
        const scan = { TableName: "outbox", ExclusiveStartKey: start };
        const { Items = [], LastEvaluatedKey } = await database.send(new ScanCommand(scan));
        all.push(...Items.map(({ pk, sk }) => `${pk} ${sk}`));
        start = LastEvaluatedKey;
      } while (start !== undefined);
      return all.sort();
    };
    const outbox = dynamoOutbox(database, "outbox");
    const put = async (one: OutboxRow) => {
      const TransactItems = outbox.items(one) as never[];
      await database.send(new TransactWriteCommand({ TransactItems }));
    };
    const large = (number: number, shard = "shard#1"): OutboxRow => ({
      ...row(number),
      shard,
      tenantId: "acme",
      text: `${number}${"€".repeat(349_000)}`,
    });
    const parts = (number: number, shard = "shard#1") =>
      [0, 1, 2].map((part) => `part#${shard}#${row(number).sort} ${part}`);
    const head = (number: number, shard = "shard#1") => `${shard} ${row(number).sort}`;

    await put(row(1));
    for (const number of [2, 3, 4, 5, 6]) await put(large(number));
    const end = "9";
    // A page ends before the fifth large row, and the next one goes on there.
    const page = await outbox.pending("shard#1", end, 10);
    expect(page).toEqual([row(1), large(2), large(3), large(4), large(5)]);
    expect(await outbox.pending("shard#1", end, 10, row(5).sort)).toEqual([large(6)]);
    for (const number of [1, 4, 5, 6]) await outbox.remove(number === 1 ? row(1) : large(number));
    expect(await places()).toEqual([head(2), head(3), ...parts(2), ...parts(3)].sort());

    const asides = dynamoAsideStore(database, "outbox");
    const aside = async () => {
      const items = [];
      for await (const item of asides.list()) items.push(item);
      return items;
    };
    expect(await outbox.setAside(large(2), "never", 7)).toBe(true);
    expect(await outbox.pending("shard#1", end, 10)).toEqual([large(3)]);
    const [first = {}] = await aside();
    expect(first).toMatchObject({ parts: 3, eventId: "e2", asideReason: "never" });
    await asides.putBack(first);
    expect(await outbox.pending("shard#1", end, 10)).toEqual([large(2), large(3)]);
    await outbox.setAside(large(2), "never", 7);
    for (const item of await aside()) await asides.remove(item);
    expect(await places()).toEqual([head(3), ...parts(3)].sort());

    // Without all of its parts, a row cannot be read.
    const Key = { pk: { S: `part#shard#1#${row(3).sort}` }, sk: { S: "1" } };
    await database.send(new DeleteItemCommand({ TableName: "outbox", Key }));
    expect(await outbox.pending("shard#1", end, 10)).toMatchObject([
      { text: "", unreadable: { pk: "shard#1", eventId: "e3", parts: 3 } },
    ]);

    await put(large(7, "due#2"));
    const due = dynamoDueJobs(database, "outbox");
    expect(await due.takeBack(large(7, "due#2"), "evil")).toBe(false);
    expect(await due.takeBack(large(7, "due#2"), "acme")).toBe(true);
    expect((await places()).filter((place) => place.includes("due#2"))).toEqual([]);
  } finally {
    database.destroy();
    await stack.close();
  }
});

test("a large row that is in another transaction is not removed, and the caller hears of it", async () => {
  const busy = Object.assign(new Error("busy"), { name: "TransactionCanceledException" });
  const database = { send: () => Promise.reject(busy) } as never; // the only call of remove
  const large = { ...row(1), text: "x".repeat(400_000) };
  await expect(dynamoOutbox(database, "outbox").remove(large)).rejects.toBe(busy);
});

test("a row that is in another transaction stays where it is, and the caller hears of it", async () => {
  const busy = Object.assign(new Error("busy"), {
    name: "TransactionCanceledException",
    CancellationReasons: [{ Code: "None" }, { Code: "TransactionConflict" }],
  });
  const database = { send: () => Promise.reject(busy) } as never; // the only call of setAside and putBack
  const put = dynamoAsideStore(database, "outbox").putBack({ pk: "aside", sk: "1#e1#shard#1" });
  await expect(put).rejects.toBe(busy);
  await expect(dynamoOutbox(database, "outbox").setAside(row(1), "never", 7)).rejects.toBe(busy);
});
