/** JSON value in a template. */
export type Value =
  | string
  | number
  | boolean
  | readonly Value[]
  | { readonly [name: string]: Value };

export interface Resource {
  readonly Type: string;
  /** Default: the resource is deleted with the stack. */
  readonly DeletionPolicy?: "Retain";
  readonly UpdateReplacePolicy?: "Retain";
  /** Default: the resource always exists. */
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
  /** Default: the output always exists. */
  readonly Condition?: string;
  readonly Value: Value;
}

/** Part of a template, to be merged with other parts. Names are logical IDs. */
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

/** Returns a reference to a parameter's value or a resource's name. */
export const ref = (id: string): Value => ({ Ref: id });
export const attributeOf = (id: string, attribute: string): Value => ({
  "Fn::GetAtt": [id, attribute],
});
/** Returns a string in which `${Name}` is replaced by a parameter's value or by one of `values`. */
export const substituted = (text: string, values?: Readonly<Record<string, Value>>): Value => ({
  "Fn::Sub": values === undefined ? text : [text, values],
});
/** Selects one of two values by a condition. Without the second value, the property is omitted. */
export const when = (
  condition: string,
  value: Value,
  otherwise: Value = ref("AWS::NoValue"),
): Value => ({
  "Fn::If": [condition, value, otherwise],
});

/**
 * Merges parts into a template. Entries that occur in several parts, for example parameters, must
 * be identical.
 *
 * @throws Error if two resources have the same logical ID.
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

/** Serializes a template. The same template always gives the same bytes. */
export function templateText(template: Template): string {
  return `${written(template, "\n")}\n`;
}

/**
 * Maximum line length. Values that fit are written on one line, because people read templates and
 * their size is limited.
 */
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

/**
 * Converts a kebab-case name to a logical ID: `upload-parts` and `Table` become `UploadPartsTable`.
 */
export function logicalId(name: string, suffix: string): string {
  return `${name.replaceAll(/(?:^|-+)(.?)/g, (_whole, letter: string) => letter.toUpperCase())}${suffix}`;
}
