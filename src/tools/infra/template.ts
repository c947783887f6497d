export type Value =
  | string
  | number
  | boolean
  | readonly Value[]
  | { readonly [name: string]: Value };

export interface Resource {
  readonly Type: string;
  readonly DeletionPolicy?: "Retain";
  readonly UpdateReplacePolicy?: "Retain";
  readonly Condition?: string;
  readonly DependsOn?: string | readonly string[];
  readonly Properties: Readonly<Record<string, unknown>>;
}

export interface Parameter {
  readonly Type: "String" | "Number";
  readonly Default?: string | number;
  readonly Description: string;
  readonly AllowedPattern?: string;
  readonly AllowedValues?: readonly (string | number)[];
  readonly ConstraintDescription?: string;
  readonly MaxLength?: number;
  readonly MinValue?: number;
  readonly MaxValue?: number;
}

export interface Output {
  readonly Description: string;
  readonly Condition?: string;
  readonly Value: Value;
}

/** Names are logical IDs. */
export interface TemplatePart {
  readonly Parameters?: Readonly<Record<string, Parameter>>;
  readonly Conditions?: Readonly<Record<string, Value>>;
  readonly Resources?: Readonly<Record<string, Resource>>;
  readonly Outputs?: Readonly<Record<string, Output>>;
}

export interface Template extends Required<TemplatePart> {
  readonly AWSTemplateFormatVersion: "2010-09-09";
  readonly Description: string;
}

export const ref = (id: string): Value => ({ Ref: id });
export const attributeOf = (id: string, attribute: string): Value => ({
  "Fn::GetAtt": [id, attribute],
});
/** Replaces `${Name}` by a parameter's value or one of `values`. */
export const substituted = (text: string, values?: Readonly<Record<string, Value>>): Value => ({
  "Fn::Sub": values === undefined ? text : [text, values],
});
/** Without the second value, omits the property. */
export const when = (
  condition: string,
  value: Value,
  otherwise: Value = ref("AWS::NoValue"),
): Value => ({
  "Fn::If": [condition, value, otherwise],
});

/**
 * Entries that occur in several parts must be identical. @throws Error on conflicting resources.
 */
export function templateOf(description: string, parts: readonly TemplatePart[]): Template {
  const ids = parts.flatMap(({ Resources = {} }) => Object.keys(Resources));
  const twice = ids.find((id, index) => ids.indexOf(id) !== index);
  if (twice !== undefined)
    throw new Error(`two names come to the logical ID ${twice}; rename one of the two`);
  return {
    AWSTemplateFormatVersion: "2010-09-09",
    Description: description,
    Parameters: Object.assign({}, ...parts.map(({ Parameters }) => Parameters)),
    Conditions: Object.assign({}, ...parts.map(({ Conditions }) => Conditions)),
    Resources: Object.assign({}, ...parts.map(({ Resources }) => Resources)),
    Outputs: Object.assign({}, ...parts.map(({ Outputs }) => Outputs)),
  };
}

export function templateText(template: Template): string {
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
export function logicalId(name: string, suffix: string): string {
  return `${name.replaceAll(/(?:^|-+)(.?)/g, (_whole, letter: string) => letter.toUpperCase())}${suffix}`;
}
