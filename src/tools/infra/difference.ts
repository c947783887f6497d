import { isDeepStrictEqual } from "node:util";
import type { Resource, Template, TemplatePart } from "./template.ts";

export interface Change {
  readonly text: string;
  /** Loses or orphans data, or makes CloudFormation reject the deployment halfway. */
  readonly isDangerous: boolean;
}

/** An older template may lack any section. */
export type ComparedTemplate = Pick<TemplatePart, "Parameters" | "Conditions" | "Outputs"> & {
  readonly Resources: Readonly<Record<string, Partial<Resource>>>;
};

const tableType = "AWS::DynamoDB::Table";
/** Properties that CloudFormation can change only by replacing the table. */
const replacing = ["TableName", "KeySchema", "LocalSecondaryIndexes"];

/** Uses the default values of parameters. Dangerous changes come first. */
export function differences(before: ComparedTemplate, after: Template): Change[] {
  const changes = [...resourceChanges(before, after), ...sectionChanges(before, after)];
  return [
    ...changes.filter(({ isDangerous }) => isDangerous),
    ...changes.filter(({ isDangerous }) => !isDangerous),
  ];
}

function resourceChanges(before: ComparedTemplate, after: Template): Change[] {
  return idsOf(before.Resources, after.Resources).flatMap((id) => {
    const [old, now] = [own(before.Resources, id), own(after.Resources, id)];
    const name = `${id} (${(now ?? old)?.Type})`;
    if (old === undefined) return [harmless(`added: ${name}`)];
    if (now === undefined || old.Type !== now.Type) {
      const added = now === undefined ? [] : [harmless(`added: ${name}`)];
      return [removal(id, old, before), ...added];
    }
    const properties = changedMembers(
      resolved(old.Properties, before),
      resolved(now.Properties, after),
    );
    const policies = changedMembers({ ...old, Properties: {} }, { ...now, Properties: {} });
    const all = [...properties, ...policies];
    if (all.length === 0) return [];
    const dangers =
      now.Type === tableType ? tableDangers(name, properties, old, now, before, after) : [];
    return [...dangers, harmless(`changed: ${name}: ${all.join(", ")}`)];
  });
}

function removal(id: string, old: Partial<Resource>, template: ComparedTemplate): Change {
  const name = `${id} (${old.Type})`;
  if (old.Type !== tableType) return harmless(`removed: ${name}`);
  const table = shown(resolved(old.Properties, template)["TableName"]);
  const isKept = old.DeletionPolicy === "Retain";
  return dangerous(
    isKept
      ? `the table ${table} is removed: ${name} leaves the stack and stays in the account, where nothing looks after it`
      : `the table ${table} is deleted with all its items: ${name}`,
  );
}

function tableDangers(
  name: string,
  properties: readonly string[],
  old: Partial<Resource>,
  now: Resource,
  before: ComparedTemplate,
  after: Template,
): Change[] {
  const [was, is] = [resolved(old.Properties, before), resolved(now.Properties, after)];
  const replaced = properties.filter(
    (property) => replacing.includes(property) || (property === typesOf && retypes(was, is)),
  );
  const indexes = indexChanges(was, is);
  return [
    ...(replaced.length === 0
      ? []
      : [
          dangerous(
            `the table ${shown(was["TableName"])} is replaced by an empty one: ${name} changes ${replaced.join(", ")}`,
          ),
        ]),
    ...(indexes.length < 2
      ? []
      : [
          dangerous(
            `${name} changes ${indexes.length} indexes at once, and DynamoDB takes one: deploy them one after the other: ${indexes.join(", ")}`,
          ),
        ]),
  ];
}

const typesOf = "AttributeDefinitions";

function retypes(was: Members, is: Members): boolean {
  const types = new Map(
    entriesOf(was[typesOf], "AttributeName").map(([name, { AttributeType }]) => [
      name,
      AttributeType,
    ]),
  );
  return entriesOf(is[typesOf], "AttributeName").some(
    ([name, { AttributeType }]) => types.has(name) && types.get(name) !== AttributeType,
  );
}

/** Lists creations and deletions. An index with changed keys or attributes counts as both. */
function indexChanges(was: Members, is: Members): string[] {
  const indexesOf = (members: Members) =>
    new Map(entriesOf(members["GlobalSecondaryIndexes"], "IndexName"));
  const [old, now] = [indexesOf(was), indexesOf(is)];
  return [...new Set([...old.keys(), ...now.keys()])].flatMap((name) => {
    const [from, to] = [old.get(name), now.get(name)];
    if (from === undefined) return [`+${name}`];
    if (to === undefined) return [`-${name}`];
    const isSame = ["KeySchema", "Projection"].every((member) =>
      isDeepStrictEqual(from[member], to[member]),
    );
    return isSame ? [] : [`-${name}`, `+${name}`];
  });
}

function sectionChanges(before: ComparedTemplate, after: Template): Change[] {
  return (["Parameters", "Conditions", "Outputs"] as const).flatMap((section) => {
    const [old, now]: [Readonly<Record<string, unknown>>, Readonly<Record<string, unknown>>] = [
      before[section] ?? {},
      after[section],
    ];
    return idsOf(old, now).flatMap((id) => {
      const what = `${section.slice(0, -1).toLowerCase()} ${id}`;
      if (!Object.hasOwn(old, id)) return [harmless(`added: ${what}`)];
      if (!Object.hasOwn(now, id)) return [harmless(`removed: ${what}`)];
      return isDeepStrictEqual(old[id], now[id]) ? [] : [harmless(`changed: ${what}`)];
    });
  });
}

type Members = Readonly<Record<string, unknown>>;

/** Shows a changed default as a change of the property that uses it. */
function resolved(
  properties: Members = {},
  { Parameters = {} }: Pick<TemplatePart, "Parameters">,
): Members {
  const defaults = new Map(
    Object.entries(Parameters).map(([name, { Default }]) => [name, Default]),
  );
  const text = (template: string) =>
    template.replaceAll(/\$\{([^!}]+)\}/g, (whole, name: string) =>
      String(defaults.get(name) ?? whole),
    );
  const resolve = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(resolve);
    if (typeof value !== "object" || value === null) return value;
    const { Ref: name, "Fn::Sub": template } = value as {
      readonly Ref?: unknown;
      readonly "Fn::Sub"?: unknown;
    }; // safe: any object
    if (typeof name === "string" && defaults.has(name)) return defaults.get(name);
    if (typeof template === "string") return text(template);
    return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, resolve(member)]));
  };
  return Object.fromEntries(
    Object.entries(properties).map(([key, value]) => [key, resolve(value)]),
  );
}

function changedMembers(old: Members, now: Members): string[] {
  return idsOf(old, now).filter((name) => !isDeepStrictEqual(old[name], now[name]));
}

function entriesOf(list: unknown, key: string): [unknown, Members][] {
  // In a template that CloudFormation accepted, these members are lists of objects.
  return Array.isArray(list)
    ? list.flatMap((item: Members | null) => (item ? [[item[key], item]] : []))
    : [];
}

function idsOf(old: object, now: object): string[] {
  return [...new Set([...Object.keys(old), ...Object.keys(now)])];
}

function own<Item>(items: Readonly<Record<string, Item>>, id: string): Item | undefined {
  return Object.hasOwn(items, id) ? items[id] : undefined;
}

function shown(name: unknown): string {
  return typeof name === "string" ? name : "without a name of its own";
}

const harmless = (text: string): Change => ({ text, isDangerous: false });
const dangerous = (text: string): Change => ({ text, isDangerous: true });
