import {
  CreateEventBusCommand,
  DeleteEventBusCommand,
  DeleteRuleCommand,
  DescribeEventBusCommand,
  DescribeRuleCommand,
  ListEventBusesCommand,
  ListRulesCommand,
  ListTargetsByRuleCommand,
  PutRuleCommand,
  RemoveTargetsCommand,
  ResourceAlreadyExistsException,
  ResourceNotFoundException,
} from "@aws-sdk/client-eventbridge";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  type ContractBuses,
  contractBuses,
  type EventBridgeCapabilities,
  type EventBridgeConnection,
  refused,
} from "./bus-contract.ts";

export type { EventBridgeCapabilities, EventBridgeConnection } from "./bus-contract.ts";

/** What EventBridge does and no emulator shows, so that no test against one can cover it. */
export const notShownByEmulators: readonly string[] = Object.freeze([
  "delivery: an event may come twice or late, in any order, and is tried again for a day where its target fails",
  "permissions: the Policy of a queue is not asked whether the rule may send to it",
  "message groups: what a path does that matches nothing is not documented; the embedded stack does not deliver",
  "throttling: entries of PutEvents that come back with ThrottlingException or InternalFailure",
  "eventual consistency: a rule that was just put holds at once",
  "events to a bus that is not there: the real one takes and drops them",
]);

/** Describes what keelson relies on EventBridge for, as tests with the real AWS SDK. */
export function describeEventBridgeContract(
  name: string,
  connect: () => Promise<EventBridgeConnection>,
  capabilities: EventBridgeCapabilities,
): void {
  describe(`${name} as EventBridge`, () => {
    let connection: EventBridgeConnection;
    const buses = contractBuses(() => connection);

    beforeAll(async () => {
      connection = await connect();
    });
    afterAll(async () => {
      await buses.deleteAll();
      await connection.close();
    });

    describeBuses(buses);
    describeRules(buses, capabilities);
    describeEvents(buses, capabilities);
  });
}

function describeBuses(buses: ContractBuses): void {
  const { client, createBus } = buses;

  describe("buses", () => {
    test("a bus is created once, described, listed and deleted", async () => {
      const Name = await createBus();
      await expect(client().send(new CreateEventBusCommand({ Name }))).rejects.toBeInstanceOf(
        ResourceAlreadyExistsException,
      );
      const described = await client().send(new DescribeEventBusCommand({ Name }));
      expect(described).toMatchObject({
        Name,
        Arn: `arn:aws:events:us-east-1:000000000000:event-bus/${Name}`,
      });
      const listed = await client().send(new ListEventBusesCommand({ NamePrefix: Name }));
      expect(listed.EventBuses?.map((bus) => bus.Name)).toEqual([Name]);
      await client().send(new DeleteEventBusCommand({ Name }));
      await client().send(new DeleteEventBusCommand({ Name }));
      await expect(client().send(new DescribeEventBusCommand({ Name }))).rejects.toBeInstanceOf(
        ResourceNotFoundException,
      );
    });

    test("the default bus is there, and stays", async () => {
      expect((await client().send(new DescribeEventBusCommand({}))).Name).toBe("default");
      expect(await refused(client().send(new DeleteEventBusCommand({ Name: "default" })))).toBe(
        "ValidationException",
      );
    });
  });
}

