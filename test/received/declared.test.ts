import { type BootError, buildServer, defineFeature } from "keelson";
import { expect, test } from "vitest";
import { z } from "zod";
import { asyncApiDocument } from "../../src/app/openapi/asyncapi.ts";
import { usesMessages, usesQueues } from "../../src/app/registry/registry.ts";
import { serverInternals } from "../../src/app/server/server.ts";
import { receivedRules } from "../../src/aws/messaging/rules.ts";
import { contractOf, contractText, readContract } from "../../src/tools/contract/contract.ts";
import { contractChanges } from "../../src/tools/contract/contract-changes.ts";
import { uploads } from "./fixture.ts";

const sound = {
  source: "aws.s3",
  detailType: "Object Created",
  input: z.object({ key: z.string() }),
  handler: async () => undefined,
};

type Declared = readonly [name: string, options: unknown];

function problemsOf(declared: readonly Declared[], options: object = {}): string[] {
  const wrong = defineFeature("wrong", (r) => {
    for (const [name, given] of declared) r.receive(name, given as never);
  });
  try {
    buildServer({ features: [wrong], ...options });
  } catch (error) {
    const { problems } = error as BootError; // safe: buildServer throws nothing else
    return problems.map(({ rule, key, message }) => `${rule} ${key}: ${message}`);
  }
  return [];
}

test.each<[string, Record<string, unknown>, readonly string[]]>([
  ["everything that is required", {}, []],
  ["all options", { bus: "partners", id: () => "", tenant: () => undefined }, []],
  ["the bus of a partner", { bus: "aws.partner/example.com/123/a" }, []],
  ["no source", { source: undefined }, ["receiver-source wrong.a.b: `source` is undefined"]],
  ["a source with a space", { source: "aws s3" }, ['`source` is "aws s3"']],
  ["no type", { detailType: "" }, ['receiver-type wrong.a.b: `detailType` is ""']],
  ["a list of types", { detailType: ["a"] }, ["`detailType` is"]],
  [
    "the ARN of a bus",
    { bus: "arn:aws:events:eu-west-1:111122223333:event-bus/b" },
    ["receiver-bus wrong.a.b: `bus` is"],
  ],
  ["no input", { input: undefined }, ["schema wrong.a.b: `input` is not a Standard Schema"]],
  ["an ID that is no function", { id: "id" }, ["handler wrong.a.b: `id` is not a function"]],
  ["a tenant that is no function", { tenant: "acme" }, ["`tenant` is not a function"]],
  ["no handler", { handler: undefined }, ["handler wrong.a.b: `handler` is not a function"]],
  ["an unknown option", { queue: "q" }, ['unknown-option wrong.a.b: unknown option "queue"']],
  [
    "the source of the server",
    { source: "keelson" },
    ['receiver-source wrong.a.b: `source` "keelson" is this server\'s own'],
  ],
])("a receiver with %s", (_what, options, problems) => {
  const found = problemsOf([["a.b", { ...sound, ...options }]]);
  expect(found).toHaveLength(problems.length);
  for (const [index, problem] of problems.entries()) expect(found[index]).toContain(problem);
});

test("the source of the server is its prefix, and another server may have any other", () => {
  const dynamodb = { prefix: "shop" };
  expect(problemsOf([["a.b", { ...sound, source: "keelson" }]], { dynamodb })).toEqual([]);
  expect(problemsOf([["a.b", { ...sound, source: "shop" }]], { dynamodb })).toHaveLength(1);
});

test("no options, a name of one word and a name that is taken do not boot", () => {
  expect(problemsOf([["stored", undefined]]).map((text) => text.split(" ")[0])).toEqual(
    expect.arrayContaining([
      "receiver-name",
      "receiver-source",
      "receiver-type",
      "schema",
      "handler",
    ]),
  );
  expect(
    problemsOf([
      ["a.b", sound],
      ["a.b", sound],
    ]),
  ).toEqual(["duplicate-receiver wrong.a.b: this receiver is declared twice"]);
  const job = defineFeature("jobs", (r) => {
    r.job("a.b", { input: z.object({}), handler: async () => undefined });
    r.receive("a.b", sound);
  });
  expect(() => buildServer({ features: [job] })).toThrow("duplicate-name");
});

