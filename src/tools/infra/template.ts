/** What a template is made of: JSON. */
export type Value =
  | string
  | number
  | boolean
  | readonly Value[]
  | { readonly [name: string]: Value };

/** A resource of a template. */
export interface Resource {
  readonly Type: string;
  /** Default: it goes with the stack. */
  readonly DeletionPolicy?: "Retain";
  readonly UpdateReplacePolicy?: "Retain";
  /** Without it the resource is always there. */
  readonly Condition?: string;
  readonly DependsOn?: string | readonly string[];
  readonly Properties: Readonly<Record<string, unknown>>;
}

/** A parameter of a template. */
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

/** An output of a template. */
export interface Output {
  readonly Description: string;
  /** Without it the output is always there. */
  readonly Condition?: string;
  readonly Value: Value;
}

/** A part of a template, which others are put together with. Names are logical IDs. */
export interface TemplatePart {
  readonly Parameters?: Readonly<Record<string, Parameter>>;
  readonly Conditions?: Readonly<Record<string, Value>>;
  readonly Resources?: Readonly<Record<string, Resource>>;
  readonly Outputs?: Readonly<Record<string, Output>>;
}

/** A whole template of CloudFormation. */
export interface Template extends Required<TemplatePart> {
  readonly AWSTemplateFormatVersion: "2010-09-09";
  readonly Description: string;
}

/** The value of a parameter, or the name of a resource. */
export const ref = (id: string): Value => ({ Ref: id });
/** An attribute of a resource. */
export const attributeOf = (id: string, attribute: string): Value => ({
  "Fn::GetAtt": [id, attribute],
});
/** A text in which `${Name}` stands for the value of a parameter, or for one of `values`. */
export const substituted = (text: string, values?: Readonly<Record<string, Value>>): Value => ({
  "Fn::Sub": values === undefined ? text : [text, values],
});
/** One of two values, by a condition; without the second the property is not there. */
export const when = (
  condition: string,
  value: Value,
  otherwise: Value = ref("AWS::NoValue"),
): Value => ({
  "Fn::If": [condition, value, otherwise],
});

/**
 * Puts parts together. What stands in several, such as a parameter, is the same in each.
 *
 * @throws Error where two resources have one logical ID.
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

/** A template as text: the same for the same template, byte by byte. */
export function templateText(template: Template): string {
  return `${written(template, "\n")}\n`;
}

/** What fits into a line is written in one: a template is read by people, and its bytes count. */
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

/** A logical ID of a name in kebab case: `upload-parts` and `Table` come to `UploadPartsTable`. */
export function logicalId(name: string, suffix: string): string {
  return `${name.replaceAll(/(?:^|-+)(.?)/g, (_whole, letter: string) => letter.toUpperCase())}${suffix}`;
}
