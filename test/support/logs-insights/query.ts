import { type Token, tokensOf } from "./tokens.ts";

export type Literal = string | number;
export type Comparison = "=" | "!=" | "<" | "<=" | ">" | ">=";
const comparisons: readonly string[] = ["=", "!=", "<", "<=", ">", ">="] satisfies Comparison[];

export type Condition =
  | { readonly kind: "and" | "or"; readonly of: readonly [Condition, Condition] }
  | { readonly kind: "not"; readonly of: Condition }
  | { readonly kind: "present"; readonly field: string }
  | {
      readonly kind: "compare";
      readonly field: string;
      readonly by: Comparison;
      readonly to: Literal;
    }
  | { readonly kind: "like"; readonly field: string; readonly pattern: string | RegExp }
  | { readonly kind: "in"; readonly field: string; readonly values: readonly Literal[] };

export interface Aggregate {
  readonly of: "count" | "max";
  /** Absent for `count(*)`. */
  readonly field?: string;
  readonly as: string;
}

export type Command =
  | { readonly kind: "fields"; readonly fields: readonly string[] }
  | { readonly kind: "filter"; readonly condition: Condition }
  | { readonly kind: "sort"; readonly field: string; readonly isDescending: boolean }
  | { readonly kind: "limit"; readonly most: number }
  | {
      readonly kind: "stats";
      readonly aggregates: readonly Aggregate[];
      readonly by: readonly string[];
    };

/**
 * Parses the part of the language of CloudWatch Logs Insights that the runbook uses.
 *
 * @throws Error for any other syntax.
 */
export function parsedQuery(query: string): readonly Command[] {
  const reader = readerOf(tokensOf(query));
  const commands = [commandFrom(reader)];
  while (reader.takes("|")) commands.push(commandFrom(reader));
  reader.end();
  return commands;
}

type Reader = ReturnType<typeof readerOf>;

function readerOf(tokens: readonly Token[]) {
  let at = 0;
  const refuse = (expected: string): never => {
    throw new Error(`expected ${expected}, not ${JSON.stringify(tokens[at] ?? "the end")}`);
  };
  const isNext = (text: string) => {
    const token = tokens[at];
    return (token?.kind === "word" || token?.kind === "symbol") && token.text === text;
  };
  const takes = (text: string) => {
    const isIt = isNext(text);
    if (isIt) at += 1;
    return isIt;
  };
  return {
    refuse,
    takes,
    expect: (text: string) => takes(text) || refuse(text),
    /** Takes a token if `read` accepts it. */
    take<Value>(expected: string, read: (token: Token) => Value | undefined): Value {
      const token = tokens[at];
      const value = token && read(token);
      if (value === undefined) return refuse(expected);
      at += 1;
      return value;
    },
    end: () => at === tokens.length || refuse("the end"),
  };
}

/** Words of the language, which a query has to quote if they are fields. */
const reserved = [
  ...["and", "or", "not", "like", "in", "by", "as", "asc", "desc"],
  ...["fields", "filter", "sort", "stats", "limit", "count", "max", "min", "sum", "avg"],
];

const wordFrom = (reader: Reader, expected: string) =>
  reader.take(expected, (token) => (token.kind === "word" ? token.text : undefined));

function fieldFrom(reader: Reader): string {
  return reader.take("a field", (token) => {
    if (token.kind === "quoted") return token.value;
    return token.kind === "word" && !reserved.includes(token.text) ? token.text : undefined;
  });
}

function listFrom<Item>(reader: Reader, item: (reader: Reader) => Item): readonly Item[] {
  const items = [item(reader)];
  while (reader.takes(",")) items.push(item(reader));
  return items;
}

function commandFrom(reader: Reader): Command {
  const name = wordFrom(reader, "a command");
  if (name === "fields") return { kind: "fields", fields: listFrom(reader, fieldFrom) };
  if (name === "filter") return { kind: "filter", condition: conditionFrom(reader) };
  if (name === "limit") return { kind: "limit", most: numberFrom(reader) };
  if (name === "sort") {
    const field = fieldFrom(reader);
    if (reader.takes("desc")) return { kind: "sort", field, isDescending: true };
    reader.expect("asc");
    return { kind: "sort", field, isDescending: false };
  }
  if (name !== "stats") return reader.refuse("fields, filter, sort, stats or limit");
  const aggregates = listFrom(reader, aggregateFrom);
  return { kind: "stats", aggregates, by: reader.takes("by") ? listFrom(reader, fieldFrom) : [] };
}

function aggregateFrom(reader: Reader): Aggregate {
  const of = wordFrom(reader, "count or max");
  reader.expect("(");
  if (of === "count") {
    reader.expect("*");
    reader.expect(")");
    reader.expect("as");
    return { of, as: fieldFrom(reader) };
  }
  if (of !== "max") return reader.refuse("count(*) or max(field)");
  const field = fieldFrom(reader);
  reader.expect(")");
  reader.expect("as");
  return { of, field, as: fieldFrom(reader) };
}

function conditionFrom(reader: Reader): Condition {
  let condition = conjunctionFrom(reader);
  while (reader.takes("or")) condition = { kind: "or", of: [condition, conjunctionFrom(reader)] };
  return condition;
}

function conjunctionFrom(reader: Reader): Condition {
  let condition = termFrom(reader);
  while (reader.takes("and")) condition = { kind: "and", of: [condition, termFrom(reader)] };
  return condition;
}

function termFrom(reader: Reader): Condition {
  if (reader.takes("not")) return { kind: "not", of: termFrom(reader) };
  if (reader.takes("(")) {
    const condition = conditionFrom(reader);
    reader.expect(")");
    return condition;
  }
  const field = fieldFrom(reader);
  if (field === "ispresent") {
    reader.expect("(");
    const present = fieldFrom(reader);
    reader.expect(")");
    return { kind: "present", field: present };
  }
  if (reader.takes("in")) {
    reader.expect("[");
    const values = listFrom(reader, literalFrom);
    reader.expect("]");
    return { kind: "in", field, values };
  }
  if (reader.takes("like"))
    return { kind: "like", field, pattern: reader.take("a string or a pattern", patternOf) };
  const by = reader.take("a comparison", (token) =>
    token.kind === "symbol" && comparisons.includes(token.text) ? token.text : undefined,
  );
  // Safe cast: one of the comparisons.
  return { kind: "compare", field, by: by as Comparison, to: literalFrom(reader) };
}

const patternOf = (token: Token) =>
  token.kind === "text" || token.kind === "pattern" ? token.value : undefined;

const numberFrom = (reader: Reader) =>
  reader.take("a number", (token) => (token.kind === "number" ? token.value : undefined));

function literalFrom(reader: Reader): Literal {
  return reader.take("a string or a number", (token) =>
    token.kind === "text" || token.kind === "number" ? token.value : undefined,
  );
}
