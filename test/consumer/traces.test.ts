// One trace from a request to the webhook that follows from it, as a collector gets it from OpenTelemetry's SDK, with and without
// instrumentations of Node's HTTP and the AWS SDK, and from the distribution of AWS, in a container and as its Lambda layer sets it up.
import { mkdirSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import {
  DeleteMessageCommand,
  GetQueueUrlCommand,
  ReceiveMessageCommand,
  SQSClient,
} from "@aws-sdk/client-sqs";
import { afterAll, beforeAll, describe, expect, inject, onTestFinished, test } from "vitest";
import { buildServer } from "../../src/index.ts";
import { lambdaEvent, startTestApp, type TestApp } from "../../src/tools/testing/index.ts";
import { type CollectedSpan, serve, startCollector } from "./support/collector.ts";
import { createProject, type Project, projectIn } from "./support/project.ts";

const { devDependencies } = JSON.parse(
  readFileSync(join(import.meta.dirname, "../../package.json"), "utf8"),
);
const sources = join(import.meta.dirname, "projects/traced");
const files = Object.fromEntries(
  readdirSync(sources).map((name) => [name, readFileSync(join(sources, name), "utf8")]),
);
/** The newest that there are. */
const newest = {
  "@opentelemetry/api": "1.10.0",
  "@opentelemetry/instrumentation-aws-sdk": "0.79.0",
  "@opentelemetry/instrumentation-http": "0.301.0",
  "@opentelemetry/instrumentation-undici": "0.34.0",
  "@opentelemetry/sdk-node": "0.301.0",
  "import-in-the-middle": "3.6.0",
};
/** It has API 1.9, which is older than the application's: that one does nothing beside it. */
const distribution = { "@aws/aws-distro-opentelemetry-node-autoinstrumentation": "0.13.0" };

/** The first that there were. */
const oldest = {
  "@opentelemetry/api": "1.0.4",
  "@opentelemetry/sdk-trace-base": "1.0.1",
  "@opentelemetry/sdk-trace-node": "1.0.1",
};

let project: Project;
/** The same with the oldest. */
let former: Project;
/** What the layer is, apart from the function as in `/opt`. */
let layer: string;
/** The stack of all processes. */
let stack: TestApp;
beforeAll(async () => {
  const folder = join(inject("consumer").projects, "layer");
  mkdirSync(folder);
  const installed = projectIn(folder);
  installed.write(
    "package.json",
    JSON.stringify({ name: "layer", version: "1.0.0", private: true, dependencies: distribution }),
  );
  const { zod } = devDependencies;
  const [made, madeFormer, { code, stderr }] = await Promise.all([
    createProject({ name: "traced", dependencies: { zod, ...newest }, files }),
    createProject({ name: "former", dependencies: { zod, ...oldest }, files }),
    installed.run("npm", ["install", "--no-audit", "--no-fund"]),
  ]);
  expect({ code, stderr: code === 0 ? "" : stderr }).toEqual({ code: 0, stderr: "" });
  project = made;
  former = madeFormer;
  // As the layer's own wrapper.
  const register = Object.keys(distribution)[0];
  installed.write("wrapper.cjs", `require("${register}/register");\n`);
  installed.write(
    "wrapper.mjs",
    readFileSync(join(sources, "instrumented.mjs"), "utf8").replace(
      "instrumented.cjs",
      "wrapper.cjs",
    ),
  );
  layer = folder;
  stack = await startTestApp(buildServer({ features: [] }));
  // It makes tables and queues, which functions expect to be there.
  const maker = project.start("node", ["container.mjs"], {
    env: { ...stack.env, NODE_ENV: "development", LOG_FORMAT: "json" },
  });
  await maker.printed(/"msg":"server.started"/);
  await maker.stop();
});
afterAll(() => stack?.close());

const [traceId, parentId] = ["4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"];
const headers = {
  traceparent: `00-${traceId}-${parentId}-01`,
  tracestate: "theirs=1",
  baggage: "secret=1",
};

/** Receives webhooks; gives their headers. */
async function startTarget() {
  const hooks: NodeJS.Dict<string | string[]>[] = [];
  const host = await serve((_path, _text, received) => void hooks.push(received));
  return { hooks, url: `http://${host}/hook?token=secret` };
}

const kinds = ["", "internal", "server", "client", "producer", "consumer"];

/** The spans of the trace, in a form that can be compared: without those of what polls and instruments the store. */
function treeOf(spans: readonly CollectedSpan[]) {
  const byId = new Map(spans.map((span) => [span.spanId, span]));
  const pathOf = (span: CollectedSpan): string => {
    const parent = byId.get(span.parentSpanId ?? "");
    return `${parent === undefined ? "" : `${pathOf(parent)} > `}${span.name} (${kinds[span.kind]})`;
  };
  return spans.map(pathOf).sort();
}

const own = (spans: readonly CollectedSpan[]) => spans.filter(({ scope }) => scope === "keelson");

/** What holds of every trace, whoever else makes spans. */
async function expectOneTrace(
  collected: readonly CollectedSpan[],
  hooks: readonly NodeJS.Dict<string | string[]>[],
) {
  const ofTrace = () => collected.filter((span) => span.traceId === traceId);
  await expect.poll(() => hooks.length).toBe(1);
  await expect.poll(() => ofTrace().map(({ name }) => name)).toContain("process webhook");
  const spans = ofTrace();
  const ids = new Set([parentId, ...spans.map(({ spanId }) => spanId)]);
  expect(
    spans.filter(({ parentSpanId }) => !ids.has(parentSpanId ?? "")).map(({ name }) => name),
  ).toEqual([]); // no parent is lost
  // Once each, however many see it.
  const recorded = spans.flatMap(({ name, events = [] }) =>
    events.map((event) => [name, event.name]),
  );
  expect(recorded).toEqual([["process traced-file.created", "exception"]]);
  const post = own(spans).find(({ name, kind }) => name === "POST" && kind === 3);
  expect(hooks[0]).toMatchObject({ traceparent: `00-${traceId}-${post?.spanId}-01` });
  for (const name of ["tracestate", "baggage", "x-amzn-trace-id"])
    expect(hooks[0]).not.toHaveProperty(name);
  expect(JSON.stringify(own(spans))).not.toContain("secret");
  return spans;
}

/** What keelson makes below a request. */
const work = (request: string) => {
  const publish = `${request} > publish traced-file.created (producer)`;
  const consume = `${publish} > process traced-file.created (consumer)`;
  const enqueue = `${consume} > enqueue traced.file.scan (producer)`;
  const job = `${enqueue} > process traced.file.scan (consumer)`;
  const deliver = `${job} > deliver webhook (producer)`;
  const sent = `${deliver} > process webhook (consumer)`;
  return [
    ...[
      publish,
      consume,
      `${consume} > claim (internal)`,
      consume,
      `${consume} > claim (internal)`,
    ],
    ...[enqueue, `${consume} > commit (internal)`],
    ...[job, `${job} > claim (internal)`, `${job} > commit (internal)`, deliver],
    ...[sent, `${sent} > claim (internal)`, `${sent} > POST (client)`],
  ];
};

describe.each([
  {
    by: "the SDK alone",
    options: ["--import", "./sdk.mjs", "container.mjs"],
    isInstrumented: false,
    hasApp: true,
  },
  {
    by: "the oldest SDK and API",
    options: ["--import", "./oldest.mjs", "container.mjs"],
    isInstrumented: false,
    hasApp: true,
  },
  {
    by: "instrumentations, in ESM",
    options: ["--import", "./instrumented.mjs", "container.mjs"],
    isInstrumented: true,
    hasApp: true,
  },
  {
    by: "instrumentations, in CommonJS",
    options: ["--require", "./instrumented.cjs", "container.cjs"],
    isInstrumented: true,
    hasApp: true,
  },
  {
    by: "the distribution of AWS, in ESM",
    options: ["--import", "LAYER/wrapper.mjs", "container.mjs"],
    isInstrumented: true,
    hasApp: false,
  },
])("a container with $by", ({ options, isInstrumented, hasApp }) => {
  test("has one trace from the request to the webhook, without duplicate spans", async () => {
    const [collector, target] = [await startCollector(), await startTarget()];
    const started = (options.includes("./oldest.mjs") ? former : project).start(
      "node",
      options.map((option) => option.replace("LAYER", layer)),
      {
        env: {
          ...stack.env,
          ...collector.env,
          NODE_ENV: "development",
          LOG_FORMAT: "json",
          OTEL_SERVICE_NAME: "traced",
        },
      },
    );
    onTestFinished(() => void started.stop("SIGKILL"));
    const [, port] = await started.printed(/"msg":"server.started".*?"port":(\d+)/);
    const answer = await fetch(`http://127.0.0.1:${port}/files`, {
      method: "POST",
      headers: { "content-type": "application/json", ...headers },
      body: JSON.stringify({ id: options.join(" "), url: target.url }),
    });
    expect(await answer.json()).toEqual({ traceId });

    const spans = await expectOneTrace(collector.spans, target.hooks);
    await started.stop();
    expect(spans.filter(({ kind }) => kind === 2).map(({ name }) => name)).toEqual(["POST /files"]);
    const request = "POST /files (server)";
    // The consumer and the job each commit what they send.
    const jobs = work(request)
      .filter((path) => path.endsWith(" > commit (internal)"))
      .map((path) => path.replace("commit (internal)", "send keelson-jobs (client)"));
    const sent = isInstrumented ? [] : [`${request} > send keelson (client)`, ...jobs];
    expect(treeOf(spans.filter(({ scope, kind }) => scope === "keelson" || kind === 2))).toEqual(
      [request, `${request} > commit (internal)`, ...work(request), ...sent].sort(),
    );
    expectClientsBelow(spans, isInstrumented);
    // The application's API has to be one that the SDK's has not outlived.
    expect(spans.filter(({ scope }) => scope === "app")).toHaveLength(hasApp ? 1 : 0);
  });
});

/** The spans of instrumented clients are children of keelson's: who takes a claim is below it. */
function expectClientsBelow(spans: readonly CollectedSpan[], isInstrumented: boolean) {
  const nameOf = new Map(spans.map(({ spanId, name }) => [spanId, name]));
  const clients = spans.filter(({ scope }) => scope.endsWith("instrumentation-aws-sdk"));
  const seen = new Set(
    clients.map(({ name, parentSpanId = "" }) => `${nameOf.get(parentSpanId)} > ${name}`),
  );
  expect(seen.size > 0).toBe(isInstrumented);
  if (!isInstrumented) return;
  for (const edge of ["commit > DynamoDB.TransactWriteItems", "claim > DynamoDB.PutItem"])
    expect(seen).toContain(edge);
  expect([...seen].filter((edge) => edge.startsWith("undefined"))).toEqual([]);
  // No instrumentation has seen the webhook: keelson has.
  expect(
    spans.filter(({ kind, scope }) => kind === 3 && /instrumentation-(http|undici)$/.test(scope)),
  ).toEqual([]);
}

describe.each([
  {
    by: "an ESM handler",
    runtime: "nodejs24.x",
    options: ["--import", "LAYER/wrapper.mjs"],
    loads: "import",
    hasXRay: true,
  },
  {
    by: "a CommonJS handler",
    runtime: "nodejs22.x",
    options: ["--require", "LAYER/wrapper.cjs"],
    loads: "require",
    hasXRay: false,
  },
])("Lambda functions with the layer of AWS and $by", ({ runtime, options, loads, hasXRay }) => {
  test("have one trace from the request to the webhook, with links to the invocations for messages", async () => {
    const [collector, target] = [await startCollector(), await startTarget()];
    const start = async (name: "http" | "queue") => {
      const { host, invoke } = await startRuntimeApi(name);
      const env = {
        ...stack.env,
        ...collector.env,
        ...layerEnv,
        LOG_FORMAT: "json",
        AWS_EXECUTION_ENV: `AWS_Lambda_${runtime}`,
        AWS_LAMBDA_FUNCTION_NAME: name,
        AWS_LAMBDA_RUNTIME_API: host,
        LAMBDA_TASK_ROOT: project.directory,
        LOADS_BY: loads,
        OTEL_SERVICE_NAME: name,
        _HANDLER: `${loads === "require" ? "required-" : ""}${name}.handler`,
      };
      const options_ = options.map((option) => option.replace("LAYER", layer));
      const started = project.start("node", [...options_, "runtime.mjs"], { env });
      onTestFinished(() => void started.stop("SIGKILL"));
      const gone = started.exited.then(({ code }) =>
        Promise.reject(new Error(`${name} ended with ${code}: ${started.output()}`)),
      );
      gone.catch(() => {});
      const failures = () =>
        started
          .output()
          .split("\n")
          .filter((line) => line.includes('"level":"error"'));
      return {
        failures,
        invoke: (...given: Parameters<typeof invoke>) => Promise.race([invoke(...given), gone]),
      };
    };
    const [http, queue] = await Promise.all([start("http"), start("queue")]);
    const body = { id: loads, url: target.url };
    const event = lambdaEvent("httpApi", {
      method: "POST",
      path: "/files",
      body,
      headers: hasXRay ? {} : headers,
    });
    const root = `Root=1-${traceId.slice(0, 8)}-${traceId.slice(8)};Parent=${parentId};Sampled=1`;
    const answer = (await http.invoke(event, hasXRay ? root : undefined)) as {
      readonly body: string;
    };
    expect({ ...JSON.parse(answer.body), output: http.failures() }).toEqual({
      traceId,
      output: [],
    });
    await consumeUntil(() => target.hooks.length > 0, queue.invoke);

    const spans = await expectOneTrace(collector.spans, target.hooks);
    const invocation = "http (server)";
    const request = `${invocation} > POST /files (internal)`;
    expect(treeOf(spans.filter(({ scope, kind }) => scope === "keelson" || kind === 2))).toEqual(
      [invocation, request, `${request} > commit (internal)`, ...work(request)].sort(),
    );
    expectClientsBelow(spans, true);
    const invocations = new Set(
      collector.spans.flatMap(({ name, spanId }) => (name === "queue" ? [spanId] : [])),
    );
    for (const { links = [], parentSpanId } of spans.filter(
      ({ kind, scope }) => kind === 5 && scope === "keelson",
    )) {
      expect(links[0]?.spanId).toBe(parentSpanId);
      expect(invocations).toContain(links[1]?.spanId);
    }
  });
});

/** What `otel-instrument` of the layer sets. */
const layerEnv = {
  OTEL_AWS_APPLICATION_SIGNALS_ENABLED: "true",
  OTEL_EXPORTER_OTLP_PROTOCOL: "http/protobuf",
  OTEL_NODE_ENABLED_INSTRUMENTATIONS: "aws-sdk,aws-lambda,http",
  OTEL_PROPAGATORS: "baggage,tracecontext,xray",
  OTEL_RESOURCE_ATTRIBUTES: "cloud.provider=aws,cloud.platform=aws_lambda",
  AWS_XRAY_DAEMON_ADDRESS: "127.0.0.1:9", // nobody listens there
};

/** What a function asks for its invocations. */
async function startRuntimeApi(functionName: string) {
  const asked: ((invocation: object) => void)[] = [];
  let waiting: object[] = [];
  const answered: ((answer: unknown) => void)[] = [];
  const host = await serve((path, text) => {
    if (path === "/response") return void answered.shift()?.(JSON.parse(text));
    return new Promise((resolve) => {
      const [next, ...rest] = waiting;
      waiting = rest;
      if (next === undefined) asked.push(resolve);
      else resolve(next);
    });
  });
  const invoke = (event: unknown, traceHeader?: string) =>
    new Promise<unknown>((resolve) => {
      answered.push(resolve);
      const arn = `arn:aws:lambda:us-east-1:123456789012:function:${functionName}`;
      const context = { awsRequestId: crypto.randomUUID(), functionName, invokedFunctionArn: arn };
      const invocation = { event, context, traceHeader };
      const ask = asked.shift();
      if (ask === undefined) waiting = [...waiting, invocation];
      else ask(invocation);
    });
  return { host, invoke };
}

/** Hands the messages of both queues to a function, what it does not take again, until something is so. */
async function consumeUntil(isSo: () => boolean, invoke: (event: unknown) => Promise<unknown>) {
  const credentials = { accessKeyId: "test", secretAccessKey: "test" };
  const sqs = new SQSClient({
    endpoint: String(stack.env["AWS_ENDPOINT_URL"]),
    region: "us-east-1",
    credentials,
  });
  onTestFinished(() => sqs.destroy());
  const names = [
    stack.env["KEELSON_EVENT_QUEUE"] ?? "keelson-events",
    stack.env["KEELSON_JOB_QUEUE"] ?? "keelson-jobs.fifo",
  ];
  const end = Date.now() + 180_000;
  while (!isSo() && Date.now() < end) {
    for (const QueueName of names) {
      const { QueueUrl } = await sqs.send(new GetQueueUrlCommand({ QueueName }));
      const { Messages = [] } = await sqs.send(
        new ReceiveMessageCommand({ QueueUrl, WaitTimeSeconds: 1 }),
      );
      for (const { Body = "", ReceiptHandle } of Messages) {
        const event = lambdaEvent("sqs", { messages: [Body], queue: QueueName });
        const isDone = async () => {
          const answer = (await invoke(event)) as {
            readonly batchItemFailures: readonly unknown[];
          }; // what the function answers
          return answer.batchItemFailures.length === 0;
        };
        for (let isTaken = false; !isTaken; ) isTaken = await isDone();
        await sqs.send(new DeleteMessageCommand({ QueueUrl, ReceiptHandle }));
      }
    }
  }
}
