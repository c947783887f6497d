import type { Template } from "./template.ts";

/** CloudFormation takes so many of each in one template. */
const most = { Parameters: 200, Resources: 500, Outputs: 200 } as const;
/** And so many bytes: in a call, and from a bucket. */
const [mostInlineBytes, mostBytes] = [51_200, 1_000_000];

/** The policies of a role have so many characters in all, without white space, and with names in place of references. */
const mostPolicyCharacters = 10_240;

/** What CloudFormation would say of a template's size. */
export interface SizeReport {
  /** It takes no such template. */
  readonly problems: readonly string[];
  /** It takes the template, in another way than the usual. */
  readonly notes: readonly string[];
}

/** Holds a template against the limits of CloudFormation, and its roles against that of IAM. */
export function sizeReport(template: Template, text: string): SizeReport {
  const bytes = Buffer.byteLength(text);
  const counts = (["Parameters", "Resources", "Outputs"] as const).map((section) => ({
    section: section.toLowerCase(),
    count: Object.keys(template[section]).length,
    limit: most[section],
  }));
  const over = counts.filter(({ count, limit }) => count > limit);
  return {
    problems: [
      ...over.map(({ section, count, limit }) => `it has ${count} ${section}, and CloudFormation takes ${limit}`),
      ...(bytes > mostBytes ? [`it has ${bytes} bytes, and CloudFormation takes ${mostBytes}`] : []),
    ],
    notes: [
      ...(bytes > mostInlineBytes
        ? [`it has ${bytes} bytes; above ${mostInlineBytes} it is deployed from a bucket: aws cloudformation deploy --s3-bucket`]
        : []),
      ...largePolicies(template).map(
        ([role, size]) =>
          `${role} has policies of about ${size} characters, and IAM takes ${mostPolicyCharacters}; with --shape each roles are smaller`,
      ),
    ],
  };
}

function largePolicies(template: Template): [role: string, characters: number][] {
  return Object.entries(template.Resources)
    .filter(([, { Type }]) => Type === "AWS::IAM::Role")
    .map(([id, { Properties }]): [string, number] => [id, policyCharacters(Properties["Policies"], template)])
    .filter(([, characters]) => characters > mostPolicyCharacters);
}

/** What names have in an ARN before them, in a region with a long name. */
const arnBeginning = "arn:aws:dynamodb:ap-southeast-1:123456789012:table/";

/** About as many as IAM counts: what is referred to is taken to be called as its logical ID. */
function policyCharacters(policies: unknown, { Parameters }: Template): number {
  const named = (id: unknown) => `${arnBeginning}${String(Parameters["NamePrefix"]?.Default)}-${String(id)}`;
  const text = JSON.stringify(policies, (_name, value: unknown) => {
    // Safe: any value of JSON, of which an object may be an intrinsic function.
    const { "Fn::GetAtt": attribute, "Fn::Sub": substituted } = (value ?? {}) as {
      readonly "Fn::GetAtt"?: readonly unknown[];
      readonly "Fn::Sub"?: unknown;
    };
    if (attribute !== undefined) return named(attribute[0]);
    if (substituted !== undefined) return named(String(substituted).replace(/^.*:|\$\{[^}]*\}-?/g, ""));
    return value;
  });
  return text.length;
}
