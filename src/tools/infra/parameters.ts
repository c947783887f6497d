import { type Parameter, ref, type TemplatePart, type Value, when } from "./template.ts";

// biome-ignore lint/suspicious/noTemplateCurlyInString: CloudFormation's own placeholder
export const namePrefix = "${NamePrefix}";

/** Queue names have at most 80 characters. */
export const longestDataPrefix = 80 - "-jobs-dead.fifo".length;

/** Function names have at most 64 characters. */
export function longestFunctionPrefix(functions: readonly { readonly name: string }[]) {
  return 64 - Math.max(...functions.map(({ name }) => `-${name}`.length));
}

/** Names of rules have at most 64 characters. */
export function longestRulePrefix(rules: readonly { readonly name: string }[]) {
  return 64 - Math.max(...rules.map(({ name }) => name.length - namePrefix.length));
}

export function nameParameter(prefix: string, stage: string, longest: number) {
  const name = `${prefix.replaceAll(".", "-")}-${stage}`;
  if (name.length > longest)
    throw new Error(
      `names would start with ${JSON.stringify(name)}, which is longer than ${longest} characters; shorten dynamodb.prefix or the stage`,
    );
  const description =
    "The prefix of every name, so that stages and applications can share an account";
  const rules = {
    AllowedPattern: "[A-Za-z0-9_-]+",
    ConstraintDescription: "letters, digits, _ and -",
    MaxLength: longest,
  };
  return { Parameters: { NamePrefix: given(name, description, rules) } };
}

export const customerKeyParts: readonly TemplatePart[] = [
  arnParameter(
    "CustomerKeyArn",
    "kms",
    "key/.+",
    "A KMS key for tables and queues; its policy lets events.amazonaws.com use it. Empty: AWS's own keys",
    "a KMS key",
  ),
  { Conditions: { HasCustomerKey: isGiven("CustomerKeyArn") } },
];

export const dataParameters: TemplatePart = {
  Parameters: {
    DeletionProtection: choice("Whether lasting tables refuse to be deleted", "true", "false"),
  },
};

/** Retention times that CloudWatch accepts, in days. */
const retentionDays = [
  1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288,
  3653,
];

/** Linters reject unused parameters, so `hasEventFunctions` determines whether to create any. */
export function codeParameters(hasEventFunctions: boolean): TemplatePart {
  return {
    Parameters: {
      CodeBucket: {
        Type: "String",
        Description: "The S3 bucket that has the archive of the code, in the region of the stack",
      },
      CodeKey: {
        Type: "String",
        Description: "The key of the archive in the bucket; another key deploys other code",
      },
      ...(hasEventFunctions && eventFunctionParameters),
      LogRetentionDays: given(14, "Retention of log lines, in days", {
        AllowedValues: retentionDays,
      }),
    },
  };
}

const eventFunctionParameters = {
  CodeEntry: given(
    "lambda",
    "The file in the archive that exports the functions, without .mjs, such as dist/lambda",
    {
      AllowedPattern: "[A-Za-z0-9_./-]+",
      ConstraintDescription: "the path of a file, without its extension",
    },
  ),
  Runtime: choice("The runtime of the functions", "nodejs24.x", "nodejs22.x"),
  Architecture: choice("The processors of the functions", "arm64", "x86_64"),
  MemorySize: given(512, "The memory of each function, in MB; the processor grows with it", {
    MinValue: 128,
    MaxValue: 10_240,
  }),
};

export const concurrencyParameters: TemplatePart = {
  Parameters: {
    HttpConcurrency: given(
      0,
      "Reserved concurrency of each function that answers requests. 0: none is reserved",
      { MinValue: 0 },
    ),
  },
  Conditions: {
    HasHttpConcurrency: { "Fn::Not": [{ "Fn::Equals": [ref("HttpConcurrency"), "0"] }] },
  },
};

export const apiParameters: TemplatePart = {
  Parameters: {
    ThrottleRate: given(100, "Requests per second that the API accepts for each route", {
      MinValue: 1,
    }),
    ThrottleBurst: given(200, "Concurrent requests that the API accepts for each route", {
      MinValue: 1,
    }),
    AccessLog: choice("Whether the API logs a line for each request", "true", "false"),
  },
  Conditions: { HasAccessLog: { "Fn::Equals": [ref("AccessLog"), "true"] } },
};

/** Separate because linters reject unused parameters. */
export const queueParameters: TemplatePart = {
  Parameters: {
    QueueConcurrency: given(10, "Concurrent functions for each queue", {
      MinValue: 2,
      MaxValue: 1_000,
    }),
  },
};

export function given(
  Default: string | number,
  Description: string,
  rules: Omit<Parameter, "Type" | "Default" | "Description">,
): Parameter {
  const Type = typeof Default === "number" ? "Number" : "String";
  return { Type, Default, Description, ...rules };
}

/** The first value is the default. */
export function choice(description: string, ...values: readonly [string, ...string[]]): Parameter {
  return given(values[0], description, { AllowedValues: values });
}

/** `pattern` matches the part of an ARN after the account. */
export function arnParameter(
  id: string,
  service: string,
  pattern: string,
  description: string,
  what: string,
) {
  const rules = {
    AllowedPattern: `(arn:[a-z-]+:${service}:[a-z0-9-]+:[0-9]{12}:${pattern})?`,
    ConstraintDescription: `empty, or the ARN of ${what}`,
  };
  return { Parameters: { [id]: given("", description, rules) } };
}

export function isGiven(parameter: string) {
  return { "Fn::Not": [{ "Fn::Equals": [ref(parameter), ""] }] };
}

/** Without a customer-managed key, uses `otherwise` or omits the property. */
export function withCustomerKey(value: Value, otherwise?: Value) {
  return when("HasCustomerKey", value, otherwise);
}
