import { type RawOptions, type Report, unknownOptions } from "../../base/errors/declared.ts";
import { quoted } from "../../base/errors/quoted.ts";
import { type IndexDeclaration, reservedTables, type TableDeclaration } from "./table.ts";

/**
 * DynamoDB's limits: global indexes per table, projected attributes per index, and projected
 * attributes per table.
 */
const [mostIndexes, mostProjected, mostProjectedInAll] = [20, 20, 100];

export function table(name: string, options: RawOptions, report: Report): TableDeclaration {
  const key = `table ${name}`;
  unknownOptions(key, options, ["partitionKey", "sortKey", "tenant", "indexes"], report);
  const { partitionKey, sortKey, tenant, indexes } = options ?? {};
  if (typeof name !== "string" || !/^[a-z][a-z0-9-]{0,62}$/.test(name)) {
    report({
      key,
      rule: "table-name",
      message: `table name ${JSON.stringify(name)} is not in kebab case`,
      fix: "name it with lower-case letters, digits and hyphens, beginning with a letter",
    });
  }
  if (reservedTables.includes(name)) {
    report({
      key,
      rule: "table-reserved",
      message: `table name ${JSON.stringify(name)} is keelson's own`,
      fix: "choose another name",
    });
  }
  if (!areKeys(partitionKey, sortKey)) {
    report({
      key,
      rule: "table-keys",
      message: "`partitionKey` and `sortKey` are not two attribute names",
      fix: 'name the attributes, for example { partitionKey: "pk", sortKey: "sk" }',
    });
  }
  if (tenant !== undefined && typeof tenant !== "boolean") {
    const fix = "use true, or leave it out";
    report({ key, rule: "table-tenant", message: `\`tenant\` is ${quoted(tenant)}`, fix });
  }
  const keys = keysOf(partitionKey, sortKey);
  return {
    name: String(name),
    ...keys,
    ...(tenant === true ? { tenant } : {}),
    indexes: indexesOf(key, keys, indexes, report),
  };
}

type Keys = Pick<TableDeclaration, "partitionKey" | "sortKey">;

function indexesOf(
  tableKey: string,
  tableKeys: Keys,
  given: unknown,
  report: Report,
): IndexDeclaration[] {
  if (given === undefined) return [];
  if (typeof given !== "object" || given === null || Array.isArray(given)) {
    const fix = 'pass indexes: { byOwner: { partitionKey: "owner", sortKey: "createdAt" } }';
    report({
      key: tableKey,
      rule: "table-indexes",
      message: "`indexes` is not an object of indexes by name",
      fix,
    });
    return [];
  }
  const indexes = Object.entries(given).map(([name, options]) =>
    index(tableKey, tableKeys, name, options, report),
  );
  const tooMany = (what: string, count: number, most: number) =>
    report({
      key: tableKey,
      rule: "table-indexes",
      message: `it has ${count} ${what}, and DynamoDB allows a table ${most}`,
      fix: "declare fewer, or move some to another table",
    });
  if (indexes.length > mostIndexes) tooMany("indexes", indexes.length, mostIndexes);
  const projected = indexes.reduce((sum, { project = [] }) => sum + project.length, 0);
  if (projected > mostProjectedInAll)
    tooMany("attributes in the `project` of its indexes", projected, mostProjectedInAll);
  return indexes;
}

function index(
  tableKey: string,
  tableKeys: Keys,
  name: string,
  given: unknown,
  report: Report,
): IndexDeclaration {
  const key = `${tableKey} index ${name}`;
  const options = given as RawOptions; // safe: every member is `unknown`, and each access allows `undefined`
  unknownOptions(key, options, ["partitionKey", "sortKey", "project"], report);
  const { partitionKey, sortKey, project } = options ?? {};
  const problem = (rule: string, message: string, fix: string) =>
    report({ key, rule, message, fix });
  if (!/^[A-Za-z0-9_.-]{3,255}$/.test(name)) {
    const fix = "name it with 3 to 255 letters, digits, `_`, `.` and `-`, for example byOwner";
    problem("index-name", `DynamoDB takes no index name ${quoted(name)}`, fix);
  }
  const keys = keysOf(partitionKey, sortKey);
  if (!areKeys(partitionKey, sortKey)) {
    const fix = 'name the attributes, for example { partitionKey: "owner", sortKey: "createdAt" }';
    problem("index-keys", "`partitionKey` and `sortKey` are not two attribute names", fix);
  } else if (keys.partitionKey === tableKeys.partitionKey && keys.sortKey === tableKeys.sortKey) {
    problem(
      "index-keys",
      "its keys are the table's own",
      "query the table itself, or lead the index by another attribute",
    );
  }
  if (project === undefined) return { name, ...keys, project };
  if (!Array.isArray(project) || !project.every(isAttributeName)) {
    const fix =
      'list the attributes that queries of the index read, for example ["size"]; without `project` it has all';
    problem("index-project", "`project` is not a list of attribute names", fix);
    return { name, ...keys, project: [] };
  }
  const ownKeys = [tableKeys.partitionKey, tableKeys.sortKey, keys.partitionKey, keys.sortKey];
  const attributes = [...new Set(project)].filter((attribute) => !ownKeys.includes(attribute));
  if (attributes.length > mostProjected) {
    const message = `\`project\` has ${attributes.length} attributes, and DynamoDB allows an index ${mostProjected}`;
    problem("index-project", message, "list fewer, or leave `project` out to have all");
  }
  return { name, ...keys, project: attributes };
}

function areKeys(partitionKey: unknown, sortKey: unknown): boolean {
  return (
    isAttributeName(partitionKey) &&
    (sortKey === undefined || (isAttributeName(sortKey) && sortKey !== partitionKey))
  );
}

function keysOf(partitionKey: unknown, sortKey: unknown): Keys {
  return {
    partitionKey: String(partitionKey),
    sortKey: sortKey === undefined ? undefined : String(sortKey),
  };
}

/** Checks a name for a key attribute or a projected attribute. */
function isAttributeName(value: unknown): value is string {
  return typeof value === "string" && value !== "" && Buffer.byteLength(value) <= 255;
}
