import { execFile } from "node:child_process";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import {
  DescribeTableCommand,
  DescribeTimeToLiveCommand,
  DynamoDBClient,
  ListTablesCommand,
} from "@aws-sdk/client-dynamodb";
import {
  EventBridgeClient,
  ListRulesCommand,
  ListTargetsByRuleCommand,
} from "@aws-sdk/client-eventbridge";
import { GetQueueAttributesCommand, GetQueueUrlCommand, SQSClient } from "@aws-sdk/client-sqs";
import { startTestApp } from "keelson/testing";
import { afterAll, beforeAll, expect, inject, test } from "vitest";
import { server } from "../../examples/files/server.ts";
import { type StartedProcess, signalGroup, startProcess } from "../support/process.ts";
import { root } from "./package.ts";

const run = promisify(execFile);
const { endpoint, prefix: untouched, variables } = inject("deployed");
const account = {
  endpoint,
  region: "us-east-1",
  credentials: { accessKeyId: "test", secretAccessKey: "test" },
};
const [dynamodb, sqs, eventBridge] = [
  new DynamoDBClient(account),
  new SQSClient(account),
  new EventBridgeClient(account),
];
const directory = mkdtempSync(join(tmpdir(), "keelson-deploy-"));
const prefix = "keelson-files-dev";
const tables = ["config", "once", "outbox", "kept-events", "files"];
let started: StartedProcess;

beforeAll(async () => {
  started = await startProcess("npm", ["run", "start:localstack"], {
    LOCALSTACK_ENDPOINT: endpoint,
    AWS_ENDPOINT_URL: undefined,
    KEELSON_DIRECTORY: directory,
    LOG_FORMAT: "json",
    PORT: "0",
  });
});
afterAll(async () => {
  signalGroup(started, "SIGKILL");
  for (const client of [dynamodb, sqs, eventBridge]) client.destroy();
});

test("the container uses the stack's resources, and creates no table of its own", async () => {
  const { TableNames = [] } = await dynamodb.send(new ListTablesCommand({}));

  expect(
    TableNames.filter((name) => name.startsWith(prefix) || name.startsWith("keelson-c")).sort(),
  ).toEqual(tables.map((name) => `${prefix}-${name}`).sort());
  expect(started.text()).toContain("resources made");
});

test("POST /files leads to a scan, and the message about it is logged", async () => {
  const response = await send(
    "POST",
    "/files",
    { name: "a.txt", sizeMb: 1 },
    { "x-request-id": "deployed-1" },
  );
  expect(response.status).toBe(201);
  // Safe: the output of files.file.create.
  const { id } = (await response.json()) as { id: string };

  await expect
    .poll(() => started.logs)
    .toContainEqual(
      expect.objectContaining({
        msg: "delivery.message",
        message: { text: "the file was scanned", file: id },
        origRequestId: "deployed-1",
        tenantId: "acme",
      }),
    );
});

test("each event is processed once: the container adds no second rule", async () => {
  const { Rules = [] } = await eventBridge.send(new ListRulesCommand({ EventBusName: prefix }));

  expect(Rules.map(({ Name }) => Name)).toEqual(["keelson-events"]);
});

test("an override in the stack's parameters takes effect", async () => {
  const response = await send("GET", "/config/files:config:signed-url-expiry-seconds");

  expect(await response.json()).toMatchObject({ value: 900, source: "app-override" });
});

test("keelson doctor reports only the missing key ring, and its fix works", async () => {
  const [from, to] = [untouched, prefix].map((name) => name.replace("keelson-files-", "")) as [
    string,
    string,
  ]; // safe: two of two
  const env = Object.fromEntries(
    Object.entries(variables).map(([name, value]) => [name, value.replaceAll(from, to)]),
  );
  const keelson = (...args: readonly string[]) =>
    // It exits with 1 if it finds a problem, and prints it.
    run(process.execPath, ["src/tools/cli/main.ts", ...args], {
      cwd: root,
      env: { ...process.env, ...env },
    }).catch((failed: { stdout: string }) => failed);
  const failing = async () => {
    const { stdout } = await keelson("doctor", "examples/files/server.ts", "--json");
    // Safe: as it documents.
    const { checks } = JSON.parse(stdout) as {
      checks: { name: string; status: string; fix: string[] }[];
    };
    expect(checks.length).toBeGreaterThan(10);
    return checks.filter(({ status }) => status === "fail");
  };
  const [missing, ...others] = await failing();
  expect([missing?.name, others]).toEqual(["key ring /keelson-files/dev/key-ring", []]);
  const [command = ""] = missing?.fix ?? [];
  await keelson(...command.replace("npx keelson ", "").split(" "));

  expect(await failing()).toEqual([]);
});

