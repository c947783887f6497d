// Creates the packaged stack in a LocalStack, without the resources that LocalStack lacks: functions and their API.
import { readFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { parametersOf, prefixOf } from "./package-sample.mjs";

const lacking = /^AWS::(Lambda|ApiGatewayV2)::/;
const timeoutMs = 120_000;

/** Variables that point an application at a LocalStack. */
export function localStackVariables(endpoint) {
  return {
    AWS_ENDPOINT_URL: endpoint,
    AWS_REGION: "us-east-1",
    AWS_ACCESS_KEY_ID: "test",
    AWS_SECRET_ACCESS_KEY: "test",
  };
}

/** The template without resources of types that LocalStack lacks, and without resources that refer to one of these. */
export function templateFor(template) {
  const resources = { ...template.Resources };
  const leftOut = Object.keys(resources).filter((name) => lacking.test(resources[name].Type));
  for (const name of leftOut) {
    delete resources[name];
    for (const [other, resource] of Object.entries(resources)) {
      if (refersTo(resource, name) && !leftOut.includes(other)) leftOut.push(other); // reached by the outer loop
    }
  }
  const outputs = Object.entries(template.Outputs).filter(
    ([, output]) => !leftOut.some((name) => refersTo(output, name)),
  );
  return {
    template: { ...template, Resources: resources, Outputs: Object.fromEntries(outputs) },
    leftOut,
  };
}

/**
 * Creates the stack of a stage if it does not exist.
 *
 * @param file - the packaged template.
 * @returns the variables of the stack's functions, which point the sample at its tables, queues and bus.
 * @throws Error naming each resource that could not be created.
 */
export async function deployToLocalStack(endpoint, { stage, file }, say) {
  const began = performance.now();
  const packaged = JSON.parse(readFileSync(file, "utf8"));
  const { template, leftOut } = templateFor(packaged);
  const stackName = prefixOf(stage);
  const parameters = {
    NamePrefix: stackName,
    ParametersPath: parametersOf(stage),
    DeletionProtection: "false",
    CodeBucket: "none", // only functions use it, which are left out
    CodeKey: "none",
  };
  const stack = { endpoint, stackName };
  const isNew = await create(stack, template, parameters);
  if (!isNew) say(`the stack ${stackName} exists, and stays unchanged`);
  const resources = await whenMade(stack);
  if (isNew) {
    const seconds = ((performance.now() - began) / 1000).toFixed(1);
    say(
      `${resources.size} resources made in ${seconds} s; left out, as LocalStack lacks them: ${leftOut.length} resources`,
    );
  }
  return { ...localStackVariables(endpoint), ...variablesOf(packaged, resources, parameters) };
}

async function create(stack, template, parameters) {
  const given = Object.entries(parameters).flatMap(([name, value], index) => [
    [`Parameters.member.${index + 1}.ParameterKey`, name],
    [`Parameters.member.${index + 1}.ParameterValue`, value],
  ]);
  try {
    const capabilities = { "Capabilities.member.1": "CAPABILITY_IAM" };
    await cloudFormation(stack, "CreateStack", {
      TemplateBody: JSON.stringify(template, withoutTexts),
      ...capabilities,
      ...Object.fromEntries(given),
    });
    return true;
  } catch (error) {
    if (!/AlreadyExists|already exists/.test(error.message)) throw error;
    return false;
  }
}

/** Members that CloudFormation does not use. */
const texts = ["Sid", "Description", "AlarmDescription", "ConstraintDescription"];

/** A template that is sent, not read from a bucket, has at most 51,200 bytes. */
function withoutTexts(name, value) {
  return texts.includes(name) ? undefined : value;
}

/** The names of the created resources, by logical ID. */
async function whenMade(stack) {
  const until = performance.now() + timeoutMs;
  for (;;) {
    const [status = ""] = valuesOf(await cloudFormation(stack, "DescribeStacks"), "StackStatus");
    const isMade = /_COMPLETE$/.test(status) && !/ROLLBACK/.test(status);
    if (isMade || /FAILED|ROLLBACK/.test(status) || performance.now() > until) {
      const resources = (await cloudFormation(stack, "DescribeStackResources"))
        .split("<member>")
        .slice(1);
      const of = (text, name) => valuesOf(text, name)[0];
      if (isMade)
        return new Map(
          resources.map((text) => [of(text, "LogicalResourceId"), of(text, "PhysicalResourceId")]),
        );
      const failed = resources.filter((text) => !/COMPLETE/.test(of(text, "ResourceStatus")));
      const reasons = failed.map((text) =>
        ["LogicalResourceId", "ResourceStatus", "ResourceStatusReason"]
          .map((name) => of(text, name))
          .join(" "),
      );
      throw new Error(`the stack ${stack.stackName} is ${status}: ${reasons.join("; ")}`);
    }
    await delay(250);
  }
}

/** Calls CloudFormation without its SDK, which is not one of the repository's packages. */
async function cloudFormation({ endpoint, stackName }, action, parameters = {}) {
  const scope =
    "Credential=test/20260101/us-east-1/cloudformation/aws4_request, SignedHeaders=host, Signature=0";
  const response = await fetch(endpoint, {
    method: "POST",
    headers: { authorization: `AWS4-HMAC-SHA256 ${scope}` },
    body: new URLSearchParams({
      Action: action,
      Version: "2010-05-15",
      StackName: stackName,
      ...parameters,
    }),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${action}: ${response.status} ${text}`);
  return text;
}

function valuesOf(text, name) {
  return [...text.matchAll(new RegExp(`<${name}>([^<]*)</${name}>`, "g"))].map(
    ([, value]) => value,
  );
}

/** The environment of the functions, with the names of the created resources, but without values that only AWS has. */
function variablesOf({ Resources }, made, parameters) {
  const { Variables } = Resources.HttpLambdaFunction.Properties.Environment;
  const entries = Object.entries(Variables).map(([name, value]) => [
    name,
    typeof value === "string" ? value : (made.get(value.Ref) ?? parameters[value.Ref]),
  ]);
  return Object.fromEntries(entries.filter(([, value]) => value !== undefined));
}

function refersTo(value, name) {
  if (typeof value === "string")
    return value.includes(`\${${name}}`) || value.includes(`\${${name}.`);
  if (typeof value !== "object" || value === null) return false;
  if (value.Ref === name || value["Fn::GetAtt"]?.[0] === name) return true;
  return Object.values(value).some((member) => refersTo(member, name));
}
