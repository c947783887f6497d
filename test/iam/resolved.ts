import { tablesArn } from "./iam-requests.ts";
import { account, type Policy } from "./simulator.ts";

/** Resources of a template. */
export type Resources = Readonly<
  Record<string, { readonly Type: string; readonly Properties: Readonly<Record<string, unknown>> }>
>;

/**
 * The value that CloudFormation computes in eu-west-1: calls functions and follows references. A condition has its second value, as with the
 * parameters' defaults.
 */
export function resolved(value: unknown, resources: Resources, prefix: string): unknown {
  if (Array.isArray(value)) {
    return value.map((one) => resolved(one, resources, prefix)).filter((one) => one !== noValue);
  }
  if (typeof value !== "object" || value === null) return value;
  const {
    Ref,
    "Fn::GetAtt": attribute,
    "Fn::Sub": text,
    "Fn::If": choice,
  } = value as Readonly<Record<string, unknown>>; // safe: looked at
  const nameOf = (id: string) => {
    const { Properties = {} } = resources[id] ?? {};
    const name =
      Properties["TableName"] ??
      Properties["QueueName"] ??
      Properties["Name"] ??
      Properties["LogGroupName"];
    return name === undefined ? id : String(resolved(name, resources, prefix));
  };
  const reference = (id: string): unknown => pseudo(prefix)[id] ?? nameOf(id);
  const arnOf = (id: string) => {
    const make = arns[resources[id]?.Type ?? ""];
    if (make === undefined)
      throw new Error(`${id} has a type whose ARN is unknown here: ${resources[id]?.Type}`);
    return make(nameOf(id));
  };
  if (Ref !== undefined) return reference(String(Ref));
  if (Array.isArray(attribute))
    return attribute[1] === "Arn" ? arnOf(String(attribute[0])) : `${attribute[0]}.${attribute[1]}`;
  if (Array.isArray(choice)) return resolved(choice[2], resources, prefix);
  if (text !== undefined) {
    const [template, own = {}] = Array.isArray(text) ? text : [text];
    const given = own as Readonly<Record<string, unknown>>; // safe: as `Fn::Sub` has it
    return String(template).replaceAll(/\$\{([^!}]+)\}/g, (_whole, name: string) => {
      if (name in given) return String(resolved(given[name], resources, prefix));
      return name.endsWith(".Arn") ? arnOf(name.slice(0, -4)) : String(reference(name));
    });
  }
  const members = Object.entries(value).map(
    ([name, member]) => [name, resolved(member, resources, prefix)] as const,
  );
  return Object.fromEntries(members.filter(([, member]) => member !== noValue));
}

const noValue = Symbol("AWS::NoValue");
const pseudo = (prefix: string): Readonly<Record<string, unknown>> => ({
  "AWS::Partition": "aws",
  "AWS::Region": "eu-west-1",
  "AWS::AccountId": account,
  "AWS::URLSuffix": "amazonaws.com",
  "AWS::NoValue": noValue,
  NamePrefix: prefix,
});

const inRegion = (service: string, kind: string) => (name: string) =>
  `arn:aws:${service}:eu-west-1:${account}:${kind}${name}`;
const arns: Readonly<Record<string, (name: string) => string>> = {
  "AWS::DynamoDB::Table": (name) => `${tablesArn}${name}`,
  "AWS::IAM::Role": (name) => `arn:aws:iam::${account}:role/${name}`,
  "AWS::SQS::Queue": inRegion("sqs", ""),
  "AWS::Events::EventBus": inRegion("events", "event-bus/"),
  "AWS::Logs::LogGroup": (name) => `${inRegion("logs", "log-group:")(name)}:*`,
};

/** The policies of a role: permissions and trust. */
export function roleOf(
  id: string,
  resources: Resources,
  prefix: string,
): { readonly allows: Policy; readonly trusts: Policy } {
  const { Policies = [], AssumeRolePolicyDocument } = resources[id]?.Properties ?? {};
  const documents = (Policies as readonly { readonly PolicyDocument: Policy }[]).map(
    ({ PolicyDocument }) => PolicyDocument,
  );
  const Statement = documents.flatMap(
    (document) => resolved(document.Statement, resources, prefix) as Policy["Statement"],
  );
  return {
    allows: { Version: "2012-10-17", Statement },
    trusts: resolved(AssumeRolePolicyDocument, resources, prefix) as Policy, // safe, all three: roles are made of them
  };
}
