import { isDeepStrictEqual } from "node:util";
import { tableType } from "./data-parts.ts";
import {
  type Members,
  mappedMembers,
  own,
  type Resource,
  type Template,
  type TemplatePart,
} from "./template.ts";

export interface Change {
  readonly text: string;
  /** Whether the change loses or orphans data, or makes CloudFormation fail halfway. */
  readonly isDangerous: boolean;
}

/** An older template may lack any section. */
export type ComparedTemplate = Omit<TemplatePart, "Resources"> & {
  readonly Resources: Readonly<Record<string, Partial<Resource>>>;
};

/** Changing one replaces the table. */
const replacing = ["TableName", "KeySchema", "LocalSecondaryIndexes"];
const typesOf = "AttributeDefinitions";

/** Parameters count with their defaults. Dangerous changes come first. */
export function differences(before: ComparedTemplate, after: Template): Change[] {
  const changes = [
    ...resourceChanges(before, after),
    ...segmentDangers(before, after),
    ...sectionChanges(before, after),
  ];
  return changes.toSorted((one, other) => Number(other.isDangerous) - Number(one.isDangerous));
}

function resourceChanges(before: ComparedTemplate, after: Template): Change[] {
  return idsOf(before.Resources, after.Resources).flatMap((id) => {
    const [old, now] = [own(before.Resources, id), own(after.Resources, id)];
    const name = `${id} (${(now ?? old)?.Type})`;
    if (old === undefined) return [harmless(`added: ${name}`)];
    const was = resolved(old.Properties, before);
    if (now === undefined || old.Type !== now.Type) {
      const added = now === undefined ? [] : [harmless(`added: ${name}`)];
      return [removal(`${id} (${old.Type})`, old, was), ...added];
    }
    const is = resolved(now.Properties, after);
    const properties = changedMembers(was, is);
    const policies = changedMembers({ ...old, Properties: {} }, { ...now, Properties: {} });
    const all = [...properties, ...policies];
    if (all.length === 0) return [];
    const dangers = now.Type === tableType ? tableDangers(name, properties, was, is) : [];
    return [...dangers, harmless(`changed: ${name}: ${all.join(", ")}`)];
  });
}

const queueType = "AWS::SQS::Queue";

function removal(name: string, { Type, DeletionPolicy }: Partial<Resource>, was: Members): Change {
  if (Type === queueType && DeletionPolicy !== undefined)
    return dangerous(
      `the queue ${shown(was["QueueName"])} is removed: ${name} leaves the stack and stays in the account, and no version reads the messages in it`,
    );
  if (Type !== tableType) return harmless(`removed: ${name}`);
  const table = `the table ${shown(was["TableName"])} is`;
  return dangerous(
    DeletionPolicy === "Retain"
      ? `${table} removed: ${name} leaves the stack and stays in the account, outside of any stack`
      : `${table} deleted with all its items: ${name}`,
  );
}

function tableDangers(name: string, properties: readonly string[], was: Members, is: Members) {
  const replaced = properties.filter(
    (property) => replacing.includes(property) || (property === typesOf && retypes(was, is)),
  );
  const indexes = indexChanges(was, is);
  const emptied = `the table ${shown(was["TableName"])} is replaced by an empty one: ${name} changes ${replaced.join(", ")}`;
  const many = `${name} changes ${indexes.length} indexes, and DynamoDB accepts one per update: deploy them one after the other: ${indexes.join(", ")}`;
  return [
    ...(replaced.length > 0 ? [dangerous(emptied)] : []),
    ...(indexes.length > 1 ? [dangerous(many)] : []),
  ];
}

function retypes(was: Members, is: Members) {
  const types = entriesOf(was, typesOf, "AttributeName");
  return [...entriesOf(is, typesOf, "AttributeName")].some(
    ([name, { AttributeType: type }]) => (types.get(name)?.["AttributeType"] ?? type) !== type,
  );
}

