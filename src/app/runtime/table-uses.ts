import type { Wall } from "../../parts/wall/wall.ts";
import { walledStack } from "../../parts/wall/walled-stack.ts";
import { tableOf } from "../../parts/wall/walled-table.ts";
import { covers, type Reach, type Runner, reachOf, runnersOf } from "../registry/reach.ts";
import type { Registry } from "../registry/registry.ts";
import type { Runtime } from "./runtime.ts";

/**
 * Adds a check to a wall, or creates one: a handler may access the tables of its feature and of the
 * features in its `uses`, like its generated role. For tests and development, which have no roles.
 */
export function withUses(
  runtime: Pick<Runtime, "server" | "tableName">,
  wall?: Pick<Wall, "stackFor"> & Partial<Wall>,
): Wall {
  const check = createUseCheck(runtime);
  return {
    stackFor: (stack, caller) =>
      walledStack(wall?.stackFor(stack, caller) ?? stack, {
        check: (operation, input) => check(operation, input, caller.handler),
      }),
    checkItems: (items, caller) => {
      const error = check("TransactWriteItems", { TransactItems: items }, caller.handler);
      if (error !== undefined) throw error;
      return wall?.checkItems?.(items, caller) ?? items;
    },
    account: wall?.account,
  };
}

interface OwnedTable {
  readonly feature: string;
  readonly table: string;
}

function createUseCheck({
  server: { registry },
  tableName,
}: Pick<Runtime, "server" | "tableName">) {
  const owned = ownedTables(registry, tableName);
  const find = (handler: string) => {
    const runners = runnersOf(registry, handler);
    return runners && { runners, reach: reachOf(registry, runners) };
  };
  const known = new Map<string, ReturnType<typeof find>>();
  const allowedTo = (handler: string) => {
    if (!known.has(handler)) known.set(handler, find(handler));
    return known.get(handler);
  };
  return (operation: string, input: unknown, handler = ""): Error | undefined => {
    const allowed = allowedTo(handler);
    // Scripts, tests and handlers that keelson does not declare have no generated role.
    if (allowed === undefined) return undefined;
    for (const [name, needed] of accessesOf(operation, input)) {
      const owners = owned.get(String(tableOf(name))) ?? [];
      const isOwn = owners.some(({ feature }) =>
        allowed.runners.some((runner) => runner.feature === feature),
      );
      if (isOwn || owners.some(({ feature }) => covers(allowed.reach.get(feature), needed)))
        continue;
      for (const owner of owners) return misuse(registry, handler, allowed.runners, owner, needed);
    }
    return undefined;
  };
}

/** Returns the features' tables by physical name. Variables may give two tables one name. */
function ownedTables({ features }: Registry, tableName: Runtime["tableName"]) {
  const tables = features.flatMap(({ name: feature, tables }) =>
    tables.map(({ name: table }): OwnedTable => ({ feature, table })),
  );
  return Map.groupBy(tables, ({ table }) => String(tableOf(tableName(table))));
}

function misuse(
  { features }: Registry,
  handler: string,
  runners: readonly Runner[],
  { feature: owner, table }: OwnedTable,
  needed: Reach,
): Error {
  const what = `${handler} ${needed === "write" ? "writes to" : "reads"} the table ${table} of the feature ${owner}`;
  if (needed !== "query" && runners.every(({ isQuery }) => isQuery)) {
    return new Error(`${what}, and a query only reads; move this to a write, a consumer or a job`);
  }
  // The cast is safe: a name with runners has at least one.
  const [{ feature }] = runners as readonly [Runner];
  const declared = features.flatMap(({ name, uses }) => (name === feature ? [...uses] : []));
  const uses = [...new Map([...declared, [owner, needed === "write" ? "write" : "read"]])]
    .map(
      ([name, use]) =>
        `${/^[a-z]+$/.test(name) ? name : JSON.stringify(name)}: ${JSON.stringify(use)}`,
    )
    .join(", ");
  const line = `defineFeature(${JSON.stringify(feature)}, …, { uses: { ${uses} } })`;
  return new Error(`${what}, which its generated role does not allow; declare it: ${line}`);
}

/** Access that each operation on rows needs, and each action within a transaction. */
const needs: Readonly<Record<string, Reach>> = {
  ...{ GetItem: "query", BatchGetItem: "query", Query: "query", Scan: "query", Get: "query" },
  ...{ PutItem: "write", UpdateItem: "write", DeleteItem: "write", BatchWriteItem: "write" },
  ...{ Put: "write", Update: "write", Delete: "write", ConditionCheck: "check" },
};

function accessesOf(
  operation: string,
  input: unknown,
): (readonly [table: unknown, needed: Reach])[] {
  const { TableName: name, RequestItems: requests, TransactItems: items } = fieldsOf(input);
  if (Array.isArray(items)) {
    return items.flatMap((item) =>
      Object.entries(fieldsOf(item)).flatMap(([action, parts]) =>
        accessesOf(action, fieldsOf(parts)),
      ),
    );
  }
  const needed = needs[operation];
  if (needed === undefined) return [];
  const names: readonly unknown[] = name === undefined ? Object.keys(fieldsOf(requests)) : [name];
  return names.map((table) => [table, needed] as const);
}

function fieldsOf(value: unknown): Readonly<Record<string, unknown>> {
  return Object(value) as Readonly<Record<string, unknown>>; // safe: any member of an object may be read
}
