import { defined } from "../../base/types/defined.ts";

export type Value =
  | string
  | number
  | boolean
  | readonly Value[]
  | { readonly [name: string]: Value };

export type Values = Readonly<Record<string, Value>>;
export type Members = Readonly<Record<string, unknown>>;

export interface Resource {
  readonly Type: string;
  readonly DeletionPolicy?: "Retain" | "RetainExceptOnCreate";
  readonly UpdateReplacePolicy?: "Retain";
  readonly Condition?: string;
  readonly DependsOn?: string | readonly string[];
  readonly Metadata?: Members;
  readonly Properties?: Members;
}

export interface Parameter {
  /** `String` or `Number`; an extension may also have lists and AWS's own types, such as SSM parameters. */
  readonly Type: string;
  readonly Default?: string | number;
  readonly Description?: string;
  readonly [rule: string]: Value;
}

export interface Output {
  readonly Description: string;
  readonly Condition?: string;
  readonly Value: Value;
}

export interface TemplatePart {
  readonly Parameters?: Readonly<Record<string, Parameter>>;
  readonly Conditions?: Values;
  readonly Mappings?: Values;
  readonly Resources?: Readonly<Record<string, Resource>>;
  readonly Outputs?: Readonly<Record<string, Output>>;
}

export const sections = ["Parameters", "Conditions", "Resources", "Outputs"] as const;

export interface Template extends Required<Omit<TemplatePart, "Mappings">> {
  readonly AWSTemplateFormatVersion: "2010-09-09";
  readonly Description: string;
  readonly Mappings?: Values;
}

export const resource = (
  id: string,
  Type: string,
  properties: Members,
  more: Omit<Resource, "Type" | "Properties"> = {},
): TemplatePart => ({ Resources: { [id]: { Type, ...more, Properties: defined(properties) } } });

export const output = (id: string, Description: string, Value: Value): TemplatePart => ({
  Outputs: { [id]: { Description, Value } },
});
export const ref = (id: string): Value => ({ Ref: id });
export const attributeOf = (id: string, name: string): Value => ({ "Fn::GetAtt": [id, name] });
export const arnRef = (id: string) => attributeOf(id, "Arn");
/** Replaces `${Name}` by a parameter's value or one of `values`. */
export const substituted = (text: string, values?: Values): Value => ({
  "Fn::Sub": values === undefined ? text : [text, values],
});
/** Without `otherwise`, CloudFormation omits the property if the condition is false. */
export const when = (
  condition: string,
  value: Value,
  otherwise: Value = ref("AWS::NoValue"),
): Value => ({ "Fn::If": [condition, value, otherwise] });

export const policyDocument = (...Statement: readonly Value[]): Value => ({
  Version: "2012-10-17",
  Statement,
});

/** Parts may repeat identical entries. @throws Error if two have the same resource. */
export function templateOf(Description: string, parts: readonly TemplatePart[]): Template {
  const twice = duplicateOf(parts.flatMap(({ Resources = {} }) => Object.keys(Resources)));
  if (twice !== undefined)
    throw new Error(`two names come to the logical ID ${twice}; rename one of the two`);
  const merged = sections.map((section) => [
    section,
    Object.assign({}, ...parts.map((part) => part[section])),
  ]);
  const mappings = parts.find(({ Mappings }) => Mappings !== undefined);
  return {
    AWSTemplateFormatVersion: "2010-09-09",
    Description,
    ...(mappings && { Mappings: mappings.Mappings }),
    ...Object.fromEntries(merged),
  };
}

export function duplicateOf(names: readonly string[]) {
  return names.find((name, index) => names.indexOf(name) !== index);
}

export function templateText(template: Template) {
  return `${written(template, "\n")}\n`;
}

/** Values that fit take one line: people read templates, and their size is limited. */
const longestLine = 140;

function written(value: unknown, newline: string): string {
  const line = JSON.stringify(value);
  if (line.length <= longestLine || typeof value !== "object" || value === null) return line;
  const inner = `${newline} `;
  if (Array.isArray(value))
    return `[${inner}${value.map((item) => written(item, inner)).join(`,${inner}`)}${newline}]`;
  const members = Object.entries(value).map(
    ([name, member]) => `${JSON.stringify(name)}: ${written(member, inner)}`,
  );
  return `{${inner}${members.join(`,${inner}`)}${newline}}`;
}

/** `upload-parts` and `Table` become `UploadPartsTable`. */
export function logicalId(name: string, suffix = "") {
  return `${name.replaceAll(/(?:^|-+)(.?)/g, (_whole, letter: string) => letter.toUpperCase())}${suffix}`;
}

export function mappedMembers(value: object, change: (member: unknown) => unknown): Members {
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, change(member)]));
}

export function own<Item>(items: Readonly<Record<string, Item>>, id: string): Item | undefined {
  return Object.hasOwn(items, id) ? items[id] : undefined;
}
