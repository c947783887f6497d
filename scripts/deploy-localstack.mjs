// Makes the packaged stack in a LocalStack, but for what it lacks: functions and the API in front of them.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { packageDirectory, seconds } from "./package-osls.mjs";

const root = join(import.meta.dirname, "..");
const lacking = /^AWS::(Lambda|ApiGatewayV2)::/;
const timeoutMs = 120_000;

/** What an application is told to find its way into a LocalStack. */
export function localStackVariables(endpoint) {
  return { AWS_ENDPOINT_URL: endpoint, AWS_REGION: "us-east-1", AWS_ACCESS_KEY_ID: "test", AWS_SECRET_ACCESS_KEY: "test" };
}

/** The template that `npm run package` has written. */
export function packagedTemplate(directory = packageDirectory) {
  return JSON.parse(readFileSync(resolve(root, directory, "cloudformation-template-update-stack.json"), "utf8"));
}

/** The template without the resources of types that LocalStack lacks, and without whatever refers to one of them. */
export function templateFor(template) {
  const resources = { ...template.Resources };
  const leftOut = Object.keys(resources).filter((name) => lacking.test(resources[name].Type));
  for (const name of leftOut) {
    delete resources[name];
    for (const [other, resource] of Object.entries(resources)) {
      if (refersTo(resource, name) && !leftOut.includes(other)) leftOut.push(other); // walked as well, as it is
    }
  }
  const outputs = Object.entries(template.Outputs ?? {}).filter(([, output]) => !leftOut.some((name) => refersTo(output, name)));
  return { template: { ...template, Resources: resources, Outputs: Object.fromEntries(outputs) }, leftOut };
}

/**
 * Makes the stack, where it is not there.
 *
 * @returns the variables that point the sample at the stack's tables, queues and bus: those of its functions.
 * @throws Error naming each resource that could not be made.
 */
export async function deployToLocalStack(endpoint, say, packaged = packagedTemplate()) {
  const began = performance.now();
  const { template, leftOut } = templateFor(packaged);
  const stackName = packaged.Resources.HttpLambdaFunction.Properties.FunctionName.replace(/-http$/, "");
  const sdk = createRequire(join(root, "infra", "package.json"))("@aws-sdk/client-cloudformation");
  const client = new sdk.CloudFormationClient({
    endpoint,
    region: "us-east-1",
    credentials: { accessKeyId: "test", secretAccessKey: "test" },
  });
  try {
    const isNew = await create(client, sdk, {
      StackName: stackName,
      TemplateBody: JSON.stringify(template),
      Parameters: Object.entries({ NamePrefix: stackName, DeletionProtection: "false" }).map(
        ([ParameterKey, ParameterValue]) => ({ ParameterKey, ParameterValue }),
      ),
    });
    if (!isNew) say(`the stack ${stackName} is there already, and left as it is`);
    const resources = await whenMade(client, sdk, stackName);
    if (isNew)
      say(
        `${resources.length} resources made in ${seconds(began)}; left out, as LocalStack lacks them: ${leftOut.length} resources`,
      );
    return { ...localStackVariables(endpoint), ...variablesOf(packaged, resources) };
  } finally {
    client.destroy();
  }
}

async function create(client, { CreateStackCommand }, stack) {
  try {
    await client.send(new CreateStackCommand({ ...stack, Capabilities: ["CAPABILITY_NAMED_IAM"] }));
    return true;
  } catch (error) {
    if (error.name !== "AlreadyExistsException" && !/already exists/.test(error.message)) throw error;
    return false;
  }
}

async function whenMade(client, { DescribeStacksCommand, DescribeStackResourcesCommand }, StackName) {
  const until = performance.now() + timeoutMs;
  for (;;) {
    const { Stacks } = await client.send(new DescribeStacksCommand({ StackName }));
    const [{ StackStatus, StackStatusReason }] = Stacks;
    if (/_COMPLETE$/.test(StackStatus) && !/ROLLBACK/.test(StackStatus)) break;
    if (/FAILED|ROLLBACK/.test(StackStatus) || performance.now() > until) {
      const { StackResources = [] } = await client.send(new DescribeStackResourcesCommand({ StackName }));
      const failed = StackResources.filter(({ ResourceStatus }) => !/COMPLETE/.test(ResourceStatus));
      const reasons = failed.map(
        ({ LogicalResourceId, ResourceStatus, ResourceStatusReason }) =>
          `${LogicalResourceId} ${ResourceStatus} ${ResourceStatusReason ?? ""}`,
      );
      throw new Error(`the stack ${StackName} is ${StackStatus}: ${StackStatusReason ?? ""} ${reasons.join("; ")}`);
    }
    await delay(250);
  }
  return (await client.send(new DescribeStackResourcesCommand({ StackName }))).StackResources;
}

/** The environment of the functions, with the names of what was made; what only AWS can fill in is left out. */
function variablesOf({ Resources }, made) {
  const { Variables } = Resources.HttpLambdaFunction.Properties.Environment;
  const names = new Map(made.map(({ LogicalResourceId, PhysicalResourceId }) => [LogicalResourceId, PhysicalResourceId]));
  const entries = Object.entries(Variables).map(([name, value]) => [
    name,
    typeof value === "string" ? value : names.get(value.Ref),
  ]);
  return Object.fromEntries(entries.filter(([, value]) => value !== undefined));
}

function refersTo(value, name) {
  if (typeof value === "string") return value.includes(`\${${name}}`) || value.includes(`\${${name}.`);
  if (typeof value !== "object" || value === null) return false;
  if (value.Ref === name || value["Fn::GetAtt"]?.[0] === name) return true;
  return Object.values(value).some((member) => refersTo(member, name));
}
