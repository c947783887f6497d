import { isolationVariable } from "../../app/registry/declared-server.ts";
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
  return { id, lambda: `${id}LambdaFunction`, logGroup: `${id}LogGroup`, role: `${id}Role` };
}

export function functionParts(
  needed: NeededFunction,
  needs: Needs,
  place: DataPlace,
  environment: Values,
) {
  const { name, calledBy, timeoutSeconds } = needed;
  const { id, lambda, logGroup, role } = functionIds(name);
  const tenantRole = `${id}TenantRole`;
  const answers = calledBy === "requests";
  const ofTenants = tenantStatements(needed, needs, place);
  return [
    logGroupPart(logGroup, `/aws/lambda/${namePrefix}-${name}`),
    rolePart(
      role,
      { Effect: "Allow", Principal: { Service: "lambda.amazonaws.com" }, Action: "sts:AssumeRole" },
      name,
      statementsOf(needed, needs, place, logGroup),
    ),
    ...(ofTenants ? [rolePart(tenantRole, assumedBy(role), "tenants", ofTenants)] : []),
    resource(
      lambda,
      "AWS::Lambda::Function",
      {
        FunctionName: substituted(`${namePrefix}-${name}`),
        Code: { S3Bucket: ref("CodeBucket"), S3Key: ref("CodeKey") },
        Handler: substituted(`\${CodeEntry}.${name}`),
        Runtime: ref("Runtime"),
        Architectures: [ref("Architecture")],
        MemorySize: ref("MemorySize"),
        Timeout: timeoutSeconds,
        Role: arnRef(role),
        Environment: {
          Variables: {
            ...environment,
            ...(answers && needs.hasAuthSecret && authVariables),
            ...(ofTenants && { [isolationVariable]: arnRef(tenantRole) }),
          },
        },
        ReservedConcurrentExecutions: answers
          ? when("HasHttpConcurrency", ref("HttpConcurrency"))
          : undefined,
      },
      { DependsOn: logGroup }, // otherwise, the first invocation could not write logs
    ),
    output(`${id}FunctionName`, `The function ${name}`, ref(lambda)),
    output(`${id}RoleName`, `The role of ${name}, for policies of your own`, ref(role)),
  ];
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
  const { tables, bus } = needs;
  return {
    NODE_ENV: "production",
    ...Object.fromEntries(tables.map((table) => [table.variable, place.tableName(table)])),
    ...(bus === undefined ? {} : { [bus.variable]: place.busName }),
    // Uses URLs, because a name would need a lookup first.
    ...Object.fromEntries(queuesOf(needs).map((queue) => [queue.variable, place.queueUrl(queue)])),
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
    "The ARN of a secret of Secrets Manager, KEELSON_AUTH_SECRET as its text. Empty: the stack makes one",
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