function describeRules(buses: ContractBuses, capabilities: EventBridgeCapabilities): void {
  const { base, client, createBus, createQueue, putRule, putTarget } = buses;

  describe("rules", () => {
    test("a rule is put, changed, described, listed and deleted", async () => {
      const EventBusName = await createBus();
      const Name = await putRule(EventBusName, { source: ["a"] });
      const EventPattern = JSON.stringify({ source: ["b"] });
      const { RuleArn } = await client().send(
        new PutRuleCommand({ Name, EventBusName, EventPattern, State: "DISABLED" }),
      );
      expect(RuleArn).toBe(`arn:aws:events:us-east-1:000000000000:rule/${EventBusName}/${Name}`);
      const expected = { Name, Arn: RuleArn, EventBusName, EventPattern, State: "DISABLED" };
      expect(await client().send(new DescribeRuleCommand({ Name, EventBusName }))).toMatchObject(
        expected,
      );
      expect((await client().send(new ListRulesCommand({ EventBusName }))).Rules).toMatchObject([
        expected,
      ]);
      await client().send(new DeleteRuleCommand({ Name, EventBusName }));
      await client().send(new DeleteRuleCommand({ Name, EventBusName }));
      expect(await refused(client().send(new DescribeRuleCommand({ Name, EventBusName })))).toBe(
        "ResourceNotFoundException",
      );
    });

    test("targets are put, replaced, listed and removed, and a rule with targets stays", async () => {
      const EventBusName = await createBus();
      const Rule = await putRule(EventBusName, { source: ["a"] });
      const [one, two] = [await createQueue(), await createQueue()];
      await putTarget(EventBusName, Rule, { Arn: one.arn });
      expect(
        (await putTarget(EventBusName, Rule, { Arn: two.arn, InputPath: "$.detail" }))
          .FailedEntryCount,
      ).toBe(0);
      const { Targets } = await client().send(new ListTargetsByRuleCommand({ Rule, EventBusName }));
      expect(Targets).toEqual([{ Id: "queue", Arn: two.arn, InputPath: "$.detail" }]);
      expect(
        await refused(client().send(new DeleteRuleCommand({ Name: Rule, EventBusName }))),
      ).toBe("ValidationException");
      const removed = await client().send(
        new RemoveTargetsCommand({ Rule, EventBusName, Ids: ["queue"] }),
      );
      expect(removed.FailedEntryCount).toBe(0);
      expect(
        (await client().send(new ListTargetsByRuleCommand({ Rule, EventBusName }))).Targets,
      ).toEqual([]);
      await client().send(new DeleteRuleCommand({ Name: Rule, EventBusName }));
    });

    test("what is not there cannot be used", async () => {
      const bus = await createBus();
      const { arn } = await createQueue();
      expect(await refused(putRule(`${base}-none`, { source: ["a"] }))).toBe(
        "ResourceNotFoundException",
      );
      expect(await refused(putTarget(bus, "none", { Arn: arn }))).toBe("ResourceNotFoundException");
      expect(
        await refused(client().send(new PutRuleCommand({ Name: "r", EventBusName: bus }))),
      ).toBe("ValidationException");
    });

    test("a FIFO queue as a target needs a group", async () => {
      const bus = await createBus();
      const { arn } = await createQueue({ FifoQueue: "true", ContentBasedDeduplication: "true" });
      const answer = await putTarget(bus, await putRule(bus, { source: ["a"] }), { Arn: arn });
      expect(answer.FailedEntryCount).toBe(1);
      expect(answer.FailedEntries).toMatchObject([
        { TargetId: "queue", ErrorCode: "ValidationException" },
      ]);
    });

    if (capabilities.checksInput) {
      test.each(["{", '{"source":"a"}', '{"source":[]}', "{}", "[]"])(
        "the pattern %s is refused",
        async (EventPattern) => {
          const EventBusName = await createBus();
          const asked = client().send(
            new PutRuleCommand({ Name: "r", EventBusName, EventPattern }),
          );
          expect(await refused(asked)).toBe("InvalidEventPatternException");
        },
      );
    }
  });
}

