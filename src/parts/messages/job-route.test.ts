import { expect, test } from "vitest";
import { deliveryJob } from "./delivery.ts";
import { type FairMode, isMarked, type JobQueues, sendJob } from "./job-route.ts";

function queuesIn(fairMode: FairMode) {
  const sent: unknown[][] = [];
  const queue = (name: string) => ({
    isFinal: () => false,
    send: async (...given: unknown[]) => {
      sent.push([name, ...given]);
      return "m1";
    },
  });
  const queues: JobQueues = { jobs: queue("FIFO"), fairJobs: queue("fair"), fairMode };
  return { queues, sent };
}

const plain = { name: "a.b.c", tenantId: "acme", group: "h1", deduplicationId: "h1", text: "{}" };
const ordered = { ...plain, group: "h2" };
const fifo = ["FIFO", "{}", { group: "h1", deduplicationId: "h1" }];

test.each<[FairMode, typeof plain, unknown[]]>([
  ["off", plain, fifo],
  ["receive", plain, fifo],
  ["send", plain, ["fair", "{}", { group: "acme" }]],
  ["send", ordered, ["FIFO", "{}", { group: "h2", deduplicationId: "h1" }]],
])("with %s, the job %j goes to one queue", async (mode, job, expected) => {
  const { queues, sent } = queuesIn(mode);
  expect(await sendJob(queues, job)).toBe("m1");
  expect(sent).toEqual([expected]);
});

test("a job of a tenant that SQS would refuse as a group has the tenant's hash", async () => {
  const { queues, sent } = queuesIn("send");
  await sendJob(queues, { ...plain, tenantId: "a b" });
  expect(sent).toEqual([["fair", "{}", { group: expect.stringMatching(/^sha256:/) }]]);
});

test.each<[boolean, FairMode, typeof plain]>([
  [false, "off", plain],
  [true, "receive", plain],
  [true, "send", plain],
  [false, "send", ordered],
  [false, "send", { ...plain, name: deliveryJob }],
])("whether equal jobs merge by a mark is %s with %s for %j", (expected, mode, job) => {
  expect(isMarked(mode, job)).toBe(expected);
});
