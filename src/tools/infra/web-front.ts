import { lineOf, metricPart, ownLine, ownNamespace } from "./alarm-part.ts";
import type { Front } from "./front.ts";
import { eventFunction, functionIds } from "./function-part.ts";
import type { NeededFunction } from "./functions.ts";
import { choice, given, isGiven, namePrefix } from "./parameters.ts";
import {
  arnRef,
  attributeOf,
  output,
  ref,
  resource,
  substituted,
  type TemplatePart,
  type Value,
  type Values,
  when,
} from "./template.ts";

/** The new revision's percentages, each with the rest: CloudFormation cannot subtract. */
const shares = [1, 5, 10, 20, 25, 30, 40, 50, 60, 70, 75, 80, 90, 95, 99];

const parameters: TemplatePart = {
  Parameters: {
    CodeVersion: given(
      "",
      "The version of the archive in the bucket, for a new upload under an old key. Empty: the latest when CodeKey changes",
      {},
    ),
    AuthType: choice(
      "ApplicationManaged: everyone reaches the endpoint, and the server verifies tokens. IamAuth: only signed requests, without Authorization",
      "ApplicationManaged",
      "IamAuth",
    ),
    PreviousRevisionId: given(
      "",
      "The revision that keeps a share of the requests, from the output HttpRevisionId. Empty: the new revision gets all",
      {},
    ),
    CanaryPercent: given(
      10,
      "The new revision's share of the requests in percent, if there is a PreviousRevisionId",
      { AllowedValues: shares },
    ),
  },
  Conditions: {
    HasCodeVersion: isGiven("CodeVersion"),
    HasPreviousRevision: isGiven("PreviousRevisionId"),
  },
  Mappings: {
    RevisionShares: Object.fromEntries(
      shares.map((share) => [String(share), { Previous: String(100 - share) }]),
    ),
  },
};

const errorsMetric = "http-errors";
/** Of the log group, because a Web Function that does not start logs no line of keelson. */
const failures = [
  `(${lineOf("request.failed")} && $.status >= 500)`,
  `(${lineOf("server.start_failed")})`,
  '($.type = "platform.initReport" && $.record.status = "failure")',
].join(" || ");

/** A Web Function, which runs the container, and event functions from the same archive. */
export const webFront: Front = {
  isWeb: true,
  parameters: [parameters],
  requestKind: {
    // Lambda writes to the second, and collects its lines in the first.
    logGroups: (name) => ({
      [functionIds(name).logGroup]: logGroupOf(name),
      [localLogGroup(name)]: `${logGroupOf(name)}.local`,
    }),
    parts: webFunctionParts,
  },
  eventKind: eventFunction({ Code: codeOf("S3Bucket", "S3Key", "S3ObjectVersion") }),
  parts: (_functions, basePath) => [
    metricPart("HttpErrorsMetric", "http", ownLine(`(${failures})`), errorsMetric, "1"),
    output(
      "HttpUrl",
      "The URL of the Web Function",
      substituted(`https://\${${webIds("http").endpoint}.DomainName}${basePath}`),
    ),
  ],
  errors: {
    says: "Requests fail with a 5xx status, or the Web Function does not start.",
    page: "server-errors",
    metric: [ownNamespace, errorsMetric],
  },
};

function webIds(name: string) {
  const web = `${functionIds(name).id}WebFunction`;
  return { web, revision: `${web}Revision`, endpoint: `${web}Endpoint` };
}

const logGroupOf = (name: string) => `/aws/lambda/web/${namePrefix}-${name}`;
const localLogGroup = (name: string) => `${functionIds(name).id}LocalLogGroup`;

function webFunctionParts(
  { name }: NeededFunction,
  EnvironmentVariables: Values,
): readonly TemplatePart[] {
  const { id, role, logGroup } = functionIds(name);
  const { web, revision, endpoint } = webIds(name);
  // Never its ARN: a stack with one can be neither made nor rolled back.
  const FunctionName = substituted(`${namePrefix}-${name}`);
  return [
    resource(web, "AWS::Lambda::WebFunction", { FunctionName }),
    resource(
      revision,
      "AWS::Lambda::WebFunctionRevision",
      {
        FunctionName,
        BuildConfig: {
          CodeConfig: { S3Object: codeOf("Bucket", "Key", "VersionId") },
          RuntimeConfig: { Runtime: "nodejs24.x" },
        },
        ServiceConfig: {
          ExecutionRoleArn: arnRef(role),
          TimeoutSeconds: 30,
          EnvironmentVariables,
          TelemetryConfig: { LoggingConfig: { LogGroup: ref(logGroup) } },
        },
      },
      {
        // Each change makes another revision, and one in service cannot be deleted.
        DeletionPolicy: "Retain",
        UpdateReplacePolicy: "Retain",
        DependsOn: [web, localLogGroup(name)],
      },
    ),
    resource(
      endpoint,
      "AWS::Lambda::WebFunctionEndpoint",
      {
        FunctionName,
        EndpointName: "default",
        EndpointType: "HomeRegion",
        AuthType: ref("AuthType"),
        RevisionWeights: weights(attributeOf(revision, "RevisionId")),
      },
      { DependsOn: web },
    ),
    output(`${id}FunctionName`, `The Web Function ${name}`, FunctionName),
    output(
      `${id}RevisionId`,
      "The new revision, a later PreviousRevisionId",
      attributeOf(revision, "RevisionId"),
    ),
    output(`${id}DomainName`, "The domain of the endpoint", attributeOf(endpoint, "DomainName")),
  ];
}

function weights(RevisionId: Value): Value {
  const previous = ref("PreviousRevisionId");
  const rest = { "Fn::FindInMap": ["RevisionShares", ref("CanaryPercent"), "Previous"] };
  return when(
    "HasPreviousRevision",
    [
      { RevisionId, Weight: ref("CanaryPercent") },
      { RevisionId: previous, Weight: rest },
    ],
    [{ RevisionId, Weight: 100 }],
  );
}

/** The archive, under the names of either resource. */
function codeOf(bucket: string, key: string, version: string): Values {
  return {
    [bucket]: ref("CodeBucket"),
    [key]: ref("CodeKey"),
    [version]: when("HasCodeVersion", ref("CodeVersion")),
  };
}

/**
 * The statement that the policy of the code bucket must contain, because Lambda reads a Web
 * Function's archive itself. The template has no such policy: it would replace the bucket's own.
 */
export const bucketStatement = {
  Effect: "Allow",
  Principal: { Service: "lambda.amazonaws.com" },
  Action: ["s3:GetObject", "s3:GetObjectVersion"],
  Resource: "arn:aws:s3:::<CodeBucket>/*",
  Condition: {
    StringEquals: { "aws:SourceAccount": "<account>" },
    ArnLike: { "aws:SourceArn": "arn:aws:lambda:<region>:<account>:web-function/*" },
  },
};
