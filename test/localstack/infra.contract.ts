import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, expect, test } from "vitest";
import { z } from "zod";
import { serverInternals } from "../../src/app/server/server.ts";
import { buildServer, defineFeature } from "../../src/index.ts";
import { diagnose } from "../../src/tools/cli/doctor/diagnose.ts";
import { serverTemplate } from "../../src/tools/infra/server-template.ts";
import { templateText } from "../../src/tools/infra/template.ts";
import { localStack } from "./endpoint.ts";

// The template of `keelson infra` makes what `keelson doctor` looks for.

const { endpoint, region, credentials } = localStack();
const prefix = `infra-${crypto.randomUUID().slice(0, 8)}`;
const drops = defineFeature("drops", (r) => {
  r.table("drops", {
    partitionKey: "pk",
    sortKey: "sk",
    indexes: {
      byOwner: { partitionKey: "owner" },
      bySize: { partitionKey: "size", sortKey: "owner", project: ["colour"] },
    },
    tenant: false,
  });
  r.event("doctor.called" as never, z.object({}) as never);
  r.on("doctor.called" as never, { name: "answer", handler: async () => undefined });
});
const server = serverInternals(buildServer({ features: [drops], dynamodb: { prefix } }));

/** Calls CloudFormation by its own protocol: its SDK is not one of the repository's packages. */
async function cloudFormation(
  action: string,
  parameters: Readonly<Record<string, string>>,
): Promise<string> {
  const response = await fetch(endpoint, {
    method: "POST",
    headers: {
      authorization: `AWS4-HMAC-SHA256 Credential=${credentials.accessKeyId}/20260101/${region}/cloudformation/aws4_request, SignedHeaders=host, Signature=0`,
    },
    body: new URLSearchParams({
      Action: action,
      Version: "2010-05-15",
      StackName: prefix,
      ...parameters,
    }),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${action}: ${response.status} ${text}`);
  return text;
}

const statusOf = (text: string) => /<StackStatus>(\w+)<\/StackStatus>/.exec(text)?.[1];
async function made(): Promise<string> {
  for (;;) {
    const text = await cloudFormation("DescribeStacks", {});
    if (!/IN_PROGRESS/.test(String(statusOf(text)))) return text;
    await sleep(200);
  }
}

afterAll(() => cloudFormation("DeleteStack", {}));

test("the stack of a server's template has everything that doctor checks", async () => {
  const template = serverTemplate(server, { stage: "dev", part: "data", fair: "events" });
  const parameters = {
    "Parameters.member.1.ParameterKey": "DeletionProtection",
    "Parameters.member.1.ParameterValue": "false",
  };
  await cloudFormation("CreateStack", { TemplateBody: templateText(template), ...parameters });
  const text = await made();
  expect(text).toContain("CREATE_COMPLETE");

  const outputs = new Map(
    [
      ...text.matchAll(/<member><OutputKey>(\w+)<\/OutputKey><OutputValue>([^<]*)<\/OutputValue>/g),
    ].map(([, key, value]) => [key, value]),
  );
  // The description of an output names the variable that takes its value.
  const variables = Object.entries(template.Outputs).flatMap(([key, { Description }]) =>
    /^KEELSON_\w+$/.test(Description) ? [[Description, outputs.get(key)]] : [],
  );
  const env = {
    ...Object.fromEntries(variables),
    AWS_ENDPOINT_URL: endpoint,
    AWS_REGION: region,
    AWS_ACCESS_KEY_ID: credentials.accessKeyId,
    AWS_SECRET_ACCESS_KEY: credentials.secretAccessKey,
  };
  const findings = await diagnose(server, {
    env,
    clock: { now: () => Date.now() },
    timeoutMs: 60_000,
  });
  // LocalStack's CloudFormation leaves recovery out, protection is off by the parameter, and proofs are the server's own.
  const unlike = /: (point-in-time recovery|deletion protection)$|^proof of messages$/;
  expect(findings.filter(({ status, name }) => status !== "ok" && !unlike.test(name))).toEqual([]);
  expect(findings.map(({ name }) => name)).toEqual(
    expect.arrayContaining([`bus ${prefix}-dev: rules`, `queue ${prefix}-dev-events: policy`]),
  );
});