function describeEvents(buses: ContractBuses, capabilities: EventBridgeCapabilities): void {
  const {
    client,
    createBus,
    createQueue,
    putRule,
    putTarget,
    route,
    put,
    entry,
    eventIn,
    receiveOne,
  } = buses;

  describe("events", () => {
    test("an event that fits comes into the queue as a whole", async () => {
      const { bus, url } = await route({ source: ["shop"], "detail-type": ["OrderPlaced"] });
      const Time = new Date("2026-02-03T04:05:06Z");
      const answer = await put(entry(bus, { id: 7, text: "ä" }, { Resources: ["r1"], Time }));
      expect(answer.FailedEntryCount).toBe(0);
      expect(await eventIn(url)).toEqual({
        version: "0",
        id: answer.Entries?.[0]?.EventId,
        "detail-type": "OrderPlaced",
        source: "shop",
        account: "000000000000",
        time: "2026-02-03T04:05:06Z",
        region: "us-east-1",
        resources: ["r1"],
        detail: { id: 7, text: "ä" },
      });
    });

    test.each<[string, object, unknown, unknown]>([
      ["another source", { source: ["other", "shop"] }, {}, undefined],
      [
        "exact values of several fields",
        { detail: { a: [1, "x"], b: { c: [true] } } },
        { a: 1, b: { c: true } },
        { a: 1, b: { c: false } },
      ],
      ["null", { detail: { a: [null] } }, { a: null }, { a: 0 }],
      [
        "an item of a list",
        { detail: { tags: ["red"] } },
        { tags: ["blue", "red"] },
        { tags: ["blue"] },
      ],
      ["prefix", { detail: { path: [{ prefix: "/a/" }] } }, { path: "/a/b" }, { path: "/b/a/" }],
      [
        "anything-but",
        { detail: { state: [{ "anything-but": ["off", "idle"] }] } },
        { state: "on" },
        { state: "idle" },
      ],
      [
        "anything-but a prefix",
        { detail: { state: [{ "anything-but": { prefix: "x-" } }] } },
        { state: "on" },
        { state: "x-on" },
      ],
      ["exists", { detail: { error: [{ exists: true }] } }, { error: 0 }, { other: 0 }],
      ["does not exist", { detail: { error: [{ exists: false }] } }, { other: 0 }, { error: 0 }],
    ])(
      "a pattern of %s takes what fits and nothing else",
      async (_name, pattern, fits, doesNot) => {
        const { bus, url } = await route(pattern);
        const others =
          doesNot === undefined ? [entry(bus, {}, { Source: "third" })] : [entry(bus, doesNot)];
        expect((await put(...others, entry(bus, fits))).FailedEntryCount).toBe(0);
        expect((await eventIn(url)).detail).toEqual(fits);
      },
    );

    test("several rules and buses each get what is theirs", async () => {
      const [bus, other] = [await createBus(), await createBus()];
      const [one, two] = [await createQueue(), await createQueue()];
      await putTarget(bus, await putRule(bus, { detail: { n: [1] } }), { Arn: one.arn });
      await putTarget(bus, await putRule(bus, { detail: { n: [2] } }), { Arn: two.arn });
      await put(entry(other, { n: 1, bus: "other" }), entry(bus, { n: 2 }), entry(bus, { n: 1 }));
      expect((await eventIn(one.url)).detail).toEqual({ n: 1 });
      expect((await eventIn(two.url)).detail).toEqual({ n: 2 });
    });

    test("a bus can be named by its ARN", async () => {
      const { bus, url } = await route({ source: ["shop"] });
      const { Arn = "" } = await client().send(new DescribeEventBusCommand({ Name: bus }));
      await put(entry(Arn, { named: true }));
      expect((await eventIn(url)).detail).toEqual({ named: true });
    });

    test("a part of the event is sent where the target says so", async () => {
      const { bus, url } = await route({ source: ["shop"] }, { InputPath: "$.detail" });
      await put(entry(bus, { id: 7 }));
      expect(await eventIn(url)).toEqual({ id: 7 });
    });

    if (capabilities.disablesRules) {
      test("a rule that is disabled takes nothing until it is enabled", async () => {
        const bus = await createBus();
        const queue = await createQueue();
        const pattern = { source: ["shop"] };
        const rule = await putRule(bus, pattern, { State: "DISABLED" });
        await putTarget(bus, rule, { Arn: queue.arn });
        await put(entry(bus, { n: 1 }));
        await putRule(bus, pattern, { Name: rule });
        await put(entry(bus, { n: 2 }));
        expect((await eventIn(queue.url)).detail).toEqual({ n: 2 });
      });
    }

    test("in a FIFO queue events have the group of the target, and their order", async () => {
      const bus = await createBus();
      const queue = await createQueue({ FifoQueue: "true", ContentBasedDeduplication: "true" });
      const rule = await putRule(bus, { source: ["shop"] });
      await putTarget(bus, rule, { Arn: queue.arn, SqsParameters: { MessageGroupId: "orders" } });
      for (const n of [1, 2, 3]) await put(entry(bus, { n }));
      const messages = [
        await receiveOne(queue.url),
        await receiveOne(queue.url),
        await receiveOne(queue.url),
      ];
      expect(messages.map(({ Body = "" }) => JSON.parse(Body).detail.n)).toEqual([1, 2, 3]);
      expect(messages[0]?.Attributes).toMatchObject({ MessageGroupId: "orders" });
    });

    if (capabilities.resolvesGroups) {
      test("in a standard queue an event has the group that a path of its target names", async () => {
        const group = { SqsParameters: { MessageGroupId: "$.detail.group" } };
        const { bus, url } = await route({ source: ["shop"] }, group);
        await put(entry(bus, { group: "acme" }));
        expect((await receiveOne(url)).Attributes).toMatchObject({ MessageGroupId: "acme" });
      });
    }

    test("wrong entries come back with their errors, in their places, and the others go through", async () => {
      const { bus, url } = await route({ source: ["shop"] });
      const { Source: _source, ...sourceless } = entry(bus, {});
      const { DetailType: _detailType, ...typeless } = entry(bus, {});
      const { Detail: _detail, ...detailless } = entry(bus, {});
      const answer = await put(
        sourceless,
        typeless,
        detailless,
        { ...detailless, Detail: "{" },
        entry(bus, { good: true }),
      );
      expect(answer.FailedEntryCount).toBe(4);
      const codes = answer.Entries?.map(({ ErrorCode }) => ErrorCode);
      expect(codes).toEqual([
        "InvalidArgument",
        "InvalidArgument",
        "InvalidArgument",
        "MalformedDetail",
        undefined,
      ]);
      expect(answer.Entries?.[4]?.EventId).toBeTruthy();
      expect((await eventIn(url)).detail).toEqual({ good: true });
    });

    if (capabilities.checksInput) {
      test("no entries, more than ten, and more than 1,048,576 bytes are refused", async () => {
        expect(await refused(put())).toBe("ValidationException");
        expect(await refused(put(...Array.from({ length: 11 }, () => entry("default", {}))))).toBe(
          "ValidationException",
        );
        expect(await refused(put(entry("default", { text: "x".repeat(1_048_576) })))).toBe(
          "ValidationException",
        );
      });
    }
  });
}
