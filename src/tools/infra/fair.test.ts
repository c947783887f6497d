import { describe, expect, test } from "vitest";
import { z } from "zod";
import { defineFeature } from "../../app/features/feature.ts";
import { buildServer, serverInternals } from "../../app/server/server.ts";
import { differences } from "./difference.ts";
import { type FairStep, needsOf, queuesOf } from "./needs.ts";
import { namePrefix } from "./parameters.ts";
import { serverTemplate } from "./server-template.ts";
import type { Members } from "./template.ts";

const lamps = defineFeature("lamps", (r) => {
  const lit = r.event("lamp.lit", z.object({}));
  r.on(lit, { name: "see", handler: async () => undefined });
});
const plain = defineFeature("plain", () => undefined);
const server = serverInternals(buildServer({ features: [lamps] }));
const steps = ["off", "receive", "send", "events"] as const;

const template = (fair: FairStep, part: "all" | "data" | "functions" = "all") =>
  serverTemplate(server, { stage: "dev", part, fair });
const resources = (fair: FairStep) => template(fair).Resources;
const memberOf = (value: unknown, name: string) => (Object(value) as Members)[name];

describe("the steps of a deployment to fair queues", () => {
  test("add a queue with receive, which all later steps keep", () => {
    const added = [
      ...["FairJobQueue", "FairJobDeadQueue", "FairJobQueuePolicy", "FairJobDeadQueuePolicy"],
      ...["QueueEventSourceMappingSQSFairJobQueue", "DeadFairJobsAlarm"],
    ];
    const ids = steps.map((step) => Object.keys(resources(step)));
    expect(ids[1]?.filter((id) => ids[0]?.includes(id) !== true).sort()).toEqual(added.sort());
    expect(ids[2]).toEqual(ids[1]);
    expect(ids[3]).toEqual(ids[1]);
    for (const { isDangerous } of differences(template("off"), template("receive")))
      expect(isDangerous).toBe(false);
  });

  test("keep the queue and its dead letters if a template of an older version lacks them", () => {
    const { FairJobQueue: queue, FairJobDeadQueue: dead } = resources("send");
    const kept = { DeletionPolicy: "RetainExceptOnCreate", UpdateReplacePolicy: "Retain" };
    expect(queue).toMatchObject({
      ...{ Type: "AWS::SQS::Queue", ...kept },
      Properties: {
        QueueName: { "Fn::Sub": `${namePrefix}-jobs` },
        RedrivePolicy: { maxReceiveCount: 5 },
      },
    });
    expect(queue?.Properties).not.toHaveProperty("FifoQueue");
    expect(dead).toMatchObject(kept);
    const [first] = differences(template("send"), template("off"));
    expect(first).toEqual({
      isDangerous: true,
      text: "the queue keelson-dev-jobs is removed: FairJobQueue (AWS::SQS::Queue) leaves the stack and stays in the account, and no version reads the messages in it",
    });
  });

  test.each<[FairStep, string | undefined]>([
    ["off", undefined],
    ["receive", "receive"],
    ["send", "send"],
    ["events", "send"],
  ])("with %s, functions have the mode %s", (step, mode) => {
    for (const part of ["all", "functions"] as const) {
      const functions = Object.values(template(step, part).Resources).filter(
        ({ Type }) => Type === "AWS::Lambda::Function",
      );
      expect(functions.length).toBeGreaterThan(2);
      for (const { Properties } of functions) {
        const variables = memberOf(memberOf(Properties, "Environment"), "Variables");
        expect(memberOf(variables, "KEELSON_FAIR_JOBS")).toBe(mode);
        expect(Object.keys(Object(variables)).includes("KEELSON_FAIR_JOB_QUEUE")).toBe(
          mode !== undefined,
        );
      }
    }
  });

  test.each(steps)("with %s, the rule sets the group of events only in the last step", (step) => {
    const { Targets = [] }: Members = { ...resources(step)["EventRule"]?.Properties };
    const group = { MessageGroupId: "$.detail.group" };
    expect(memberOf(Object(Targets)[0], "SqsParameters")).toEqual(
      step === "events" ? group : undefined,
    );
  });

  test("let every sender and reader of jobs use the fair queue, and no other function", () => {
    const policies = JSON.stringify(resources("receive")["QueueRole"]);
    for (const action of ["Enqueue", "Consume", "DeadLetter"]) {
      const [statement = ""] =
        new RegExp(`"Sid":"${action}".*?\\]\\]?\\}?\\]`).exec(policies) ?? [];
      expect(statement).toContain(action === "DeadLetter" ? "FairJobDeadQueue" : "FairJobQueue");
    }
    expect(JSON.stringify(resources("receive")["StreamRole"])).not.toContain("FairJob");
  });

  test("do not change the template of a server without messages", () => {
    const needs = needsOf(serverInternals(buildServer({ features: [plain] })), { fair: "send" });
    expect([needs.fair, queuesOf(needs)]).toEqual([undefined, []]);
  });

  test("come from KEELSON_FAIR_JOBS where no step is given", () => {
    const namesIn = (env: Record<string, string>) =>
      queuesOf(needsOf(server, { env })).map(({ name }) => name);
    expect(namesIn({})).toEqual(["keelson-events", "keelson-jobs.fifo"]);
    expect(namesIn({ KEELSON_FAIR_JOBS: "receive", KEELSON_FAIR_JOB_QUEUE: "f" })).toEqual([
      ...["keelson-events", "keelson-jobs.fifo", "f"],
    ]);
  });
});
