import { type Members, mappedMembers, type Template } from "./template.ts";

/** CloudFormation's limits on entries, and on size in a call and from a bucket. */
export const mostEntries = { Parameters: 200, Resources: 500, Outputs: 200 };
const [mostInlineBytes, mostBytes] = [51_200, 1_000_000];
/** CloudFormation's limit on dynamic references, such as a secret's value. */
export const mostDynamicReferences = 60;
/** IAM's limit on a role's policies, without white space and with references resolved. */
const mostPolicyCharacters = 10_240;
/** Lambda's limit, as JSON. */
const mostEnvironmentBytes = 4_096;

/** `notes` are on a template that can be deployed, but not in the usual way. */
export function sizeReport(template: Template, text: string) {
  const { problems, notes } = fileReport(template, text);
  return { problems, notes: [...notes, ...resourceNotes(template)] };
}

/** Number of dynamic references in a template's text. */
export function dynamicReferences(text: string): number {
  return text.split("{{resolve:").length - 1;
}

/** Leaves out the limits of single resources. */
export function fileReport(template: Template, text: string) {
  const bytes = Buffer.byteLength(text);
  const problems: string[] = [];
  const notes: string[] = [];
  for (const section of ["Parameters", "Resources", "Outputs"] as const) {
    const [count, limit] = [Object.keys(template[section]).length, mostEntries[section]];
    if (count > limit)
      problems.push(`it has ${count} ${section.toLowerCase()}, and CloudFormation takes ${limit}`);
  }
  const references = dynamicReferences(text);
  if (references > mostDynamicReferences)
    problems.push(
      `it has ${references} dynamic references, and CloudFormation takes ${mostDynamicReferences}`,
    );
  if (bytes > mostBytes)
    problems.push(`it has ${bytes} bytes, and CloudFormation takes ${mostBytes}`);
  if (bytes > mostInlineBytes)
    notes.push(
      `it has ${bytes} bytes; above ${mostInlineBytes} it is deployed from a bucket: aws cloudformation deploy --s3-bucket`,
    );
  return { problems, notes };
}

export function resourceNotes(template: Template) {
  const notes: string[] = [];
  const resources = Object.entries(template.Resources);
  for (const [id, { Type, Properties = {} }] of resources) {
    const size = Type === "AWS::IAM::Role" ? policyCharacters(Properties, template) : 0;
    if (size > mostPolicyCharacters)
      notes.push(
        `${id} has policies of about ${size} characters, and IAM takes ${mostPolicyCharacters}; with --shape each roles are smaller`,
      );
  }
  for (const [id, { Type, Properties = {} }] of resources) {
    const size = Type === "AWS::Lambda::Function" ? environmentBytes(Properties, template) : 0;
    if (size > mostEnvironmentBytes)
      notes.push(
        `${id} has an environment of about ${size} bytes, and Lambda accepts ${mostEnvironmentBytes}: a server has a variable for each table; shorten the names of tables, dynamodb.prefix and NamePrefix, or split the server in two`,
      );
  }
  return notes;
}

const arnBeginning = "arn:aws:dynamodb:ap-southeast-1:123456789012:table/";

/** Assumes that a resource's name equals its logical ID. */
function policyCharacters({ Policies = [] }: Members, { Parameters }: Template) {
  const named = (id: unknown) => `${arnBeginning}${Parameters["NamePrefix"]?.Default}-${id}`;
  const text = JSON.stringify(Policies, (_name, value: unknown) => {
    const { "Fn::GetAtt": attribute, "Fn::Sub": substituted }: Members = Object(value);
    if (attribute !== undefined) return named(Object(attribute)[0]);
    if (substituted !== undefined)
      return named(String(substituted).replace(/^.*:|\$\{[^}]*\}-?/g, ""));
    return value;
  });
  return text.length;
}

function environmentBytes({ Environment }: Members, template: Template) {
  const { Variables = {} }: { Variables?: Members } = Object(Environment);
  const values = mappedMembers(Variables, (value) => deployedText(value, template));
  return Buffer.byteLength(JSON.stringify(values));
}

const pseudo: Readonly<Record<string, string>> = {
  "AWS::Region": "ap-southeast-1",
  "AWS::AccountId": "123456789012",
  "AWS::Partition": "aws",
  "AWS::URLSuffix": "amazonaws.com",
};
/** For a secret or another stack's output. */
const unknownText = "x".repeat(48);
const mostReferences = 10;

function deployedText(value: unknown, template: Template, depth = 0): string {
  if (typeof value !== "object" || value === null) return String(value);
  const resolve = (inner: unknown) => deployedText(inner, template, depth + 1);
  const { Ref: name, "Fn::Sub": substituted, "Fn::GetAtt": attribute }: Members = { ...value };
  const { "Fn::If": choice, "Fn::Join": joined }: Members = { ...value };
  if (depth > mostReferences) return unknownText;
  if (name !== undefined) return referredText(String(name), template, resolve);
  if (Array.isArray(attribute))
    return `${arnBeginning}${referredText(String(attribute[0]), template, resolve)}`;
  if (Array.isArray(choice)) {
    const longestFirst = (one: string, other: string) => other.length - one.length;
    // Safe cast: `Fn::If` has two values.
    return choice.slice(1).map(resolve).toSorted(longestFirst)[0] as string;
  }
  if (Array.isArray(joined)) {
    const [separator, ...items]: readonly unknown[] = joined.flat(); // a list, or one that is referred to
    return items.map(resolve).join(String(separator));
  }
  if (substituted === undefined) return unknownText;
  const [text, given = {}] = Array.isArray(substituted) ? substituted : [substituted];
  if (String(text).startsWith("{{resolve:")) return unknownText;
  return String(text).replace(/\$\{([^}]*)\}/g, (_all, inner: string) =>
    Object.hasOwn(given, inner) ? resolve(given[inner]) : referredText(inner, template, resolve),
  );
}

/** A parameter's default, the name of a table or bus, or a queue's URL. */
function referredText(
  name: string,
  { Parameters, Resources }: Template,
  resolve: (value: unknown) => string,
) {
  const resource = Resources[name];
  if (resource === undefined) {
    const { Type = "", Default = unknownText } = Parameters[name] ?? {};
    // The default is the name of a parameter whose value SSM has.
    return (
      pseudo[name] ?? String(Type.startsWith("AWS::SSM::Parameter::Value<") ? unknownText : Default)
    );
  }
  const { QueueName, TableName, Name } = resource.Properties ?? {};
  if (QueueName !== undefined)
    return `https://sqs.ap-southeast-1.amazonaws.com/123456789012/${resolve(QueueName)}`;
  return TableName === undefined && Name === undefined ? unknownText : resolve(TableName ?? Name);
}
