import { createRequire } from "node:module";
import { expect, test } from "vitest";
import {
  cacheExpressions,
  type ExpressionContext,
  type ExpressionParser,
} from "./expression-cache.ts";

type Kind = "condition" | "update" | "projection";
type Values = NonNullable<ExpressionContext["attrVals"]>;

/** Not the module that stacks in this process use, which may have a cache already. */
function ownParser(kind: Kind) {
  const require = createRequire(import.meta.url);
  const id = require.resolve(`dynalite/db/${kind}Parser`);
  const shared = require.cache[id];
  delete require.cache[id];
  const parser = require(id) as ExpressionParser;
  delete require.cache[id];
  if (shared !== undefined) require.cache[id] = shared;
  return parser;
}

function countedParser(kind: Kind) {
  const parser = ownParser(kind);
  const { parse } = parser;
  const parsed: string[] = [];
  parser.parse = (text, options) => {
    parsed.push(text);
    return parse(text, options);
  };
  cacheExpressions(parser);
  return { parser, parsed };
}

function parsedBy(
  { parse }: ExpressionParser,
  text: string,
  attrVals?: Values,
  attrNames?: Record<string, string>,
) {
  const unused = (given: object = {}): Record<string, true> =>
    Object.fromEntries(Object.keys(given).map((name) => [name, true]));
  const context = {
    ...{ unusedAttrNames: unused(attrNames), unusedAttrVals: unused(attrVals) },
    ...(attrNames && { attrNames }),
    ...(attrVals && { attrVals }),
    isReserved: (name: string) => name.toUpperCase() === "COUNT",
    compare: (_comparison: string, one: { N: string }, other: { N: string }) => one.N > other.N,
  };
  let result: unknown;
  try {
    result = parse(text, { context });
  } catch (error) {
    result = String(error);
  }
  return { result, unused: [context.unusedAttrNames, context.unusedAttrVals] };
}

const names = { "#a": "a", "#b": "b" };
const one = { ":n": { N: "1" }, ":s": { S: "S" } };
const other = { ":n": { N: "2" }, ":s": { S: "N" } };
const set = { ":n": { NS: ["1"] }, ":s": { BS: ["AA=="] } };

test.each<[Kind, string, Values?]>([
  ["condition", "attribute_not_exists(a)"],
  ["condition", "a = :n"],
  ["condition", ":n = a AND begins_with(#b, :s)"],
  ["condition", "NOT (a.b[2].#a IN (:n, :s) OR size(#b) > :n)"],
  ["condition", "a <> :n OR __proto__.toString = :s", { ...one, ":never": { BOOL: true } }],
  ["condition", "attribute_type(a, :s)"],
  ["condition", "a BETWEEN :n AND :high", { ":n": { N: "2" }, ":high": { N: "2" } }],
  ["condition", "((a = :n))"],
  ["condition", "count = :n"],
  ["condition", "a = :missing"],
  ["condition", "a ="],
  ["update", "SET #a = :n, b.c[1] = if_not_exists(b.c[1], :s) REMOVE d"],
  ["update", "ADD #a :n DELETE #b :s"],
  ["update", "SET #a = #a + :n"],
  ["projection", "#a, c[1].d"],
])("a cached %s parses as without a cache: %s", (kind, text, given = one) => {
  const plain = ownParser(kind);
  const { parser } = countedParser(kind);
  for (const values of [given, other, given, set, other, undefined])
    expect(parsedBy(parser, text, values, names)).toEqual(parsedBy(plain, text, values, names));
  expect(parsedBy(parser, text)).toEqual(parsedBy(plain, text));
});

test("an expression is parsed once for the same names and types, whatever its values", () => {
  const { parser, parsed } = countedParser("condition");
  const text = "#a = :n AND b <> :s";
  for (let n = 0; n < 3; n += 1)
    parsedBy(parser, text, { ":n": { N: String(n) }, ":s": { S: "" } }, names);
  expect(parsed).toEqual([text]);
  parsedBy(parser, text, set, names);
  parsedBy(parser, text, one, { "#a": "other" });
  expect(parsed).toEqual([text, text, text]);
});

test("a change of what a parser returned does not reach the next one", () => {
  const { parser } = countedParser("condition");
  const before = parsedBy(parser, "a = :n", one);
  // Safe cast: the form of dynalite's expressions.
  const { expression } = before.result as { expression: { type: string; args: unknown[] } };
  const kept = structuredClone(expression);
  expression.type = "<>";
  expression.args.reverse();
  expect(parsedBy(parser, "a = :n", one).result).toMatchObject({ expression: kept });
});

test("the cache is bounded, in expressions and in their length", () => {
  const { parser, parsed } = countedParser("condition");
  for (let n = 0; n <= 500; n += 1) parsedBy(parser, `a${n} = :n`, one);
  parsed.length = 0;
  parsedBy(parser, "a500 = :n", one);
  expect(parsed).toEqual([]);
  parsedBy(parser, "a0 = :n", one);
  expect(parsed).toEqual(["a0 = :n"]);
  const long = `a = :n${" OR a = :n".repeat(1_000)}`;
  for (let time = 0; time < 2; time += 1) parsedBy(parser, long, one);
  expect(parsed.slice(1)).toEqual([long, long]);
});

test("stacks of one process share a cache", () => {
  const { parser } = countedParser("condition");
  const { parse } = parser;
  cacheExpressions(parser);
  expect(parser.parse).toBe(parse);
});