test("an event is received from one bus", () => {
  const other = { ...sound, bus: "other" };
  expect(
    problemsOf([
      ["a.b", sound],
      ["a.c", sound],
    ]),
  ).toEqual([]);
  expect(
    problemsOf([
      ["a.b", sound],
      ["a.c", other],
      ["a.d", { ...other, source: "x" }],
    ]),
  ).toEqual(['receiver-bus wrong.a.c: this event is also received from the bus "default"']);
});

const server = serverInternals(buildServer({ features: [uploads] }));

test("a server that only receives has a queue, and neither outbox nor bus", () => {
  const feature = defineFeature("bare", (r) => r.receive("a.b", sound));
  const { registry } = buildServer({ features: [feature] });
  expect([usesMessages(registry), usesQueues(registry)]).toEqual([false, true]);
});

test("each kind of event has one rule, whose name fits into 64 characters", () => {
  const rules = receivedRules(server.registry.receivers.values(), "q".repeat(80));
  expect(rules.map(({ bus, pattern }) => [bus, pattern])).toEqual([
    ["default", { source: ["aws.s3"], "detail-type": ["Object Created"] }],
    ["default", { source: ["imports"], "detail-type": ["Import Asked"] }],
    ["partners", { source: ["billing"], "detail-type": ["Payment Settled"] }],
  ]);
  for (const { name } of rules) expect(name).toMatch(/^q{55}-[0-9a-f]{8}$/);
});

test("the contract locks receivers, and less that is taken breaks it", async () => {
  const { contract } = await contractOf(server, import.meta.dirname);
  expect(contract.receivers).toMatchObject([
    { name: "uploads.import.asked", event: "imports Import Asked" },
    { name: "uploads.payment.settled", event: "billing Payment Settled", bus: "partners" },
    { name: "uploads.upload.audited", event: "aws.s3 Object Created", bus: "default" },
    { name: "uploads.upload.stored", input: { required: ["bucket", "key"] } },
  ]);
  expect(readContract(contractText(contract))).toEqual(contract);
  const { receivers: all = [], ...others } = contract;
  const [asked, settled, audited, stored] = all as readonly [object, object, object, object];
  const changesWith = (...receivers: readonly object[]) =>
    contractChanges(contract, { ...contract, receivers: [asked, ...receivers] as typeof all }).map(
      ({ rule, breaks, where }) => [rule, breaks, where],
    );
  const number = { type: "object", properties: { key: { type: "number" } }, required: ["key"] };
  expect(changesWith(settled, audited, { ...stored, input: number })[0]).toEqual([
    "job-type-changed",
    "consumer",
    "receiver uploads.upload.stored input.key",
  ]);
  expect(changesWith(settled, audited, { ...stored, event: "aws.s3 Object Deleted" })).toEqual([
    ["receiver-changed", undefined, "receiver uploads.upload.stored"],
  ]);
  expect(changesWith(settled, audited)).toEqual([
    ["receiver-removed", undefined, "receiver uploads.upload.stored"],
  ]);
  expect(contractChanges(others, contract).map(({ rule }) => rule)).toEqual(
    Array(4).fill("receiver-added"),
  );
  expect(contractChanges(contract, others)).toHaveLength(4);
  expect(readContract(JSON.stringify(others))).toEqual(others);
  expect(() => readContract(JSON.stringify({ ...contract, receivers: [{ name: "a" }] }))).toThrow(
    "its receivers are not a list that keelson has written",
  );
});

test("AsyncAPI describes the events as EventBridge sends them", async () => {
  const { document } = await asyncApiDocument(server, import.meta.dirname);
  expect(document).toMatchObject({
    channels: {
      received: {
        messages: {
          "uploads.upload.stored": { $ref: "#/components/messages/uploads.upload.stored" },
        },
      },
    },
    operations: {
      "receive.uploads.upload.stored": {
        action: "receive",
        channel: { $ref: "#/channels/received" },
      },
    },
    components: {
      messages: {
        "uploads.payment.settled": {
          payload: { properties: { detail: { $ref: "#/components/schemas/Settled" } } },
        },
        "uploads.upload.stored": {
          summary: "The event Object Created of aws.s3, from the bus default.",
          payload: {
            required: ["id", "source", "detail-type", "detail"],
            properties: {
              source: { const: "aws.s3" },
              "detail-type": { const: "Object Created" },
              detail: {
                title: "uploads.upload.stored.detail",
                required: ["bucket", "key"],
              },
            },
          },
        },
      },
    },
  });
});
