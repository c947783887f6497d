import { describe, expect, test } from "vitest";
import {
  itemProblem,
  keyProblem,
  queryProblem,
  unreadable,
  updateProblem,
} from "./check-command.ts";
import { createExpressions } from "./expressions.ts";

const reach = {
  table: {
    name: "files",
    partitionKey: "pk",
    indexes: new Map([["byOwner", "owner"]]),
    led: ["pk", "owner"],
  },
  prefix: "acme/",
  parse: createExpressions(),
};
const foreign = (attribute: string) => `${attribute} does not start with the tenant`;
const late = (attribute: string) => `${attribute} is a promise, which is not awaited`;

test.each<[string, unknown, string | undefined]>([
  ["accepts the tenant's key", { pk: "acme/1", sk: "x" }, undefined],
  ["accepts the tenant's key in wire form", { pk: { S: "acme/1" } }, undefined],
  ["refuses the key of another tenant", { pk: "globex/1" }, foreign("pk")],
  ["refuses a tenant in the middle of the key", { pk: "x/acme/1" }, foreign("pk")],
  ["refuses another tenant in wire form", { pk: { S: "globex/1" } }, foreign("pk")],
  ["refuses a key with a second type", { pk: { S: "acme/1", B: "globex" } }, foreign("pk")],
  ["refuses a key of another type", { pk: { N: "1" } }, foreign("pk")],
  ["refuses a key whose text is no text", { pk: { S: 1 } }, foreign("pk")],
  ["refuses a number", { pk: 1 }, foreign("pk")],
  ["refuses null", { pk: null }, foreign("pk")],
  ["refuses a list", { pk: ["acme/1"] }, foreign("pk")],
  ["refuses a command without the partition key", { sk: "acme/1" }, "it has no pk"],
  [
    "refuses a command whose partition key is undefined",
    { pk: undefined, sk: "acme/1" },
    "it has no pk",
  ],
  ["refuses a partition key that nobody awaited", { pk: Promise.resolve("acme/1") }, late("pk")],
  [
    "refuses a key that nobody awaited",
    Promise.resolve({ pk: "acme/1" }),
    "its Key is a promise, which is not awaited",
  ],
  ["cannot read a key that is absent", undefined, unreadable],
  ["cannot read a list of keys", [{ pk: "acme/1" }], unreadable],
  ["cannot read a text", "acme/1", unreadable],
])("the check of a key %s", (_, key, problem) => {
  expect(keyProblem(key, reach)).toBe(problem);
});

test.each<[string, unknown, string | undefined]>([
  ["accepts the tenant's row", { pk: "acme/1", owner: "acme/ann" }, undefined],
  ["accepts a row that an index does not have", { pk: "acme/1" }, undefined],
  ["refuses a row without its key", { owner: "acme/ann" }, "it has no pk"],
  ["refuses a key that nobody awaited", { pk: Promise.resolve("acme/1") }, late("pk")],
  [
    "refuses a value of an index that nobody awaited",
    { pk: "acme/1", owner: Promise.resolve("acme/ann") },
    late("owner"),
  ],
  [
    "refuses a row that nobody awaited",
    Promise.resolve({ pk: "acme/1" }),
    "its Key or Item is a promise, which is not awaited",
  ],
  ["refuses another tenant's row", { pk: "globex/1" }, foreign("pk")],
  ["refuses a row in another tenant's index", { pk: "acme/1", owner: "ann" }, foreign("owner")],
  ["refuses null in an index", { pk: "acme/1", owner: null }, foreign("owner")],
  ["cannot read a row that is null", null, unreadable],
])("the check of an item %s", (_, item, problem) => {
  expect(itemProblem(item, reach)).toBe(problem);
});

describe("the check of an update", () => {
  const update = (text: unknown, given: object = {}) =>
    updateProblem({ UpdateExpression: text, ...given }, reach);
  const values = (value: unknown) => ({ ExpressionAttributeValues: { ":o": value } });
  const onlySet = "owner may only be set to a value or removed";

  test("accepts an update without an expression", () => {
    expect(updateProblem({}, reach)).toBeUndefined();
  });

  test.each(["SET state = :s", "ADD size :n", "REMOVE owner", "SET owners = :s, state = owner"])(
    "accepts %s, which leaves the keys alone",
    (text) => {
      expect(update(text)).toBeUndefined();
    },
  );

  test.each([
    ["owner", {}],
    ["#o", { ExpressionAttributeNames: { "#o": "owner" } }],
  ])("lets %s be set to a value of the tenant only", (name, names) => {
    expect(update(`SET ${name} = :o`, { ...names, ...values("acme/ann") })).toBeUndefined();
    expect(update(`SET ${name} = :o`, { ...names, ...values({ S: "acme/ann" }) })).toBeUndefined();
    expect(update(`SET ${name} = :o`, { ...names, ...values("globex/ann") })).toBe(
      foreign("owner"),
    );
  });

  test("refuses a key set to a value that the command lacks", () => {
    expect(update("SET owner = :o")).toBe(foreign("owner"));
    expect(update("SET owner = :o", { ExpressionAttributeValues: ["acme/ann"] })).toBe(
      foreign("owner"),
    );
    expect(update("SET owner = :x", values("acme/ann"))).toBe(foreign("owner"));
    expect(update("SET owner = :o", values(Promise.resolve("acme/ann")))).toBe(late("owner"));
  });

  test.each([
    "SET owner = state",
    "SET owner.name = :o",
    "REMOVE owner.name",
    "ADD owner :o",
    "DELETE owner :o",
    "SET state = :o, owner = pk",
  ])("refuses %s, whose outcome it cannot know", (text) => {
    expect(update(text, values("acme/ann"))).toBe(onlySet);
  });

  test.each(["SET", "nothing", 1, null, { S: "SET a = :a" }])("cannot read %j", (text) => {
    expect(update(text)).toBe("its UpdateExpression cannot be read");
  });

  test.each([
    {},
    { ExpressionAttributeNames: { "#other": "owner" } },
    { ExpressionAttributeNames: { "#o": 1 } },
    { ExpressionAttributeNames: ["owner"] },
    { ExpressionAttributeNames: null },
  ])("refuses a name that %j does not resolve", (names) => {
    expect(update("SET #o = :o", { ...names, ...values("acme/ann") })).toBe(
      "its UpdateExpression names no attribute",
    );
  });
});

