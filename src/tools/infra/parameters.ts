import { ref, type TemplatePart, type Value, when } from "./template.ts";

/** Parameter that prefixes every name, as a placeholder of `Fn::Sub`. */
// biome-ignore lint/suspicious/noTemplateCurlyInString: CloudFormation's own placeholder
export const namePrefix = "${NamePrefix}";

/** Queue names have at most 80 characters. */
export const longestDataPrefix = 80 - "-jobs-dead.fifo".length;

/** Function names have at most 64 characters. */
export function longestFunctionPrefix(functions: readonly { readonly name: string }[]): number {
  return 64 - Math.max(...functions.map(({ name }) => `-${name}`.length));
}

export function nameParameter(prefix: string, stage: string, longest: number): TemplatePart {
  const name = `${prefix.replaceAll(".", "-")}-${stage}`;
  if (name.length > longest) {
    throw new Error(
      `names would begin with ${JSON.stringify(name)}, which is longer than ${longest} characters; shorten dynamodb.prefix or the stage`,
    );
  }
  return {
    Parameters: {
      NamePrefix: {
        Type: "String",
        Default: name,
        Description:
          "What every name begins with, so that stages and applications share an account",
        AllowedPattern: "[A-Za-z0-9_-]+",
        ConstraintDescription: "letters, digits, _ and -",
        MaxLength: longest,
      },
    },
  };
}

/**
 * Parameter for a customer-managed KMS key, used by tables, queues and the roles that access them.
 */
export const customerKeyPart: TemplatePart = {
  Parameters: {
    CustomerKeyArn: {
      Type: "String",
      Default: "",
      Description:
        "A KMS key for tables and queues; its policy lets events.amazonaws.com use it. Empty: AWS's own keys",
      AllowedPattern: "(arn:[a-z-]+:kms:[a-z0-9-]+:[0-9]{12}:key/.+)?",
      ConstraintDescription: "empty, or the ARN of a KMS key",
    },
  },
  Conditions: { HasCustomerKey: isGiven("CustomerKeyArn") },
};

export const dataParameters: TemplatePart = {
  Parameters: {
    DeletionProtection: {
      Type: "String",
      Default: "true",
      Description: "Whether lasting tables refuse to be deleted",
      AllowedValues: ["true", "false"],
    },
  },
};

/** Values that CloudWatch accepts as log retention, in days. */
const retentionDays = [
  1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288,
  3653,
];

export const functionParameters: TemplatePart = {
  Parameters: {
    CodeBucket: {
      Type: "String",
      Description: "The S3 bucket that has the archive of the code, in the region of the stack",
    },
    CodeKey: {
      Type: "String",
      Description: "The key of the archive in the bucket; another key deploys other code",
    },
    CodeEntry: {
      Type: "String",
      Default: "lambda",
      Description:
        "The file in the archive that exports the functions, without .mjs, such as dist/lambda",
      AllowedPattern: "[A-Za-z0-9_./-]+",
      ConstraintDescription: "the path of a file, without its extension",
    },
    Runtime: {
      Type: "String",
      Default: "nodejs24.x",
      Description: "The runtime of the functions",
      AllowedValues: ["nodejs24.x", "nodejs22.x"],
    },
    Architecture: {
      Type: "String",
      Default: "arm64",
      Description: "The processors of the functions",
      AllowedValues: ["arm64", "x86_64"],
    },
    MemorySize: {
      Type: "Number",
      Default: 512,
      Description: "The memory of each function, in MB; the processor grows with it",
      MinValue: 128,
      MaxValue: 10_240,
    },
    LogRetentionDays: {
      Type: "Number",
      Default: 14,
      Description: "How long log lines are kept, in days",
      AllowedValues: retentionDays,
    },
    HttpConcurrency: {
      Type: "Number",
      Default: 0,
      Description:
        "Reserved concurrency of each function that answers requests. 0: none is reserved",
      MinValue: 0,
    },
    ThrottleRate: {
      Type: "Number",
      Default: 100,
      Description: "Requests a second that the API takes of each route",
      MinValue: 1,
    },
    ThrottleBurst: {
      Type: "Number",
      Default: 200,
      Description: "Requests at once that the API takes of each route",
      MinValue: 1,
    },
    AccessLog: {
      Type: "String",
      Default: "true",
      Description: "Whether the API logs a line for each request",
      AllowedValues: ["true", "false"],
    },
  },
  Conditions: {
    HasHttpConcurrency: { "Fn::Not": [{ "Fn::Equals": [ref("HttpConcurrency"), "0"] }] },
    HasAccessLog: { "Fn::Equals": [ref("AccessLog"), "true"] },
  },
};

/** Separate because linters reject unused parameters. */
export const queueParameters: TemplatePart = {
  Parameters: {
    QueueConcurrency: {
      Type: "Number",
      Default: 10,
      Description: "How many functions each queue may run at once",
      MinValue: 2,
      MaxValue: 1_000,
    },
  },
};

export function isGiven(parameter: string): Value {
  return { "Fn::Not": [{ "Fn::Equals": [ref(parameter), ""] }] };
}

/** Without a customer-managed key, uses `otherwise` or omits the property. */
export function withCustomerKey(value: Value, otherwise?: Value): Value {
  return when("HasCustomerKey", value, otherwise);
}
