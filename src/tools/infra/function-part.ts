import { isolationVariable } from "../../app/registry/declared-server.ts";
import { fairModeVariable } from "../../aws/messaging/names.ts";
import type { DataPlace } from "./data-parts.ts";
import type { NeededFunction } from "./functions.ts";
import { type Needs, queuesOf } from "./needs.ts";
import { arnParameter, isGiven, namePrefix } from "./parameters.ts";
import { statementsOf, tenantStatements } from "./statements.ts";
import {
  arnRef,
  logicalId,
  output,
  policyDocument,
  ref,
  resource,
  substituted,
  type TemplatePart,
  type Value,
  type Values,
  when,
} from "./template.ts";

export function functionIds(name: string) {
  const id = logicalId(name);
  return {
    id,
    lambda: `${id}LambdaFunction`,
    logGroup: `${id}LogGroup`,
    role: `${id}Role`,
    outputs: { role: `${id}RoleName`, lambda: `${id}FunctionName` },
  };
}

/** The resources that run a function, once it has a role and log groups. */
export interface FunctionKind {
  /** Names of log groups by logical ID. */
  readonly logGroups: (name: string) => Readonly<Record<string, string>>;
  readonly parts: (needed: NeededFunction, variables: Values) => readonly TemplatePart[];
}

export function functionParts(
  needed: NeededFunction,
  needs: Needs,
  place: DataPlace,
  environment: Values,
  kind: FunctionKind,
) {
  const { name, calledBy } = needed;
  const { id, role, outputs } = functionIds(name);
  const tenantRole = `${id}TenantRole`;
  const ofTenants = tenantStatements(needed, needs, place);
  const logGroups = kind.logGroups(name);
  return [
    ...Object.entries(logGroups).map(([group, groupName]) => logGroupPart(group, groupName)),
    rolePart(
      role,
      { Effect: "Allow", Principal: { Service: "lambda.amazonaws.com" }, Action: "sts:AssumeRole" },
      name,
      statementsOf(needed, needs, place, Object.keys(logGroups)),
    ),
    ...(ofTenants ? [rolePart(tenantRole, assumedBy(role), "tenants", ofTenants)] : []),
    ...kind.parts(needed, {
      ...environment,
      ...(calledBy === "requests" && needs.hasAuthSecret && authVariables),
      ...(ofTenants && { [isolationVariable]: arnRef(tenantRole) }),
    }),
    output(outputs.role, `The role of ${name}, for your own policies`, ref(role)),
  ];
}

/** The `RecursiveLoop` of a function that sends messages to the queues that call it. */
export const allowsLoops = "Allow";

const code: Values = { S3Bucket: ref("CodeBucket"), S3Key: ref("CodeKey") };

/** A function that Lambda invokes for each event; `more` adds to its properties. */
export function eventFunction(more: Values = {}): FunctionKind {
  return {
    logGroups: (name) => ({ [functionIds(name).logGroup]: `/aws/lambda/${namePrefix}-${name}` }),
    parts: ({ name, calledBy, timeoutSeconds }, Variables) => {
      const { lambda, logGroup, role, outputs } = functionIds(name);
      const properties = {
        FunctionName: substituted(`${namePrefix}-${name}`),
        Code: code,
        Handler: substituted(`\${CodeEntry}.${name}`),
        Runtime: ref("Runtime"),
        Architectures: [ref("Architecture")],
        MemorySize: ref("MemorySize"),
        Timeout: timeoutSeconds,
        Role: arnRef(role),
        Environment: { Variables },
        ReservedConcurrentExecutions:
          calledBy === "requests" ? when("HasHttpConcurrency", ref("HttpConcurrency")) : undefined,
        // Lambda would drop a message that waits, or a chain of jobs, after 16 rounds.
        RecursiveLoop: calledBy === "queues" ? allowsLoops : undefined,
      };
      return [
        // Without its log group, the first invocation could not write logs.
        resource(
          lambda,
          "AWS::Lambda::Function",
          { ...properties, ...more },
          { DependsOn: logGroup },
        ),
        output(outputs.lambda, `The function ${name}`, ref(lambda)),
      ];
    },
  };
}

export function logGroupPart(id: string, name: string, more?: { readonly Condition: string }) {
  const properties = { LogGroupName: substituted(name), RetentionInDays: ref("LogRetentionDays") };
  return resource(id, "AWS::Logs::LogGroup", properties, more);
}

function rolePart(id: string, assumed: Value, PolicyName: string, statements: readonly Value[]) {
  return resource(id, "AWS::IAM::Role", {
    AssumeRolePolicyDocument: policyDocument(assumed),
    Policies: [{ PolicyName, PolicyDocument: policyDocument(...statements) }],
  });
}

/** Lets only the function's role assume its tenant role, with a tagged session. */
function assumedBy(role: string) {
  return {
    Effect: "Allow",
    Principal: { AWS: arnRef(role) },
    Action: ["sts:AssumeRole", "sts:TagSession"],
    Condition: {
      "ForAllValues:StringEquals": { "aws:TagKeys": ["tenant", "across"] },
      Null: { "aws:TagKeys": "false" },
    },
  };
}

export function permissionPart(name: string, caller: string, service: string, SourceArn: Value) {
  const { id, lambda } = functionIds(name);
  return resource(`${id}LambdaPermission${caller}`, "AWS::Lambda::Permission", {
    FunctionName: arnRef(lambda),
    Action: "lambda:InvokeFunction",
    Principal: `${service}.amazonaws.com`,
    SourceArn,
  });
}

export function environmentOf(needs: Needs, place: DataPlace): Values {
  const { tables, bus, fair } = needs;
  return {
    NODE_ENV: "production",
    ...Object.fromEntries(tables.map((table) => [table.variable, place.tableName(table)])),
    ...(bus === undefined ? {} : { [bus.variable]: place.busName }),
    // Uses URLs, because a name would need a lookup first.
    ...Object.fromEntries(queuesOf(needs).map((queue) => [queue.variable, place.queueUrl(queue)])),
    ...(fair === undefined || fair.mode === "off" ? {} : { [fairModeVariable]: fair.mode }),
  };
}

/** The secret can also sign tokens, so only functions that answer requests receive it. */
const authVariables: Values = {
  // biome-ignore lint/suspicious/noTemplateCurlyInString: CloudFormation's own placeholder
  KEELSON_AUTH_SECRET: substituted("{{resolve:secretsmanager:${Secret}}}", {
    Secret: when("HasAuthSecretArn", ref("AuthSecretArn"), ref("AuthSecret")),
  }),
};

export const authSecretParts: readonly TemplatePart[] = [
  arnParameter(
    "AuthSecretArn",
    "secretsmanager",
    "secret:.+",
    "The ARN of a Secrets Manager secret whose string is KEELSON_AUTH_SECRET. Empty: the stack creates a secret",
    "a secret",
  ),
  {
    Conditions: {
      HasAuthSecretArn: isGiven("AuthSecretArn"),
      MakesAuthSecret: { "Fn::Not": [{ Condition: "HasAuthSecretArn" }] },
    },
  },
  resource(
    "AuthSecret",
    "AWS::SecretsManager::Secret",
    {
      Description: substituted(`KEELSON_AUTH_SECRET of ${namePrefix}`),
      GenerateSecretString: { PasswordLength: 48, ExcludePunctuation: true },
    },
    { Condition: "MakesAuthSecret" },
  ),
];