describe("the check of a query", () => {
  const query = (given: object) => queryProblem({ ...byKey, ...given }, reach);
  const byKey = {
    KeyConditionExpression: "pk = :pk AND sk > :sk",
    ExpressionAttributeValues: { ":pk": "acme/1", ":sk": "x" },
  };
  const byOwner = {
    IndexName: "byOwner",
    KeyConditionExpression: "#o = :o",
    ExpressionAttributeNames: { "#o": "owner" },
    ExpressionAttributeValues: { ":o": "acme/ann" },
  };

  test("accepts the tenant's rows in the table and in an index", () => {
    expect(query({})).toBeUndefined();
    expect(query(byOwner)).toBeUndefined();
  });

  test("refuses another tenant's rows in the table and in an index", () => {
    expect(query({ ExpressionAttributeValues: { ":pk": "globex/1" } })).toBe(foreign("pk"));
    expect(query({ ...byOwner, ExpressionAttributeValues: { ":o": "globex/ann" } })).toBe(
      foreign("owner"),
    );
  });

  test("refuses a key that nobody awaited", () => {
    const values = { ":pk": Promise.resolve("acme/1"), ":sk": "x" };
    expect(query({ ExpressionAttributeValues: values })).toBe(late("pk"));
  });

  test.each(["pk > :pk", "begins_with(pk, :pk)", "pk BETWEEN :pk AND :pk", "pk = :none"])(
    "refuses %s, which also reaches other keys",
    (KeyConditionExpression) => {
      expect(query({ KeyConditionExpression })).toBe(foreign("pk"));
    },
  );

  test("refuses a range of keys, whatever other values the command has", () => {
    const values = { ":pk": "acme/1", undefined: "acme/1", "": "acme/1" };
    expect(query({ KeyConditionExpression: "pk > :pk", ExpressionAttributeValues: values })).toBe(
      foreign("pk"),
    );
  });

  test("refuses a second condition that leaves the tenant, in either order", () => {
    expect(query({ KeyConditionExpression: "pk = :pk AND pk > :pk" })).toBe(foreign("pk"));
    expect(query({ KeyConditionExpression: "pk > :pk AND pk = :pk" })).toBe(foreign("pk"));
  });

  test("refuses a query whose conditions leave out the key", () => {
    expect(query({ KeyConditionExpression: "sk = :pk" })).toBe("it has no condition on pk");
    expect(query({ ...byOwner, KeyConditionExpression: "pk = :o" })).toBe(
      "it has no condition on owner",
    );
    expect(query({ KeyConditionExpression: "#p = :pk" })).toBe("it has no condition on pk");
  });

  test("refuses an index that the table does not declare", () => {
    expect(query({ ...byOwner, IndexName: "byState" })).toBe("its index is not declared");
    expect(query({ ...byOwner, IndexName: null })).toBe("its index is not declared");
  });

  test.each([undefined, 1, "pk", "pk = :pk OR pk = :x"])("cannot read the condition %j", (text) => {
    expect(query({ KeyConditionExpression: text })).toBe(
      "its KeyConditionExpression cannot be read",
    );
  });

  test("continues only from a row of the tenant", () => {
    const start = "its ExclusiveStartKey is not one of this tenant";
    const own = { pk: "acme/1", owner: "acme/ann" };
    expect(query({ ExclusiveStartKey: { pk: "acme/1" } })).toBeUndefined();
    expect(query({ ...byOwner, ExclusiveStartKey: own })).toBeUndefined();
    expect(query({ ...byOwner, ExclusiveStartKey: { ...own, pk: "globex/1" } })).toBe(start);
    expect(query({ ...byOwner, ExclusiveStartKey: { ...own, owner: "globex/ann" } })).toBe(start);
    expect(query({ ExclusiveStartKey: { pk: "globex/1" } })).toBe(start);
    expect(query({ ExclusiveStartKey: "acme/1" })).toBe(start);
    expect(query({ ExclusiveStartKey: null })).toBe(start);
  });
});
