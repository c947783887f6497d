// The steps of a deployment to fair queues: what the code of each calls, asked of the roles that `keelson infra --fair` makes.
import { ReceiveMessageCommand, SQSClient } from "@aws-sdk/client-sqs";
import { access, buildServer, defineFeature } from "keelson";
import { lambdaHttp, lambdaQueue, lambdaSweep } from "keelson/lambda";
import { startTestApp } from "keelson/testing";
import { afterEach, beforeAll, expect, test, vi } from "vitest";
import { z } from "zod";
import { serverInternals } from "../../src/app/server/server.ts";
import { MustWaitError } from "../../src/parts/limits/must-wait.ts";
import { type FairStep, fairSteps } from "../../src/tools/infra/needs.ts";
import { serverTemplate } from "../../src/tools/infra/server-template.ts";
import { type RecordedCall, requestsOf } from "../iam/recorded-requests.ts";
import { type Resources, roleOf } from "../iam/resolved.ts";
import { account, loadSimulator, type Simulator } from "../iam/simulator.ts";
import { triggers } from "./http-events.ts";
import { recordCalls } from "./recorded-calls.ts";

const prefix = "keelson";
const [fifo, fair, events] = ["keelson-jobs.fifo", "keelson-jobs", "keelson-events"] as const;
const queues = [fifo, fair, events];
const queueVariables = {
  KEELSON_JOB_QUEUE: fifo,
  KEELSON_FAIR_JOB_QUEUE: fair,
  KEELSON_EVENT_QUEUE: events,
};

/** Each job and event has to wait once. */
const waited = new Set<string>();
const ran = new Set<string>();
const wait = (id: string) => {
  if (waited.has(id)) return void ran.add(id);
  waited.add(id);
  throw new MustWaitError("total");
};
const errands = defineFeature("errands", (r) => {
  const input = z.object({});
  const concurrency = { total: 5 };
  const asked = r.event("errand.asked", input);
  r.on(asked, { name: "note", concurrency, handler: () => wait("event") });
  const run = r.job("errand.run", { input, concurrency, handler: () => wait("job") });
  const file = r.job("errand.file", {
    ...{ input, concurrency, order: () => "drawer", handler: () => wait("ordered job") },
  });
  r.write("errand.ask", {
    route: "POST /errands",
    access: access.everyone,
    handler: async (ctx) => {
      await ctx.publish(asked, {});
      await ctx.enqueue(run, {});
      await ctx.enqueue(file, {});
      return {};
    },
  });
});
const server = () => buildServer({ features: [errands], environment: "test" });

let simulate: Simulator;
beforeAll(async () => {
  simulate = await loadSimulator();
});
afterEach(() => vi.unstubAllEnvs());

const internals = serverInternals(server());
const templates = new Map(
  fairSteps.map((step) => {
    const { Resources } = serverTemplate(internals, { stage: "dev", fair: step });
    return [step, Resources as Resources] as const; // safe: a template has these
  }),
);

/** Whether a role of a step allows all that a call needs. */
async function allows(step: FairStep, role: string, call: RecordedCall): Promise<boolean> {
  const { allows: identity } = roleOf(role, templates.get(step) ?? {}, prefix);
  const by = { arn: `arn:aws:sts::${account}:assumed-role/function/run` };
  const requests = requestsOf(call, () => ({ partitionKey: "pk" }));
  const answers = requests.map((request) => simulate(request, by, { identity }));
  return (await Promise.all(answers)).every((isAllowed) => isAllowed);
}