test("the stack equals the resources that the container creates in an empty account", async () => {
  // A stage without a container, which would repair a rule.
  process.env["KEELSON_TEST_ENDPOINT"] = endpoint;
  const app = await startTestApp(server);
  try {
    // Bus and queues are made for the first event.
    const ann = { id: "ann", tenantId: "acme" };
    expect(
      (await app.fetch("/files", { body: { name: "b.txt", sizeMb: 1 }, as: ann })).status,
    ).toBe(201);
    const own = app.env;
    for (const name of tables) {
      const made = await tableOf(
        String(own[`KEELSON_TABLE_${name.toUpperCase().replace("-", "_")}`]),
      );
      expect([name, await tableOf(`${untouched}-${name}`)]).toEqual([name, made]);
    }
    for (const [stacks, made] of [
      [`${untouched}-events`, own["KEELSON_EVENT_QUEUE"]],
      [`${untouched}-jobs.fifo`, own["KEELSON_JOB_QUEUE"]],
    ]) {
      expect(await queueOf(String(stacks))).toEqual(await queueOf(String(made)));
    }
    expect(await rulesOf(untouched)).toEqual(await rulesOf(String(own["KEELSON_EVENT_BUS"])));
  } finally {
    await app.close();
  }
});

test("SIGTERM to npm drains and ends the container, and leaves the given LocalStack running", async () => {
  started.child.kill("SIGTERM");

  await expect
    .poll(() => started.logs)
    .toContainEqual(expect.objectContaining({ msg: "shutdown.completed", clean: true }));
  expect(await started.exited).toEqual({ code: 0, signal: null });
  expect((await fetch(`${endpoint}/_localstack/health`)).status).toBe(200);
});

async function send(
  method: string,
  path: string,
  body?: object,
  headers: Record<string, string> = {},
): Promise<Response> {
  return fetch(`http://127.0.0.1:${started.port}${path}`, {
    method,
    headers: {
      authorization: `Bearer ${await token()}`,
      "content-type": "application/json",
      ...headers,
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
}

async function token(): Promise<string> {
  const args = [
    "run",
    "--silent",
    "token",
    "--",
    "--tenant",
    "acme",
    "--user",
    "ann",
    "--roles",
    "admin",
  ];
  const { stdout } = await run("npm", args, {
    cwd: root,
    env: { ...process.env, KEELSON_DIRECTORY: directory },
  });
  return stdout.trim();
}

/** Members of a table that have to be equal. */
async function tableOf(TableName: string) {
  const { Table } = await dynamodb.send(new DescribeTableCommand({ TableName }));
  const { TimeToLiveDescription } = await dynamodb.send(
    new DescribeTimeToLiveCommand({ TableName }),
  );
  return {
    keys: Table?.KeySchema,
    attributes: Table?.AttributeDefinitions,
    indexes: [Table?.GlobalSecondaryIndexes ?? [], Table?.LocalSecondaryIndexes ?? []],
    timeToLive: TimeToLiveDescription,
    billing: Table?.BillingModeSummary?.BillingMode,
  };
}

/** Members of a queue that have to be equal; a function's is hidden for longer than a container's. */
async function queueOf(QueueName: string) {
  const { QueueUrl } = await sqs.send(new GetQueueUrlCommand({ QueueName }));
  const { Attributes = {} } = await sqs.send(
    new GetQueueAttributesCommand({ QueueUrl, AttributeNames: ["All"] }),
  );
  // Safe: both have one, or the comparison fails.
  const redrive = JSON.parse(Attributes["RedrivePolicy"] ?? "{}") as {
    deadLetterTargetArn?: string;
    maxReceiveCount?: unknown;
  };
  return {
    isOrdered: Attributes["FifoQueue"],
    deduplicates: Attributes["ContentBasedDeduplication"],
    maxReceives: Number(redrive.maxReceiveCount),
    dead: redrive.deadLetterTargetArn?.replace(/.*-(events|jobs)/, "$1"),
  };
}

async function rulesOf(EventBusName: string) {
  const { Rules = [] } = await eventBridge.send(new ListRulesCommand({ EventBusName }));
  return Promise.all(
    Rules.map(async ({ Name, EventPattern }) => {
      const { Targets = [] } = await eventBridge.send(
        new ListTargetsByRuleCommand({ EventBusName, Rule: Name }),
      );
      const targets = Targets.map(({ Id, Arn, InputPath }) => [
        Id,
        Arn?.replace(/.*-(events|jobs)/, "$1"),
        InputPath,
      ]);
      return { Name, pattern: JSON.parse(EventPattern ?? ""), targets };
    }),
  );
}
