import type { DataPlace } from "./data-place.ts";
import type { NeededFunction } from "./functions.ts";
import { isolationVariables, reachesTenants, tenantRolePart } from "./isolation-part.ts";
import { type Needs, queuesOf } from "./needs.ts";
import { isGiven, namePrefix } from "./parameters.ts";
import { statementsOf } from "./statements.ts";
import { attributeOf, ref, substituted, type TemplatePart, type Value, when } from "./template.ts";

export function functionIds(name: string) {
  const id = `${name.charAt(0).toUpperCase()}${name.slice(1)}`;
  return {
    id,
    lambda: `${id}LambdaFunction`,
    logGroup: `${id}LogGroup`,
    role: `${id}Role`,
    tenantRole: `${id}TenantRole`,
  };
}

export function functionPart(
  needed: NeededFunction,
  needs: Needs,
  place: DataPlace,
  environment: Values,
): TemplatePart {
  const { name, calledBy, timeoutSeconds } = needed;
  const { id, lambda, logGroup, role, tenantRole } = functionIds(name);
  const answers = calledBy === "requests";
  const isIsolated = reachesTenants(needed, needs);
  return {
    Resources: {
      [logGroup]: {
        Type: "AWS::Logs::LogGroup",
        Properties: {
          LogGroupName: substituted(`/aws/lambda/${namePrefix}-${name}`),
          RetentionInDays: ref("LogRetentionDays"),
        },
      },
      [role]: {
        Type: "AWS::IAM::Role",
        Properties: {
          AssumeRolePolicyDocument: {
            Version: "2012-10-17",
            Statement: [
              {
                Effect: "Allow",
                Principal: { Service: "lambda.amazonaws.com" },
                Action: "sts:AssumeRole",
              },
            ],
          },
          Policies: [
            {
              PolicyName: name,
              PolicyDocument: {
                Version: "2012-10-17",
                Statement: statementsOf(needed, needs, place, logGroup),
              },
            },
          ],
        },
      },
      ...(isIsolated ? tenantRolePart(needed, place, { role, tenantRole }).Resources : {}),
      [lambda]: {
        Type: "AWS::Lambda::Function",
        DependsOn: logGroup, // otherwise, the first invocation could not write logs
        Properties: {
          FunctionName: substituted(`${namePrefix}-${name}`),
          Code: { S3Bucket: ref("CodeBucket"), S3Key: ref("CodeKey") },
          Handler: substituted(`\${CodeEntry}.${name}`),
          Runtime: ref("Runtime"),
          Architectures: [ref("Architecture")],
          MemorySize: ref("MemorySize"),
          Timeout: timeoutSeconds,
          Role: attributeOf(role, "Arn"),
          Environment: {
            Variables: {
              ...environment,
              ...(answers && needs.hasAuthSecret ? authVariables : {}),
              ...(isIsolated ? isolationVariables(tenantRole) : {}),
            },
          },
          ...(answers
            ? { ReservedConcurrentExecutions: when("HasHttpConcurrency", ref("HttpConcurrency")) }
            : {}),
        },
      },
    },
    Outputs: {
      [`${id}FunctionName`]: { Description: `The function ${name}`, Value: ref(lambda) },
      [`${id}RoleName`]: {
        Description: `The role of ${name}, for policies of your own`,
        Value: ref(role),
      },
    },
  };
}

export type Values = Readonly<Record<string, Value>>;

/** Keeps the code independent of the stage. */
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

/**
 * Secret that verifies tokens. It can also create them, so only functions that answer requests
 * receive it.
 */
const authVariables: Values = {
  // biome-ignore lint/suspicious/noTemplateCurlyInString: CloudFormation's own placeholder
  KEELSON_AUTH_SECRET: substituted("{{resolve:secretsmanager:${Secret}}}", {
    Secret: when("HasAuthSecretArn", ref("AuthSecretArn"), ref("AuthSecret")),
  }),
};

export const authSecretPart: TemplatePart = {
  Parameters: {
    AuthSecretArn: {
      Type: "String",
      Default: "",
      Description:
        "The ARN of a secret of Secrets Manager, KEELSON_AUTH_SECRET as its text. Empty: the stack makes one",
      AllowedPattern: "(arn:[a-z-]+:secretsmanager:[a-z0-9-]+:[0-9]{12}:secret:.+)?",
      ConstraintDescription: "empty, or the ARN of a secret",
    },
  },
  Conditions: {
    HasAuthSecretArn: isGiven("AuthSecretArn"),
    MakesAuthSecret: { "Fn::Not": [{ Condition: "HasAuthSecretArn" }] },
  },
  Resources: {
    AuthSecret: {
      Type: "AWS::SecretsManager::Secret",
      Condition: "MakesAuthSecret",
      Properties: {
        Description: substituted(`KEELSON_AUTH_SECRET of ${namePrefix}`),
        GenerateSecretString: { PasswordLength: 48, ExcludePunctuation: true },
      },
    },
  },
};
