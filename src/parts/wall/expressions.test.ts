import { expect, test } from "vitest";
import { createExpressions, parseKeyCondition, parseUpdate } from "./expressions.ts";

const set = (name: string, value?: string, isNested = false) => ({
  name,
  kind: "set",
  isNested,
  value,
});

test.each<[string, unknown[]]>([
  ["SET a = :a", [set("a", ":a")]],
  [" set\ta=:a , #b\n= :b ", [set("a", ":a"), set("#b", ":b")]],
  ["SET a = b", [set("a")]],
  ["SET a = a + :b, c = c-:d", [set("a"), set("c")]],
  ["SET a = if_not_exists(a, :a), b = list_append(:b, c)", [set("a"), set("b")]],
  ["SET a = (if_not_exists(a, :zero) + :one), b = :b", [set("a"), set("b", ":b")]],
  ["SET a.b[0].#c = :a", [set("a", ":a", true)]],
  ["SET a[1] = :a", [set("a", ":a", true)]],
  ["SET a[10][205] = :a", [set("a", ":a", true)]],
  [
    "REMOVE a, b.c",
    [
      { name: "a", kind: "remove", isNested: false, value: undefined },
      { name: "b", kind: "remove", isNested: true, value: undefined },
    ],
  ],
  [
    "ADD a :a DELETE b :b",
    [
      { name: "a", kind: "add", isNested: false, value: undefined },
      { name: "b", kind: "delete", isNested: false, value: undefined },
    ],
  ],
  [
    "SET a = :a REMOVE b SET c = :c",
    [
      set("a", ":a"),
      { name: "b", kind: "remove", isNested: false, value: undefined },
      set("c", ":c"),
    ],
  ],
])("finds the attributes changed by the update %j", (text, assignments) => {
  expect(parseUpdate(text)).toEqual(assignments);
});

test.each([
  "",
  "a = :a",
  "SET",
  "SET a",
  "SET a =",
  "SET :a = :b",
  "SET a = :a,",
  "SET a = (:a",
  "SET a = :a)",
  "REMOVE a :b",
  "ADD a",
  "ADD a b",
  "DELETE a :a :b",
  "UPDATE a = :a",
  "SET ä = :a",
  "SET a\u00a0= :a",
  "SET a = 'x'",
  "SET constructor",
  "constructor a = :a",
  `SET ${"a".repeat(4_100)} = :a`,
])("refuses to parse the update %j", (text) => {
  expect(parseUpdate(text)).toBeUndefined();
});

test.each<[string, [string, string?][]]>([
  ["pk = :pk", [["pk", ":pk"]]],
  [":pk=#pk", [["#pk", ":pk"]]],
  ["((pk = :pk) and (sk >= :sk))", [["pk", ":pk"], ["sk"]]],
  ["pk = :pk AND begins_with(sk, :sk)", [["pk", ":pk"], ["sk"]]],
  ["sk Between :a And :b AND (pk = :pk)", [["sk"], ["pk", ":pk"]]],
  [":a < sk AND pk = :pk", [["sk"], ["pk", ":pk"]]],
])("finds the attributes compared by the key condition %j", (text, conditions) => {
  expect(parseKeyCondition(text)).toEqual(conditions.map(([name, value]) => ({ name, value })));
});

test.each([
  "",
  "pk",
  "pk = ",
  "pk = sk",
  ":a = :b",
  "pk <> :pk",
  "pk = :pk OR pk = :other",
  "NOT pk = :pk",
  "pk = :pk AND",
  "(pk = :pk",
  "pk = :pk)",
  "(pk = :pk OR sk = :sk)",
  "pk.a = :pk",
  "pk IN (:a, :b)",
  "begins_with(:a, pk)",
  "begins_with(pk, sk)",
  "begins_with(pk, :a",
  "begins_with(pk :a)",
  "pk BETWEEN a AND :b",
  "pk BETWEEN :a OR :b",
  "pk BETWEEN :a AND b",
  "size(pk) = :a",
  "pk = :pk; DROP",
])("refuses to parse the key condition %j", (text) => {
  expect(parseKeyCondition(text)).toBeUndefined();
});