/** An index with changed keys or attributes is deleted and created. */
function indexChanges(was: Members, is: Members) {
  const indexesOf = (members: Members) => entriesOf(members, "GlobalSecondaryIndexes", "IndexName");
  const [old, now] = [indexesOf(was), indexesOf(is)];
  return [...new Set([...old.keys(), ...now.keys()])].flatMap((name) => {
    const [from, to] = [old.get(name), now.get(name)];
    const isSame = ["KeySchema", "Projection"].every((member) =>
      isDeepStrictEqual(from?.[member], to?.[member]),
    );
    return [...(from && !isSame ? [`-${name}`] : []), ...(to && !isSame ? [`+${name}`] : [])];
  });
}

/** API Gateway allows one variable segment below a path, and CloudFormation creates before it deletes. */
function segmentDangers(before: ComparedTemplate, after: Template): Change[] {
  const old = variableSegments(before);
  return [...variableSegments(after)].flatMap(([parent, { id, part }]) => {
    const was = old.get(parent);
    if (was === undefined || (was.id === id && was.part === part)) return [];
    const text = `the REST API cannot be deployed: ${id} adds ${part} while ${was.id} is ${was.part} below the same path; deploy twice, as docs/fronts.md shows`;
    return [dangerous(text)];
  });
}

/** By the API and the path above. */
function variableSegments(template: ComparedTemplate) {
  const segments = Object.entries(template.Resources).flatMap(([id, { Type, Properties }]) => {
    const { RestApiId, ParentId, PathPart } = resolved(Properties, template);
    const part = String(PathPart);
    return Type === "AWS::ApiGateway::Resource" && part.startsWith("{")
      ? [[JSON.stringify([RestApiId, ParentId]), { id, part }] as const]
      : [];
  });
  return new Map(segments);
}

function sectionChanges(before: ComparedTemplate, after: Template): Change[] {
  return (["Parameters", "Conditions", "Outputs"] as const).flatMap((section) => {
    const [old, now]: readonly [Members, Members] = [before[section] ?? {}, after[section]];
    return changedMembers(old, now).map((id) => {
      const lasts = Object.hasOwn(now, id) ? "changed" : "removed";
      const change = Object.hasOwn(old, id) ? lasts : "added";
      return harmless(`${change}: ${section.slice(0, -1).toLowerCase()} ${id}`);
    });
  });
}

/** Resolved, so that a changed default shows in properties that use it. */
export function resolved(properties: Members = {}, { Parameters = {} }: ComparedTemplate): Members {
  const defaultOf = (name: string) => own(Parameters, name)?.Default;
  const resolve = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(resolve);
    if (typeof value !== "object" || value === null) return value;
    const { Ref: name, "Fn::Sub": template }: Members = { ...value };
    if (typeof name === "string" && Object.hasOwn(Parameters, name)) return defaultOf(name);
    if (typeof template === "string")
      return template.replaceAll(/\$\{([^!}]+)\}/g, (whole, placeholder: string) =>
        String(defaultOf(placeholder) ?? whole),
      );
    return mappedMembers(value, resolve);
  };
  return mappedMembers(properties, resolve);
}

function changedMembers(old: Members, now: Members) {
  return idsOf(old, now).filter((name) => !isDeepStrictEqual(own(old, name), own(now, name)));
}

function entriesOf(properties: Members, list: string, key: string): Map<unknown, Members> {
  const items = properties[list];
  // In a template that CloudFormation accepted, these members are lists of objects.
  return new Map(
    Array.isArray(items)
      ? items.flatMap((item: Members | null) => (item ? [[item[key], item]] : []))
      : [],
  );
}

function idsOf(old: object, now: object) {
  return [...new Set([...Object.keys(old), ...Object.keys(now)])];
}

function shown(name: unknown) {
  return typeof name === "string" ? name : "without its own name";
}

const harmless = (text: string): Change => ({ text, isDangerous: false });
const dangerous = (text: string): Change => ({ text, isDangerous: true });