/** Calls of the functions of a step while a write's event and jobs are sent, wait and run, by role. */
async function callsOf(step: FairStep): Promise<ReadonlyMap<string, readonly RecordedCall[]>> {
  waited.clear();
  ran.clear();
  const app = await startTestApp(server());
  await app.settled(); // makes the tables and queues
  const mode = step === "events" ? "send" : step;
  for (const [name, value] of Object.entries({
    ...{ ...app.env, KEELSON_FAIR_JOBS: mode, LOG_LEVEL: "CRITICAL" },
  }))
    vi.stubEnv(name, value);
  const credentials = { accessKeyId: "test", secretAccessKey: "test" };
  const endpoint = app.env["AWS_ENDPOINT_URL"] ?? "";
  const sqs = new SQSClient({ endpoint, region: "us-east-1", credentials });
  const found = new Map<string, RecordedCall[]>();
  const recorded = async <Result>(role: string, work: () => Promise<Result>): Promise<Result> => {
    const proxy = await recordCalls(endpoint);
    vi.stubEnv("AWS_ENDPOINT_URL", proxy.endpoint);
    // A template gives functions the URLs of queues, which go through the proxy too.
    for (const [name, queue] of Object.entries(queueVariables))
      vi.stubEnv(name, `${proxy.endpoint}/000000000000/${queue}`);
    const result = await work();
    vi.stubEnv("AWS_ENDPOINT_URL", endpoint);
    found.set(role, [...(found.get(role) ?? []), ...proxy.calls]);
    await proxy.close();
    return result;
  };
  const invoke = async (queue: string) => {
    const { Messages = [] } = await sqs.send(
      new ReceiveMessageCommand({
        QueueUrl: `${endpoint}/000000000000/${queue}`,
        ...{ MaxNumberOfMessages: 10, WaitTimeSeconds: 1, MessageSystemAttributeNames: ["All"] },
      }),
    );
    const Records = Messages.map(({ MessageId = "", ReceiptHandle = "", Body = "", ...more }) => ({
      ...{ messageId: MessageId, receiptHandle: ReceiptHandle, body: Body },
      ...{ eventSourceARN: `arn:aws:sqs:us-east-1:000000000000:${queue}` },
      attributes: more.Attributes ?? {},
    }));
    // Safe cast: the members that a function reads.
    const event = { Records } as unknown as Parameters<ReturnType<typeof lambdaQueue>>[0];
    if (Messages.length > 0) await recorded("QueueRole", () => lambdaQueue(server())(event, {}));
  };
  const eventOf = Object.values(triggers)[0];
  const asked = eventOf?.({ method: "POST", path: "/errands", body: {} });
  await recorded("HttpRole", () => lambdaHttp(server())(asked as never, {} as never)); // safe casts: as the trigger gives them
  for (let round = 0; round < 20 && ran.size < 3; round += 1) {
    for (const queue of queues) await invoke(queue);
    await recorded("SweepRole", () => lambdaSweep(server())());
  }
  expect([...ran].toSorted()).toEqual(["event", "job", "ordered job"]);
  sqs.destroy();
  await app.close();
  return found;
}

/** Queues to which functions send, by role. */
const sentTo = (calls: readonly RecordedCall[] = []) => {
  const sends = calls.filter(({ target }) => target === "AmazonSQS.SendMessage");
  const names = sends.map(({ input }) => String(input["QueueUrl"]).split("/").at(-1));
  return [...new Set(names)].toSorted();
};

const expected: Readonly<Record<FairStep, { http: string[]; queue: string[] }>> = {
  off: { http: [fifo], queue: [events] },
  receive: { http: [fifo], queue: [events] },
  send: { http: [fair, fifo], queue: [events, fair] },
  events: { http: [fair, fifo], queue: [events, fair] },
};

test.each(fairSteps)(
  "with %s, the roles allow what functions call, and nothing on a queue that the step does not know",
  async (step) => {
    const found = await callsOf(step);
    expect(sentTo(found.get("HttpRole"))).toEqual(expected[step].http);
    expect(sentTo(found.get("QueueRole"))).toEqual(expected[step].queue);
    for (const [role, calls] of found)
      for (const call of new Map(calls.map((one) => [JSON.stringify(one), one])).values())
        expect([role, call, await allows(step, role, call)]).toEqual([role, call, true]);
    // Lambda itself receives messages, with the role of the function.
    const of = (action: string, queue: string) => ({
      target: `AmazonSQS.${action}`,
      input: { QueueUrl: `x/${queue}` },
    });
    const consumer = [
      ...["ReceiveMessage", "DeleteMessage", "GetQueueAttributes", "ChangeMessageVisibility"],
    ];
    for (const action of consumer) {
      for (const queue of queues) {
        const isRead = queue !== fair || step !== "off";
        expect([action, queue, await allows(step, "QueueRole", of(action, queue))]).toEqual([
          ...[action, queue, isRead],
        ]);
        for (const role of ["HttpRole", "SweepRole", "StreamRole"])
          expect([role, action, await allows(step, role, of(action, queue))]).toEqual([
            ...[role, action, false],
          ]);
      }
    }
    for (const role of ["HttpRole", "SweepRole", "QueueRole"])
      if (step === "off")
        expect([role, await allows(step, role, of("SendMessage", fair))]).toEqual([role, false]);
    expect(await allows(step, "StreamRole", of("SendMessage", fair))).toBe(false);
  },
);
