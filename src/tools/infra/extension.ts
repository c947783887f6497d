import { isRecord } from "../../base/errors/option-table.ts";
import { quoted } from "../../base/errors/quoted.ts";
import {
  duplicateOf,
  type Members,
  type Resource,
  sections,
  type Template,
  type TemplatePart,
  type Values,
} from "./template.ts";

export interface Extension {
  readonly part: TemplatePart;
  readonly variables: Values;
}

const known: readonly string[] = [
  "AWSTemplateFormatVersion",
  "Description",
  ...sections,
  "Globals",
];
const variablesPath = ["Function", "Environment", "Variables"];

/** Of SAM's `Globals`, supports only environment variables of functions. */
export function extensionOf(read: unknown): Extension {
  const template = membersOf("it", read);
  const unknown = Object.keys(template).find((name) => !known.includes(name));
  if (unknown !== undefined)
    throw new Error(`it has ${quoted(unknown)}; known are ${known.join(", ")}`);
  const given = sections.filter((section) => template[section] !== undefined);
  const part = Object.fromEntries(
    given.map((section) => [section, sectionOf(section, template[section])]),
  );
  return { part, variables: variablesOf(template["Globals"]) };
}

/** @throws Error if two extensions share a name. */
export function combined(extensions: readonly Extension[]): Extension {
  const part = sections.map((section) => [
    section,
    merged(
      section,
      extensions.map((one) => one.part[section] ?? {}),
    ),
  ]);
  const variables = merged(
    "Variables",
    extensions.map((one) => one.variables),
  );
  return { part: Object.fromEntries(part), variables };
}

function merged<Section extends Members>(what: string, all: readonly Section[]): Section {
  const twice = duplicateOf(all.flatMap((members) => Object.keys(members)));
  if (twice !== undefined) throw new Error(`${what}.${twice} is in two files; keep it in one`);
  return Object.assign({}, ...all);
}

/** @throws Error if a name is already used, or a reference is dangling. */
export function extended(template: Template, { part }: Extension): Template {
  const merged = { ...template };
  for (const section of sections) {
    const added = part[section] ?? {};
    const taken = Object.keys(added).find((name) => Object.hasOwn(template[section], name));
    if (taken !== undefined)
      throw new Error(`${section}.${taken} is keelson's own; choose another name`);
    Object.assign(merged, { [section]: { ...template[section], ...added } });
  }
  const dangling = danglingReferences(merged);
  if (dangling.length > 0) throw new Error(`${dangling.join("; ")}, which is not there`);
  return merged;
}

/** @throws Error if keelson itself sets a variable of the extension. */
export function environmentWith(own: Values, { variables }: Extension): Values {
  const taken = Object.keys(variables).find(
    (name) => Object.hasOwn(own, name) || name === "KEELSON_AUTH_SECRET",
  );
  if (taken !== undefined)
    throw new Error(`the variable ${taken} is set by keelson; it cannot be set by Globals`);
  return { ...own, ...variables };
}

function sectionOf(section: (typeof sections)[number], read: unknown): Members {
  const members = membersOf(section, read);
  const isTyped = section === "Resources" || section === "Parameters";
  for (const [name, member] of Object.entries(members)) {
    const { Type } = membersOf(`${section}.${name}`, member);
    if (isTyped && typeof Type !== "string") throw new Error(`${section}.${name} has no Type`);
  }
  return members;
}

function variablesOf(globals: unknown): Values {
  let [found, path] = [globals, "Globals"];
  for (const name of variablesPath) {
    if (found === undefined) return {};
    const members = membersOf(path, found);
    const other = Object.keys(members).find((one) => one !== name);
    if (other !== undefined)
      throw new Error(
        `${path}.${other} is not taken; of Globals only ${variablesPath.join(".")} is`,
      );
    [found, path] = [members[name], `${path}.${name}`];
  }
  return found === undefined ? {} : (membersOf(path, found) as Values); // safe cast: read from JSON
}

function membersOf(what: string, read: unknown) {
  if (isRecord(read)) return read;
  throw new Error(`${what} is ${quoted(read)}, not an object`);
}

export function danglingReferences({ Parameters, Conditions, Resources, Outputs }: Template) {
  const known = new Set([
    ...Object.keys({ ...Parameters, ...Resources }),
    ...Object.keys(Conditions).map(conditionNamed),
  ]);
  const missing = (from: string, names: readonly string[]) =>
    names
      .filter((name) => !known.has(name) && !name.startsWith("AWS::"))
      .map((name) => `${from} refers to ${name}`);
  const all = [
    ...Object.entries(Conditions).flatMap(([id, value]) =>
      missing(`condition ${id}`, referencesOf(value)),
    ),
    ...Object.entries(Resources).flatMap(([id, resource]) =>
      missing(id, [...ownReferences(resource), ...referencesOf(resource.Properties)]),
    ),
    ...Object.entries(Outputs).flatMap(([id, output]) =>
      missing(`output ${id}`, [...ownReferences(output), ...referencesOf(output)]),
    ),
  ];
  return [...new Set(all)];
}

const conditionNamed = (name: unknown) => `the condition ${name}`;

function ownReferences({ Condition, DependsOn = [] }: Partial<Resource>) {
  return [
    ...(Condition === undefined ? [] : [conditionNamed(Condition)]),
    ...[DependsOn].flat().map(String),
  ];
}

function referencesOf(value: unknown): string[] {
  if (typeof value !== "object" || value === null) return [];
  if (Array.isArray(value)) return value.flatMap(referencesOf);
  const entries = Object.entries(value);
  const inner = entries.flatMap(([, member]) => referencesOf(member));
  const [[name, given] = []] = entries;
  if (entries.length !== 1) return inner; // an intrinsic function is the only member of its object
  const [first, second] = [given].flat();
  switch (name) {
    case "Ref":
      return [String(given)];
    // A condition's name is a string; in an IAM statement, `Condition` is an object.
    case "Condition":
      return typeof given === "string" ? [conditionNamed(given)] : inner;
    case "Fn::If":
      return [conditionNamed(first), ...inner];
    case "Fn::GetAtt":
      return [beforeDot(String(first))];
    case "Fn::Sub": {
      const local = Object.keys(typeof second === "object" && second !== null ? second : {});
      const used = [...String(first).matchAll(/\$\{([^!}][^}]*)\}/g)].map(([, placeholder]) =>
        beforeDot(String(placeholder)),
      );
      return [...used.filter((one) => !local.includes(one)), ...inner];
    }
    default:
      return inner;
  }
}

function beforeDot(text: string) {
  return text.replace(/\..*$/s, "");
}
