import type { Front } from "./front.ts";
import { eventFunction, functionIds } from "./function-part.ts";
import type { NeededFunction } from "./functions.ts";
import { choice, concurrencyParameters } from "./parameters.ts";
import { requestFunctions } from "./streaming.ts";
import { arnRef, attributeOf, output, ref, resource, type TemplatePart } from "./template.ts";

const isPublic = "IsPublic";

const authParameters: TemplatePart = {
  Parameters: {
    AuthType: choice(
      "NONE: everyone reaches the function URL, and the server verifies tokens. AWS_IAM: only signed requests of principals with permission",
      "NONE",
      "AWS_IAM",
    ),
  },
  Conditions: { [isPublic]: { "Fn::Equals": [ref("AuthType"), "NONE"] } },
};

/** A function URL: no throttling, no access log, and no limits of an API. */
export function urlFront(isStreaming: boolean): Front {
  const { kind, parameters } = requestFunctions(isStreaming);
  return {
    isWeb: false,
    parameters: [concurrencyParameters, ...parameters, authParameters],
    requestKind: kind,
    eventKind: eventFunction(),
    parts: (functions) =>
      functions
        .filter(({ calledBy }) => calledBy === "requests")
        .flatMap((one) => urlParts(one, isStreaming)),
    errors: {
      says: "Requests fail with a 5xx status.",
      page: "server-errors",
      metric: ["AWS/Lambda", "Url5xxCount"],
      of: { FunctionName: ref(functionIds("http").lambda) },
    },
  };
}

function urlParts({ name }: NeededFunction, isStreaming: boolean) {
  const { id, lambda } = functionIds(name);
  const url = `${id}FunctionUrl`;
  const everyone = { FunctionName: arnRef(lambda), Principal: "*" };
  const ifPublic = { Condition: isPublic };
  return [
    resource(url, "AWS::Lambda::Url", {
      TargetFunctionArn: arnRef(lambda),
      AuthType: ref("AuthType"),
      InvokeMode: isStreaming ? "RESPONSE_STREAM" : "BUFFERED",
    }),
    // Since October 2025, a new URL needs both permissions.
    resource(
      `${id}LambdaPermissionUrl`,
      "AWS::Lambda::Permission",
      { ...everyone, Action: "lambda:InvokeFunctionUrl", FunctionUrlAuthType: "NONE" },
      ifPublic,
    ),
    resource(
      `${id}LambdaPermissionInvokedByUrl`,
      "AWS::Lambda::Permission",
      { ...everyone, Action: "lambda:InvokeFunction", InvokedViaFunctionUrl: true },
      ifPublic,
    ),
    output(url, "The URL of the function", attributeOf(url, "FunctionUrl")),
  ];
}