test.each([
  "(",
  "()",
  "(pk = :pk]",
  "(pk = :pk AND",
  "((pk = :pk) sk",
  "(pk = :pk sk",
  "foo(pk, :a)",
  "Begins_with(pk, :a)",
  "begins_with",
  "begins_with(",
  "begins_with(pk = :a)",
  "begins_with(pk, :a]",
  "begins_with(pk, :a, :b)",
  "begins_with pk, :a)",
  "begins_with = pk, :a)",
  "pk BETWEEN",
  "pk BETWEEN :a",
  "pk BETWEEN :a AND",
  "pk = :pk AND pk BETWEEN :a",
  // An AND that stands where a name does joins no conditions.
  "(AND BETWEEN = :a)",
  "(AND = = :a)",
])("refuses to parse the malformed key condition %j", (text) => {
  expect(parseKeyCondition(text)).toBeUndefined();
});

test("a function's or an operator's word without its operands is a name", () => {
  expect(parseKeyCondition("begins_with = :a AND between < :b")).toEqual([
    { name: "begins_with", value: ":a" },
    { name: "between", value: undefined },
  ]);
});

test("takes expressions as long as DynamoDB does", () => {
  const update = (length: number) => `SET ${"a".repeat(length - "SET  = :a".length)} = :a`;
  expect(parseUpdate(update(4_096))).toHaveLength(1);
  expect(parseUpdate(update(4_097))).toBeUndefined();
  const condition = (length: number) => `${"a".repeat(length - " = :a".length)} = :a`;
  expect(parseKeyCondition(condition(4_096))).toHaveLength(1);
  expect(parseKeyCondition(condition(4_097))).toBeUndefined();
});

test.each([
  ["pk = :a", ":a"],
  ["pk < :a", undefined],
  ["pk <= :a", undefined],
  ["pk > :a", undefined],
  ["pk >= :a", undefined],
])("the comparison %s equals %j", (text, value) => {
  expect(parseKeyCondition(text)).toEqual([{ name: "pk", value }]);
});

test.each(["pk =:a", " pk=:a ", "pk\n=\t:a\r\f", "((pk = :a))", "(pk) = :a"])(
  "spaces and parentheses around %j do not matter, but around a name",
  (text) => {
    expect(parseKeyCondition(text)).toEqual(
      text.includes("(pk)") ? undefined : [{ name: "pk", value: ":a" }],
    );
  },
);

test.each([
  "SET a[x] = :a",
  "SET a[x0] = :a",
  "SET a[#0] = :a",
  "SET a[:0] = :a",
  "SET a[0 = :a",
  "SET a[0 = = :a",
  "SET a[0[ = :a",
  "SET a.0] = :a",
  "SET a,0] = :a",
  "SET a.0 = :a",
  "SET a. = :a",
  "SET a = :a REMOVE",
  "SET a = (:a))+(:b",
  "SET a = :a + (:b",
  "ADD a (:a)",
  "DELETE a",
  "REMOVE a = :a",
  "SET = :a",
  "SET a :a",
  "1 = 1",
])("refuses to parse the update %j, too", (text) => {
  expect(parseUpdate(text)).toBeUndefined();
});

test("caches an expression's parts for each parser of its own", () => {
  const parse = createExpressions();
  expect(parse.update("SET a = :a")).toBe(parse.update("SET a = :a"));
  expect(parse.keyCondition("a = :a")).toBe(parse.keyCondition("a = :a"));
  expect(parse.update("a = :a")).toBeUndefined();
  expect(parse.keyCondition("SET a = :a")).toBeUndefined();
});

test("forgets expressions beyond a thousand", () => {
  const { update } = createExpressions();
  const first = update("SET first = :a");
  for (let index = 1; index < 1_000; index++) update(`SET a${index} = :a`);
  expect(update("SET first = :a")).toBe(first);
  update("SET another = :a");
  expect(update("SET first = :a")).not.toBe(first);
  expect(update("SET first = :a")).toEqual(first);
});

test("an expression that cannot be parsed is not remembered, so it takes no memory", () => {
  const { update } = createExpressions();
  const known = update("SET a = :a");
  for (let index = 0; index < 1_000; index++)
    expect(update(`SET ${"b".repeat(4_096)}${index} = :b`)).toBeUndefined();
  expect(update("SET a = :a")).toBe(known);
});
