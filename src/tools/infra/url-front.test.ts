import { expect, test } from "vitest";
import {
  arn,
  idsOf,
  properties,
  sheds,
  spades,
  statementsOf,
  templateOf,
} from "../../../test/support/server-templates.ts";

const http = templateOf([spades, sheds]);
const url = templateOf([spades, sheds], { front: "url" });
const streaming = templateOf([spades, sheds], { front: "url", stream: true });

test("a function URL is public by default, with both permissions that AWS requires", () => {
  expect(properties(url, "HttpFunctionUrl")).toEqual({
    TargetFunctionArn: arn("HttpLambdaFunction"),
    AuthType: { Ref: "AuthType" },
    InvokeMode: "BUFFERED",
  });
  expect(url.Parameters["AuthType"]).toMatchObject({
    Default: "NONE",
    AllowedValues: ["NONE", "AWS_IAM"],
  });
  const everyone = { FunctionName: arn("HttpLambdaFunction"), Principal: "*" };
  expect(url.Resources["HttpLambdaPermissionUrl"]).toEqual({
    Type: "AWS::Lambda::Permission",
    Condition: "IsPublic",
    Properties: {
      ...everyone,
      Action: "lambda:InvokeFunctionUrl",
      FunctionUrlAuthType: "NONE",
    },
  });
  expect(url.Resources["HttpLambdaPermissionInvokedByUrl"]).toEqual({
    Type: "AWS::Lambda::Permission",
    Condition: "IsPublic",
    Properties: {
      ...everyone,
      Action: "lambda:InvokeFunction",
      InvokedViaFunctionUrl: true,
    },
  });
  expect(url.Conditions["IsPublic"]).toEqual({ "Fn::Equals": [{ Ref: "AuthType" }, "NONE"] });
});

test("a streaming function URL streams, and its function may run as long as StreamTimeout says", () => {
  expect(properties(streaming, "HttpFunctionUrl")["InvokeMode"]).toBe("RESPONSE_STREAM");
  expect(properties(streaming, "HttpLambdaFunction")).toEqual({
    ...properties(url, "HttpLambdaFunction"),
    Timeout: { Ref: "StreamTimeout" },
  });
  expect(properties(streaming, "QueueLambdaFunction")).toEqual(
    properties(url, "QueueLambdaFunction"),
  );
  expect(streaming.Parameters["StreamTimeout"]).toMatchObject({
    Default: 60,
    MinValue: 1,
    MaxValue: 900,
  });
  expect(Object.keys(url.Parameters)).not.toContain("StreamTimeout");
});

test("the functions, roles and alarms behind a function URL are those of the http front", () => {
  for (const type of ["AWS::Lambda::Function", "AWS::IAM::Role", "AWS::CloudWatch::Alarm"])
    expect(idsOf(url, type)).toEqual(idsOf(http, type));
  for (const id of idsOf(http, "AWS::Lambda::Function"))
    expect(properties(url, id)).toEqual(properties(http, id));
  for (const role of idsOf(http, "AWS::IAM::Role"))
    expect(statementsOf(url, role)).toEqual(statementsOf(http, role));
  expect(properties(url, "HttpErrorsAlarm")).toMatchObject({
    Namespace: "AWS/Lambda",
    MetricName: "Url5xxCount",
    Dimensions: [{ Name: "FunctionName", Value: { Ref: "HttpLambdaFunction" } }],
  });
  expect(url.Outputs["HttpFunctionUrl"]?.Value).toEqual({
    "Fn::GetAtt": ["HttpFunctionUrl", "FunctionUrl"],
  });
});
