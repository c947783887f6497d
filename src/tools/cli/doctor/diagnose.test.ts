import { mkdtemp, rm, writeFile } from "node:fs/promises";
import type { AddressInfo } from "node:net";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { CreateTableCommand, DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { DeleteParameterCommand, PutParameterCommand, SSMClient } from "@aws-sdk/client-ssm";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { z } from "zod";
import { type StubAws, type StubOptions, stubAws } from "../../../../test/support/stub-aws.ts";
import { defineFeature } from "../../../app/features/feature.ts";
import { buildServer, serverInternals } from "../../../app/server/server.ts";
import { newRingKey } from "../../../base/secrets/key-ring.ts";
import { createTenantConfig } from "../../../parts/config/declare/declaration.ts";
import type { MessageProof } from "../../../parts/messages/proof.ts";
import { startTestApp, type TestApp } from "../../testing/index.ts";
import { diagnose, type Finding } from "./diagnose.ts";

declare module "../../../base/types/names.ts" {
  interface Events {
    "cup.filled": Record<string, never>;
  }
}

const cups = defineFeature("cups", (r) => {
  r.table("cups", { partitionKey: "id", tenant: false });
  r.config({
    keys: {
      most: createTenantConfig("number", { default: 3, bounds: { min: 1, max: 9 } }),
      token: createTenantConfig("text", { encrypted: true }),
    },
  });
  r.event("cup.filled", z.object({}));
  r.on("cup.filled", { name: "empty", handler: async () => undefined });
});
const plain = defineFeature("plain", () => undefined);
const [path, parameter] = ["/cups-app", "/cups-ring"];
const ringText = JSON.stringify({ active: "2026", keys: { "2026": newRingKey() } });
const whole = (proof: MessageProof = "require") =>
  buildServer({
    features: [cups],
    ssm: { path },
    keyRing: { parameter },
    messages: { proof },
    environment: "production",
  });
const small = () => buildServer({ features: [plain], environment: "production" });
const clock = { now: () => Date.now() };

let app: TestApp;
let ssm: SSMClient;
let stubs: StubAws[] = [];

beforeAll(async () => {
  const server = buildServer({ features: [cups], ssm: { path }, keyRing: { parameter } });
  const parameters = { [`${path}/cups/most`]: "4" };
  app = await startTestApp(server, { parameters, secureParameters: { [parameter]: ringText } });
  await app.settled(); // makes the queues
  const credentials = { accessKeyId: "test", secretAccessKey: "test" };
  ssm = new SSMClient({
    endpoint: app.env["AWS_ENDPOINT_URL"] ?? "",
    region: "us-east-1",
    credentials,
  });
});
afterAll(async () => {
  ssm.destroy();
  await app.close();
});
beforeEach(() => {
  stubs = [];
});
afterEach(() => {
  for (const stub of stubs) stub.close();
  vi.unstubAllEnvs();
});

async function stub(
  answers: Parameters<typeof stubAws>[0],
  options?: StubOptions,
): Promise<string> {
  const made = await stubAws(answers, options);
  stubs.push(made);
  return made.endpoint;
}

const look = (env: Record<string, string | undefined> = {}, server = whole(), timeoutMs = 5_000) =>
  diagnose(serverInternals(server), { env: { ...app.env, ...env }, clock, timeoutMs });
const of = (findings: readonly Finding[], name: string) =>
  findings.find((finding) => finding.name === name);
const put = (Name: string, Value: string, Type: "String" | "SecureString") =>
  ssm.send(new PutParameterCommand({ Name, Value, Type, Overwrite: true }));

test("a server with tenant isolation is checked for its role", async () => {
  const owned = defineFeature("owned", (r) => {
    r.table("owned", { partitionKey: "id", tenant: true });
  });
  const server = buildServer({ features: [owned], isolation: {}, environment: "production" });
  const findings = await look({}, server);
  expect(of(findings, "isolation")).toMatchObject({
    status: "skip",
    message: expect.stringContaining("KEELSON_ISOLATION_ROLE"),
  });
  expect(of(await look(), "isolation")).toBeUndefined();
});

test("a server that receives events of others is checked for their buses, rules and queue", async () => {
  const boxes = defineFeature("boxes", (r) => {
    const given = { source: "aws.s3", input: z.object({}), handler: async () => undefined };
    r.receive("box.filled", { ...given, detailType: "Object Created" });
    r.receive("box.counted", { ...given, detailType: "Object Created" });
    r.receive("box.paid", { ...given, source: "billing", detailType: "Paid", bus: "partners" });
  });
  const server = buildServer({ features: [boxes], environment: "production" });
  const own = await startTestApp(buildServer({ features: [boxes] }));
  try {
    const shown = (findings: readonly Finding[]) =>
      findings
        .filter(({ name }) => /bus|received/.test(name))
        .map(({ status, name }) => `${status} ${name}`);
    const names = [
      "queue keelson-received",
      "queue keelson-received: dead letters",
      "bus default",
      "bus partners",
      "bus default: Object Created of aws.s3",
      "bus partners: Paid of billing",
      "queue keelson-received: policy",
    ];
    expect(shown(await look(own.env, server))).toEqual(
      names.map((name) => `${name.endsWith("policy") ? "skip" : "ok"} ${name}`),
    );
    const endpoint = await stub({
      DescribeEventBus: ({ Name }) =>
        Name === "partners" ? { error: "ResourceNotFoundException" } : { Name },
      ListRules: { Rules: [] },
    });
    const findings = await look({ ...own.env, AWS_ENDPOINT_URL_EVENTBRIDGE: endpoint }, server);
    expect(of(findings, "bus partners: Paid of billing")).toMatchObject({
      status: "skip",
      message: "not checked: see bus partners",
    });
    expect(of(findings, "bus partners")).toMatchObject({
      status: "fail",
      fix: [expect.stringContaining("create-event-bus")],
    });
    const rules = of(findings, "bus default: Object Created of aws.s3");
    expect(rules?.message).toContain("nothing brings Object Created to arn:");
    expect(rules?.fix.join(" ")).toMatch(
      /put-rule .*--event-bus-name default --name keelson-received-[0-9a-f]{8} .*aws\.s3.*Object Created/,
    );
  } finally {
    await own.close();
  }
});

test("a bus with many rules of others is asked only for the targets of rules that may match", async () => {
  const boxes = defineFeature("boxes", (r) => {
    for (const detailType of ["Filled", "Counted", "Paid"])
      r.receive(`box.${detailType.toLowerCase()}`, {
        ...{ source: "billing", detailType, input: z.object({}), handler: async () => undefined },
      });
  });
  const server = buildServer({ features: [boxes], environment: "production" });
  const own = await startTestApp(buildServer({ features: [boxes] }));
  const ruleOf = (source: string, type: string, index: number) => ({
    Name: `${source}-${index}`,
    EventPattern: JSON.stringify({ source: [source], "detail-type": [type] }),
  });
  try {
    const endpoint = await stub({
      DescribeEventBus: { Name: "default" },
      ListRules: {
        Rules: [
          ...Array.from({ length: 200 }, (_, index) => ruleOf("others", "Filled", index)),
          ...["Filled", "Counted", "Paid"].map((type, index) => ruleOf("billing", type, index)),
        ],
      },
      ListTargetsByRule: { Targets: [] },
    });
    await look({ ...own.env, AWS_ENDPOINT_URL_EVENTBRIDGE: endpoint }, server);
    const [{ asked } = { asked: [] }] = stubs;
    const asks = (operation: string) => asked.filter((one) => one === operation).length;
    expect([asks("ListRules"), asks("ListTargetsByRule")]).toEqual([1, 3]);
  } finally {
    await own.close();
  }
});

describe("a server with everything it needs", () => {
  test("passes all checks in a fixed order, and checks that an emulator does not support are skipped", async () => {
    const findings = await look();
    expect(findings.map(({ status, name }) => `${status} ${name}`)).toEqual([
      "ok region",
      "ok credentials",
      "ok clock",
      "ok table keelson-config",
      "skip table keelson-config: point-in-time recovery",
      "skip table keelson-config: deletion protection",
      "ok table keelson-config: Regions",
      "ok table keelson-once",
      "ok table keelson-once: time to live",
      "ok table keelson-once: Regions",
      "ok table keelson-outbox",
      "skip table keelson-outbox: point-in-time recovery",
      "skip table keelson-outbox: deletion protection",
      "skip table keelson-outbox: stream",
      "ok table keelson-outbox: Regions",
      "ok table keelson-cups",
      "skip table keelson-cups: point-in-time recovery",
      "skip table keelson-cups: deletion protection",
      "ok parameters /cups-app",
      "ok key ring /cups-ring",
      "ok proof of messages",
      "ok queue keelson-events",
      "ok queue keelson-events: dead letters",
      "ok queue keelson-jobs.fifo",
      "ok queue keelson-jobs.fifo: dead letters",
      "ok queue keelson-jobs",
      "ok queue keelson-jobs: dead letters",
      "ok queue keelson-jobs: messages that older versions do not read",
      "ok bus keelson",
      "ok bus keelson: rules",
      "skip queue keelson-events: policy",
    ]);
    expect(of(findings, "table keelson-config: point-in-time recovery")?.message).toBe(
      "not checked: the emulator does not know DescribeContinuousBackups",
    );
    expect(JSON.stringify(findings)).not.toContain(ringText.slice(-20, -4));
  });

  test("is checked only for what it uses", async () => {
    const findings = await look({}, small());
    expect(findings.every(({ status }) => status !== "fail")).toBe(true);
    expect(
      findings.filter(
        ({ name }) => !/^(region|credentials|clock|table keelson-(config|once))/.test(name),
      ),
    ).toEqual([]);
    const publishing = defineFeature("publishing", (r) => void r.event("cup.filled", z.object({})));
    const names = (await look({}, buildServer({ features: [publishing] }))).map(({ name }) => name);
    expect(names).toContain("bus keelson");
    expect(names.filter((name) => /rules|queue keelson-events/.test(name))).toEqual([]);
  });
});

describe("the check of message signatures", () => {
  const danger = "anyone who can write to a queue can act as any tenant";
  const proofOf = async (server: ReturnType<typeof whole>) =>
    of(await look({}, server), "proof of messages");

  test("passes when a signature is required, and otherwise warns of the danger", async () => {
    expect(await proofOf(whole())).toMatchObject({
      status: "ok",
      message: expect.stringContaining("required: "),
    });
    expect(await proofOf(whole("sign"))).toMatchObject({
      status: "warn",
      message: expect.stringContaining(`signed, but not required: ${danger}`),
      fix: [],
    });
    expect(await proofOf(whole("off"))).toMatchObject({
      status: "warn",
      message: expect.stringContaining(`off: ${danger}`),
      fix: [],
    });
  });

  test("suggests creating a key ring in production, and finds messages signed in development", async () => {
    const inside = (environment: "production" | "development") =>
      proofOf(buildServer({ features: [cups], environment }));
    expect(await inside("production")).toMatchObject({
      message: expect.stringContaining("off: "),
      fix: ["npx keelson key-ring create --parameter /app/key-ring"],
    });
    expect(await inside("development")).toMatchObject({
      message: expect.stringContaining("signed, but not required"),
    });
  });
});

test("a server on AWS needs no fair queue unless KEELSON_FAIR_JOBS says so", async () => {
  const queuesOf = async (env: Record<string, string>) => {
    const findings = await look({ AWS_ENDPOINT_URL_SQS: "https://sqs.invalid:1", ...env });
    return findings.map(({ name }) => name).filter((name) => name.startsWith("queue keelson-jobs"));
  };
  const ordered = ["queue keelson-jobs.fifo", "queue keelson-jobs.fifo: dead letters"];
  const unread = "queue keelson-jobs: messages that older versions do not read";
  expect(await queuesOf({})).toEqual([...ordered, unread]);
  expect(await queuesOf({ KEELSON_FAIR_JOBS: "receive" })).toEqual([
    ...[...ordered, "queue keelson-jobs", "queue keelson-jobs: dead letters", unread],
  ]);
});

describe("a missing resource", () => {
  test("is reported with the command that creates it, and checks that depend on it are skipped", async () => {
    const findings = await look({
      KEELSON_TABLE_CUPS: "no-cups",
      KEELSON_TABLE_OUTBOX: "no-outbox",
      KEELSON_TABLE_CONFIG: "no-config",
      KEELSON_EVENT_QUEUE: "no-events",
      KEELSON_JOB_QUEUE: "no-jobs.fifo",
      KEELSON_EVENT_BUS: "no-bus",
    });
    const at = `--endpoint-url ${app.env["AWS_ENDPOINT_URL"]}`;
    const create = "aws dynamodb create-table --table-name";
    const keys =
      "--billing-mode PAY_PER_REQUEST --attribute-definitions AttributeName=pk,AttributeType=S AttributeName=sk,AttributeType=S --key-schema AttributeName=pk,KeyType=HASH AttributeName=sk,KeyType=RANGE";
    expect(
      findings
        .filter(({ status }) => status === "fail")
        .map(({ name, message, fix }) => [name, message, ...fix]),
    ).toEqual([
      [
        "table no-config",
        "it does not exist",
        `${create} no-config ${keys} --deletion-protection-enabled ${at}`,
      ],
      [
        "table no-outbox",
        "it does not exist",
        `${create} no-outbox ${keys} --deletion-protection-enabled --stream-specification StreamEnabled=true,StreamViewType=KEYS_ONLY ${at}`,
      ],
      [
        "table no-cups",
        "it does not exist",
        `${create} no-cups --billing-mode PAY_PER_REQUEST --attribute-definitions AttributeName=id,AttributeType=S --key-schema AttributeName=id,KeyType=HASH --deletion-protection-enabled ${at}`,
      ],
      [
        "queue no-events",
        "it does not exist",
        `aws sqs create-queue --queue-name no-events --attributes VisibilityTimeout=30,MaximumMessageSize=1048576,MessageRetentionPeriod=604800 ${at}`,
      ],
      [
        "queue no-jobs.fifo",
        "it does not exist",
        `aws sqs create-queue --queue-name no-jobs.fifo --attributes FifoQueue=true,VisibilityTimeout=30,MaximumMessageSize=1048576,MessageRetentionPeriod=604800 ${at}`,
      ],
      [
        "queue no-jobs",
        "it does not exist",
        `aws sqs create-queue --queue-name no-jobs --attributes VisibilityTimeout=30,MaximumMessageSize=1048576,MessageRetentionPeriod=604800 ${at}`,
      ],
      ["bus no-bus", "it does not exist", `aws events create-event-bus --name no-bus ${at}`],
    ]);
    expect(of(findings, "bus no-bus: rules")?.message).toBe("not checked: see bus no-bus");
    expect(of(findings, "queue no-events: policy")?.message).toBe(
      "not checked: see queue no-events",
    );
    const busAlone = await look({ KEELSON_EVENT_QUEUE: "no-events" });
    expect(of(busAlone, "bus keelson: rules")?.message).toBe("not checked: see queue no-events");
  });

  test("is reported if its table has other keys, with commands for a new table", async () => {
    const client = new DynamoDBClient({
      endpoint: app.env["AWS_ENDPOINT_URL"] ?? "",
      region: "us-east-1",
      credentials: ssm.config.credentials,
    });
    await client.send(
      new CreateTableCommand({
        TableName: "other-keys",
        KeySchema: [{ AttributeName: "pk", KeyType: "HASH" }],
        AttributeDefinitions: [{ AttributeName: "pk", AttributeType: "N" }],
        BillingMode: "PAY_PER_REQUEST",
      }),
    );
    client.destroy();
    const finding = of(await look({ KEELSON_TABLE_ONCE: "other-keys" }), "table other-keys");
    expect(finding).toMatchObject({
      status: "fail",
      message:
        "its keys are pk (N), not pk (S), sk (S); keys cannot be changed, so create another table",
    });
    expect(finding?.fix[0]).toContain("create-table --table-name other-keys-2");
    expect(finding?.fix[1]).toBe("export KEELSON_TABLE_ONCE=other-keys-2");
  });
});

describe("parameters", () => {
  test("that are invalid are reported with a command for each, and no secret is shown", async () => {
    await put(`${path}/cups/most`, "hundreds", "String");
    await put(`${path}/cups/mst`, "5", "String");
    await put(`${path}/cups/Most`, "hush-hush", "SecureString");
    const finding = of(await look(), `parameters ${path}`);
    await put(`${path}/cups/most`, "4", "String");
    for (const name of ["mst", "Most"])
      await ssm.send(new DeleteParameterCommand({ Name: `${path}/cups/${name}` }));
    expect(finding).toMatchObject({
      status: "fail",
      message: expect.stringContaining(`${path}/cups/mst: no feature declares`),
    });
    const at = `--endpoint-url ${app.env["AWS_ENDPOINT_URL"]}`;
    expect(finding?.fix).toContain(`aws ssm delete-parameter --name ${path}/cups/mst ${at}`);
    expect(finding?.fix).toContain(
      `aws ssm put-parameter --overwrite --type String --name ${path}/cups/most --value '…' ${at}`,
    );
    expect(JSON.stringify(finding)).not.toContain("hush-hush");
    expect(of(await look(), `parameters ${path}`)).toMatchObject({
      status: "ok",
      message: "overrides: 1, each valid",
    });
  });

  test("under a key's former name are to be renamed, or removed if the current name exists too", async () => {
    const config = {
      keys: { bound: createTenantConfig("number", { default: 5, formerly: "cups:config:most" }) },
    };
    const server = buildServer({
      features: [defineFeature("cups", (r) => void r.config(config))],
      ssm: { path },
    });
    const [before, today] = [`${path}/cups/most`, `${path}/cups/bound`];
    const finding = of(await look({}, server), `parameters ${path}`);
    await put(today, "6", "SecureString");
    const both = of(await look({}, server), `parameters ${path}`);
    await ssm.send(new DeleteParameterCommand({ Name: today }));

    const at = `--endpoint-url ${app.env["AWS_ENDPOINT_URL"]}`;
    expect(finding).toMatchObject({
      status: "warn",
      message: `${before} is read under a former name of its key, which today is ${today}; rename once the previous release no longer runs`,
      fix: [
        `aws ssm put-parameter --type String --name ${today} --value '…' ${at}`,
        `aws ssm delete-parameter --name ${before} ${at}`,
      ],
    });
    expect(both).toMatchObject({
      status: "warn",
      message: `${before} is not read: there is ${today}; rename once the previous release no longer runs`,
      fix: [`aws ssm delete-parameter --name ${before} ${at}`],
    });
    await ssm.send(new DeleteParameterCommand({ Name: before }));
    await put(before, "7", "SecureString");
    const secure = of(await look({}, server), `parameters ${path}`);
    await ssm.send(new DeleteParameterCommand({ Name: before }));
    await put(before, "4", "String");
    expect(secure?.fix[0]).toContain("--type SecureString");
  });

  test("of type SecureString keep that type in the command", async () => {
    await ssm.send(new DeleteParameterCommand({ Name: `${path}/cups/most` }));
    await put(`${path}/cups/most`, "1000000", "SecureString");
    const finding = of(await look(), `parameters ${path}`);
    await ssm.send(new DeleteParameterCommand({ Name: `${path}/cups/most` }));
    await put(`${path}/cups/most`, "4", "String");
    expect(finding?.fix[0]).toContain("--type SecureString");
    expect(JSON.stringify(finding)).not.toContain("1000000");
  });

  test.each<[string, string, "String" | "SecureString", string]>([
    ["is not JSON", '{"active": "hush-hush"', "SecureString", "get-parameter-history"],
    ["has another shape", '["hush-hush"]', "SecureString", "get-parameter-history"],
    ["is readable for everybody", ringText, "String", "delete-parameter"],
  ])("a key ring that %s is reported, and nothing of it is shown", async (_, text, type, fix) => {
    await ssm.send(new DeleteParameterCommand({ Name: parameter }));
    await put(parameter, text, type);
    const finding = of(await look(), `key ring ${parameter}`);
    await ssm.send(new DeleteParameterCommand({ Name: parameter }));
    await put(parameter, ringText, "SecureString");
    expect(finding).toMatchObject({ status: "fail" });
    expect(finding?.fix[0]).toContain(`aws ssm ${fix}`);
    expect(JSON.stringify(finding)).not.toContain("hush-hush");
    expect(JSON.stringify(finding)).not.toContain(ringText.slice(-20, -4));
  });

  test("a missing key ring fails in production and warns in development, with the command that creates it", async () => {
    const missing = (environment: "production" | "development") =>
      buildServer({ features: [cups], keyRing: { parameter: "/no-ring" }, environment });
    const fix = ["npx keelson key-ring create --parameter /no-ring"];
    expect(of(await look({}, missing("production")), "key ring /no-ring")).toMatchObject({
      status: "fail",
      fix,
    });
    expect(of(await look({}, missing("development")), "key ring /no-ring")).toMatchObject({
      status: "warn",
      fix,
    });
  });

  test("encrypted keys without a key ring get a warning in production only", async () => {
    const without = (environment: "production" | "test") =>
      buildServer({ features: [cups], environment });
    expect(of(await look({}, without("production")), "key ring")).toMatchObject({
      status: "warn",
      message: expect.stringContaining("cups:config:token"),
    });
    expect(of(await look({}, without("test")), "key ring")).toBeUndefined();
  });
});

describe("the clock", () => {
  const dated = async (offMs: number) =>
    of(
      await look(
        { AWS_ENDPOINT_URL: await stub({}, { date: new Date(Date.now() + offMs).toUTCString() }) },
        small(),
      ),
      "clock",
    );

  test.each<[number, string, RegExp]>([
    [0, "ok", /^within 1 s of http/],
    [4_000, "ok", /^within [345] s of http/],
    [20_000, "warn", /^the clock is (18|19|20) s behind http/],
    [-20_000, "warn", /^the clock is (18|19|20) s ahead of http/],
    [600_000, "fail", /^the clock is (598|599|600) s behind .*: AWS refuses signatures/],
    [-600_000, "fail", /^the clock is (598|599|600) s ahead of /],
  ])("that differs by %d ms from the endpoint's time is %s", async (offMs, status, message) => {
    const finding = await dated(offMs);
    expect(finding).toMatchObject({ status, message: expect.stringMatching(message) });
    expect(finding?.fix).toEqual(status === "ok" ? [] : ["sudo timedatectl set-ntp true"]);
  });

  test("is not checked when the endpoint sends no valid date", async () => {
    for (const date of ["", "once upon a time"]) {
      const finding = of(
        await look({ AWS_ENDPOINT_URL: await stub({}, { date }) }, small()),
        "clock",
      );
      expect(finding).toMatchObject({
        status: "skip",
        message: expect.stringContaining("does not report its time"),
      });
    }
  });
});

describe("an endpoint", () => {
  test("is reported when it refuses connections or does not answer within the timeout", async () => {
    const refused = await look({ AWS_ENDPOINT_URL: "http://127.0.0.1:9" });
    expect(of(refused, "table keelson-config")).toMatchObject({
      status: "fail",
      message:
        "http://127.0.0.1:9 does not answer (ECONNREFUSED); start it, or name another endpoint in AWS_ENDPOINT_URL",
      fix: ["curl --head http://127.0.0.1:9"],
    });
    const silent = createServer();
    await new Promise<void>((resolve) => silent.listen(0, "127.0.0.1", resolve));
    const { port } = silent.address() as AddressInfo;
    const startMs = performance.now();
    const findings = await look(
      { AWS_ENDPOINT_URL: `http://user:hush-hush@127.0.0.1:${port}/base` },
      whole(),
      1_000,
    );
    expect(performance.now() - startMs).toBeLessThan(10_000);
    silent.close();
    expect(findings.map(({ status }) => status).filter((status) => status === "ok").length).toBe(3); // region, credentials, and what needs no call
    for (const name of [
      "clock",
      "table keelson-config",
      `parameters ${path}`,
      "queue keelson-events",
      "bus keelson",
    ]) {
      expect(of(findings, name)).toMatchObject({
        status: "fail",
        message: expect.stringMatching(
          new RegExp(`^http://127\\.0\\.0\\.1:${port}/base does not answer \\(not in time\\)`),
        ),
      });
    }
    expect(JSON.stringify(findings)).not.toContain("hush-hush");
  });

  test("in the server's own options is used for DynamoDB", async () => {
    const endpoint = app.env["AWS_ENDPOINT_URL"] ?? "";
    const server = buildServer({ features: [plain], dynamodb: { endpoint, prefix: "nobody" } });
    const findings = await look({ AWS_ENDPOINT_URL: "http://127.0.0.1:9" }, server);
    expect(of(findings, "table nobody-config")).toMatchObject({ message: "it does not exist" });
  });
});

describe("credentials", () => {
  test.each<[string, string, string | undefined]>([
    [
      "a role",
      "User: arn:aws:sts::123456789012:assumed-role/deployer/me is not authorized to perform: x on resource: arn:aws:dynamodb:eu-west-1:123456789012:table/keelson-config because",
      `aws iam put-role-policy --role-name deployer --policy-name keelson-dynamodb-DescribeTable --policy-document '{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"dynamodb:DescribeTable","Resource":"arn:aws:dynamodb:eu-west-1:123456789012:table/keelson-config"}]}'`,
    ],
    [
      "a user",
      "User: arn:aws:iam::123456789012:user/ann is not authorized to perform: x on resource: arn:aws:dynamodb:eu-west-1:123456789012:table/keelson-config",
      "aws iam put-user-policy --user-name ann --policy-name",
    ],
    ["whom it does not name", "no", undefined],
  ])(
    "of %s without permission are reported with the command that grants it",
    async (_, message, command) => {
      const AWS_ENDPOINT_URL = await stub({
        "*": { error: "com.amazon.coral.service#AccessDeniedException", message },
      });
      const findings = await look({ AWS_ENDPOINT_URL });
      const finding = of(findings, "table keelson-config");
      expect(finding).toMatchObject({
        status: "fail",
        message: "the credentials may not call dynamodb:DescribeTable on keelson-config",
      });
      if (command === undefined) expect(finding?.fix).toEqual([]);
      else expect(finding?.fix[0]).toContain(command);
      const said = (name: string) => of(findings, name)?.message;
      expect(said("clock")).toMatch(/^within/); // an answer that says no says what time it is
      expect(said(`parameters ${path}`)).toBe(
        `the credentials may not call ssm:GetParametersByPath on ${path}`,
      );
      expect(said(`key ring ${parameter}`)).toBe(
        `the credentials may not call ssm:GetParameter on ${parameter}`,
      );
      expect(said("queue keelson-jobs.fifo")).toBe(
        "the credentials may not call sqs:GetQueueUrl on keelson-jobs.fifo",
      );
      expect(said("bus keelson")).toBe(
        "the credentials may not call events:DescribeEventBus on keelson",
      );
    },
  );

  test("that AWS refuses are reported by error name only, and other errors with their message", async () => {
    const refusing = await stub({
      "*": { error: "UnrecognizedClientException", message: "AKIAHUSHHUSH" },
    });
    const finding = of(await look({ AWS_ENDPOINT_URL: refusing }), "table keelson-config");
    expect(finding).toMatchObject({
      status: "fail",
      message: "the credentials are refused: UnrecognizedClientException",
    });
    const failing = await stub({
      "*": { error: "ValidationException", message: "not\u001b[31m like that" },
    });
    expect(of(await look({ AWS_ENDPOINT_URL: failing }), "table keelson-config")).toMatchObject({
      status: "fail",
      message: expect.stringMatching(
        /^dynamodb DescribeTable of keelson-config failed: ValidationException: not/,
      ),
    });
  });

  test("and a region that cannot be found are reported, and a hanging lookup times out", async () => {
    const folder = await mkdtemp(join(tmpdir(), "keelson-doctor-"));
    const config = join(folder, "config");
    await writeFile(config, "");
    const none = {
      AWS_ACCESS_KEY_ID: undefined,
      AWS_SECRET_ACCESS_KEY: undefined,
      AWS_REGION: undefined,
    };
    const own = {
      ...none,
      AWS_DEFAULT_REGION: undefined,
      AWS_PROFILE: undefined,
      AWS_EC2_METADATA_DISABLED: "true",
    };
    for (const [name, value] of Object.entries({
      ...own,
      AWS_CONFIG_FILE: config,
      AWS_SHARED_CREDENTIALS_FILE: join(folder, "no"),
    }))
      vi.stubEnv(name, value);
    const findings = await look(none, small());
    expect(of(findings, "region")).toMatchObject({ status: "fail", message: "no region is set" });
    expect(of(findings, "credentials")).toMatchObject({
      status: "fail",
      message: "none are found (CredentialsProviderError)",
      fix: ["aws configure", "aws sso login"],
    });
    // What depends on them is not checked, so that nobody looks for a fault there.
    const failed = findings.filter(({ status }) => status === "fail");
    expect(failed.map(({ name }) => name)).toEqual(["region", "credentials"]);
    expect(of(findings, "table keelson-config")?.message).toMatch(/^not checked: see /);
    const slow = join(folder, "slow"); // the SDK reads a file once
    await writeFile(slow, "[profile slow]\nregion = eu-west-1\ncredential_process = sleep 4\n");
    vi.stubEnv("AWS_CONFIG_FILE", slow);
    vi.stubEnv("AWS_PROFILE", "slow");
    const hanging = await look({ ...none, AWS_ENDPOINT_URL: "http://127.0.0.1:9" }, small(), 1_000);
    expect(of(hanging, "credentials")).toMatchObject({
      status: "fail",
      message: "it cannot be checked: no answer within 1000 ms",
    });
    await rm(folder, { recursive: true });
  });
});
