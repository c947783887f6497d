import { ref, type TemplatePart, type Value, when } from "./template.ts";

/** The parameter that every name begins with, as `Fn::Sub` has it. */
// biome-ignore lint/suspicious/noTemplateCurlyInString: CloudFormation's own placeholder
export const namePrefix = "${NamePrefix}";

/** A queue's name has 80 characters, and the longest ends in this. */
const longestPrefix = 80 - "-jobs-dead.fifo".length;

/**
 * The parameters of what holds data.
 *
 * @throws Error where the names would be too long.
 */
export function dataParameters(prefix: string, stage: string): TemplatePart {
  const name = `${prefix.replaceAll(".", "-")}-${stage}`;
  if (name.length > longestPrefix) {
    throw new Error(
      `names would begin with ${JSON.stringify(name)}, which is longer than ${longestPrefix} characters; shorten dynamodb.prefix or the stage`,
    );
  }
  return {
    Parameters: {
      NamePrefix: {
        Type: "String",
        Default: name,
        Description: "What every name begins with, so that stages and applications share an account",
        AllowedPattern: "[A-Za-z0-9_-]+",
        ConstraintDescription: "letters, digits, _ and -",
        MaxLength: longestPrefix,
      },
      DeletionProtection: {
        Type: "String",
        Default: "true",
        Description: "Whether lasting tables refuse to be deleted",
        AllowedValues: ["true", "false"],
      },
      CustomerKeyArn: {
        Type: "String",
        Default: "",
        Description: "A KMS key for tables and queues; its policy lets events.amazonaws.com use it. Empty: AWS's own keys",
        AllowedPattern: "(arn:[a-z-]+:kms:[a-z0-9-]+:[0-9]{12}:key/.+)?",
        ConstraintDescription: "empty, or the ARN of a KMS key",
      },
    },
    Conditions: { HasCustomerKey: { "Fn::Not": [{ "Fn::Equals": [ref("CustomerKeyArn"), ""] }] } },
  };
}

/** A value where there is a customer's key, and another, or none, where there is not. */
export function withCustomerKey(value: Value, otherwise?: Value): Value {
  return when("HasCustomerKey", value, otherwise);
}
