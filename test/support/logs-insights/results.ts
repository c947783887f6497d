import {
  type Aggregate,
  type Command,
  type Condition,
  type Literal,
  parsedQuery,
} from "./query.ts";

export type Row = Readonly<Record<string, unknown>>;

/**
 * Applies a query of CloudWatch Logs Insights to log lines, and returns its rows.
 *
 * @throws Error for syntax that it does not know, and where AWS does not document the result: a field that is an object,
 *   a comparison of values of different types, `!=` on a line without the field.
 */
export function resultsOf(query: string, lines: readonly object[]): readonly Row[] {
  let rows: readonly Row[] = lines.map(fieldsOf);
  const shown: string[] = [];
  let isCounted = false;
  for (const command of parsedQuery(query)) {
    if (isCounted && (command.kind === "fields" || command.kind === "stats"))
      throw new Error(`${command.kind} after stats is not known`);
    if (command.kind === "fields") shown.push(...command.fields);
    isCounted ||= command.kind === "stats";
    rows = applied(command, rows);
  }
  if (isCounted) return rows;
  const columns = shown.length === 0 ? ["@timestamp", "@message"] : shown;
  return rows.map((row) => picked(row, columns));
}

/** Fields that Logs Insights discovers in a line: members of objects and elements of arrays have paths. */
function fieldsOf(line: object): Row {
  const fields: Record<string, unknown> = { "@message": JSON.stringify(line) };
  const walk = (value: unknown, path: string) => {
    if (typeof value !== "object" || value === null) {
      fields[path] = value;
      return;
    }
    if (path !== "") fields[path] = inside;
    for (const [name, member] of Object.entries(value))
      walk(member, path === "" ? name : `${path}.${name}`);
  };
  walk(line, "");
  fields["@timestamp"] = fields["time"];
  return fields;
}

/** Stands for an object or an array, which is not a field. */
const inside = Symbol("inside");

function fieldIn(row: Row, field: string): unknown {
  const value = row[field];
  if (value === inside) throw new Error(`${field} is an object; name one of its members`);
  return value;
}

function picked(row: Row, fields: readonly string[]): Row {
  return Object.fromEntries(fields.map((field) => [field, fieldIn(row, field)]));
}

function applied(command: Command, rows: readonly Row[]): readonly Row[] {
  switch (command.kind) {
    case "fields":
      return rows;
    case "filter":
      return rows.filter((row) => isTrue(command.condition, row));
    case "limit":
      return rows.slice(0, command.most);
    case "sort":
      return rows.toSorted(
        (one, other) =>
          compared(fieldIn(one, command.field), fieldIn(other, command.field)) *
          (command.isDescending ? -1 : 1),
      );
    case "stats":
      return [
        ...Map.groupBy(rows, (row) =>
          JSON.stringify(command.by.map((field) => fieldIn(row, field) ?? null)),
        ).values(),
      ].map((group) => aggregated(group, command.aggregates, command.by));
  }
}

function aggregated(
  group: readonly Row[],
  aggregates: readonly Aggregate[],
  by: readonly string[],
) {
  const totals = aggregates.map(({ of, field = "", as }) => {
    if (of === "count") return [as, group.length];
    const numbers = group
      .map((row) => fieldIn(row, field))
      .filter((value) => typeof value === "number");
    return [as, numbers.length === 0 ? undefined : Math.max(...numbers)];
  });
  return { ...picked(group[0] ?? {}, by), ...Object.fromEntries(totals) };
}

function isTrue(condition: Condition, row: Row): boolean {
  switch (condition.kind) {
    case "and":
      return condition.of.map((one) => isTrue(one, row)).every(Boolean);
    case "or":
      return condition.of.map((one) => isTrue(one, row)).some(Boolean);
    case "not":
      return !isTrue(condition.of, row);
    case "present":
      return fieldIn(row, condition.field) !== undefined;
    case "like": {
      const value = String(fieldIn(row, condition.field) ?? "");
      const { pattern } = condition;
      return typeof pattern === "string" ? value.includes(pattern) : pattern.test(value);
    }
    case "in":
      return condition.values.some((literal) => isEqual(row, condition.field, literal));
    case "compare":
      return holds(condition, row);
  }
}

function holds(
  { field, by, to }: Extract<Condition, { readonly kind: "compare" }>,
  row: Row,
): boolean {
  if (by === "=") return isEqual(row, field, to);
  const value = fieldIn(row, field);
  if (by === "!=") {
    if (value === undefined) throw new Error(`!= on a line without ${field} is not documented`);
    return !isEqual(row, field, to);
  }
  if (value === undefined) return false;
  if (typeof value !== "number" || typeof to !== "number")
    throw new Error(`${field} ${by} ${JSON.stringify(to)} does not compare two numbers`);
  if (by === "<") return value < to;
  if (by === "<=") return value <= to;
  return by === ">" ? value > to : value >= to;
}

function isEqual(row: Row, field: string, literal: Literal): boolean {
  const value = fieldIn(row, field);
  if (value === undefined || value === null) return false;
  if (typeof value !== typeof literal)
    throw new Error(`${field} is a ${typeof value}, and ${JSON.stringify(literal)} is not`);
  return value === literal;
}

/** Orders values of one column; a missing value is the smallest. */
function compared(one: unknown, other: unknown): number {
  if (typeof one === "number" && typeof other === "number") return one - other;
  const [first, second] = [String(one ?? ""), String(other ?? "")];
  return first < second ? -1 : first > second ? 1 : 0;
}
