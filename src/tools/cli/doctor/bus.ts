import {
  DescribeEventBusCommand,
  type EventBridgeClient,
  ListRulesCommand,
  ListTargetsByRuleCommand,
} from "@aws-sdk/client-eventbridge";
import type { NeededBus } from "../../infra/needs.ts";
import { failureName } from "./call-error.ts";
import { asked, type Check, fine, type Outcome, unchecked, wrong } from "./outcome.ts";
import type { Place } from "./place.ts";
import type { AskedQueue, FoundQueue } from "./queues.ts";

export function busChecks(
  client: EventBridgeClient,
  place: Place,
  bus: NeededBus,
  events: { readonly queue: AskedQueue | undefined; readonly place: Place },
): Check[] {
  const name = `bus ${bus.name}`;
  const find = asked(() => isThere(client, place, bus.name));
  const { queue: eventQueue, place: queuePlace } = events;
  const checks: Check[] = [
    {
      name,
      run: async () =>
        (await find())
          ? fine("it is there")
          : wrong("it does not exist", place.aws("create-event-bus", "--name", bus.name)),
    },
  ];
  if (eventQueue === undefined) return checks;
  return [
    ...checks,
    {
      name: `${name}: rules`,
      run: async () => {
        const [isFound, queue] = await Promise.all([
          find().catch(() => false),
          eventQueue.find().catch(() => undefined),
        ]);
        if (!isFound) return unchecked(`see ${name}`);
        return queue === undefined
          ? unchecked(`see ${eventQueue.name}`)
          : rulesOutcome(client, place, bus, queue);
      },
    },
    {
      name: `${eventQueue.name}: policy`,
      run: async () => {
        const queue = await eventQueue.find().catch(() => undefined);
        return queue === undefined
          ? unchecked(`see ${eventQueue.name}`)
          : policyOutcome(queuePlace, queue);
      },
    },
  ];
}

async function isThere(client: EventBridgeClient, place: Place, busName: string): Promise<boolean> {
  try {
    const command = new DescribeEventBusCommand({ Name: busName });
    await place.call("DescribeEventBus", busName, () =>
      client.send(command, { abortSignal: place.signal }),
    );
    return true;
  } catch (error) {
    if (failureName(error) === "ResourceNotFoundException") return false;
    throw error;
  }
}

async function rulesOutcome(
  client: EventBridgeClient,
  place: Place,
  bus: NeededBus,
  queue: FoundQueue,
): Promise<Outcome> {
  const rules = await rulesOf(client, place, bus.name);
  const targets = await Promise.all(
    rules.map(({ name }) => targetsOf(client, place, bus.name, name)),
  );
  const routing = rules.filter((_, index) => targets[index]?.includes(queue.arn));
  const matching = (type: string) =>
    routing.filter(({ pattern }) => routes(pattern, bus.source, type));
  const lost = bus.consumed.filter((type) => !matching(type).some(({ isDisabled }) => !isDisabled));
  if (lost.length === 0)
    return fine(`${routing.map(({ name }) => name).join(", ")} to ${queue.arn}`);
  const disabled = [...new Set(lost.flatMap(matching).map(({ name }) => name))];
  if (disabled.length > 0) {
    return wrong(
      `nothing brings ${lost.join(", ")} to ${queue.arn}: ${disabled.join(", ")} is disabled`,
      ...disabled.map((name) =>
        place.aws("enable-rule", "--event-bus-name", bus.name, "--name", name),
      ),
    );
  }
  const { name, pattern, targetId } = bus.rule;
  return wrong(
    `nothing brings ${lost.join(", ")} to ${queue.arn}`,
    place.aws(
      "put-rule",
      ...["--event-bus-name", bus.name, "--name", name, "--event-pattern", JSON.stringify(pattern)],
    ),
    place.aws(
      "put-targets",
      "--event-bus-name",
      bus.name,
      "--rule",
      name,
      "--targets",
      `Id=${targetId},Arn=${queue.arn}`,
    ),
  );
}

interface EventRule {
  readonly name: string;
  readonly isDisabled: boolean;
  readonly pattern: Readonly<Record<string, unknown>>;
}

async function rulesOf(
  client: EventBridgeClient,
  place: Place,
  EventBusName: string,
): Promise<EventRule[]> {
  const rules: EventRule[] = [];
  let NextToken: string | undefined;
  do {
    const command = new ListRulesCommand({ EventBusName, NextToken });
    const page = await place.call("ListRules", EventBusName, () =>
      client.send(command, { abortSignal: place.signal }),
    );
    for (const { Name, State, EventPattern } of page.Rules ?? []) {
      // Safe: EventBridge only accepts objects.
      const pattern =
        EventPattern === undefined ? undefined : (JSON.parse(EventPattern) as EventRule["pattern"]);
      if (pattern !== undefined)
        rules.push({ name: String(Name), isDisabled: State === "DISABLED", pattern });
    }
    NextToken = page.NextToken;
  } while (NextToken !== undefined);
  return rules;
}

async function targetsOf(
  client: EventBridgeClient,
  place: Place,
  EventBusName: string,
  Rule: string,
): Promise<(string | undefined)[]> {
  const command = new ListTargetsByRuleCommand({ EventBusName, Rule });
  const { Targets = [] } = await place.call("ListTargetsByRule", Rule, () =>
    client.send(command, { abortSignal: place.signal }),
  );
  return Targets.map(({ Arn }) => Arn);
}

function routes(pattern: EventRule["pattern"], source: string, type: string): boolean {
  return takes(pattern["source"], source) && takes(pattern["detail-type"], type);
}

/** Assumes that every complex matcher (a prefix, a wildcard) matches. */
function takes(member: unknown, text: string): boolean {
  return !Array.isArray(member) || member.some((one) => one === text || typeof one === "object");
}

/** Without this permission, events are lost silently. */
function policyOutcome(place: Place, { arn, url, attributes }: FoundQueue): Outcome {
  const set = (attribute: string, value: string) =>
    place.aws(
      "set-queue-attributes",
      "--queue-url",
      url,
      "--attributes",
      JSON.stringify({ [attribute]: value }),
    );
  const { KmsMasterKeyId: key, Policy: policy } = attributes;
  if (key === "alias/aws/sqs") {
    const message = "it is encrypted with alias/aws/sqs, which EventBridge may not use";
    return wrong(message, set("KmsMasterKeyId", ""), set("SqsManagedSseEnabled", "true"));
  }
  if (policy !== undefined && policy !== "" && allowsEventBridge(policy))
    return fine("EventBridge may send into it");
  if (place.isEmulator) return unchecked("an emulator needs no policy");
  const Statement = [
    {
      Effect: "Allow",
      Principal: { Service: "events.amazonaws.com" },
      Action: "sqs:SendMessage",
      Resource: arn,
    },
  ];
  return wrong(
    "EventBridge may not send into it, so that events are lost",
    set("Policy", JSON.stringify({ Version: "2012-10-17", Statement })),
  );
}

interface Statement {
  readonly Effect?: string;
  readonly Principal?: string | Readonly<Record<string, string | readonly string[]>>;
  readonly Action?: string | readonly string[];
}

/** Ignores the conditions of the policy. */
function allowsEventBridge(policy: string): boolean {
  // Safe: SQS only accepts policies of this shape.
  const { Statement = [] } = JSON.parse(policy) as {
    readonly Statement?: Statement | readonly Statement[];
  };
  return [Statement].flat().some(({ Effect, Principal = {}, Action = [] }) => {
    const who = typeof Principal === "string" ? [Principal] : Object.values(Principal).flat();
    const what = [Action].flat().map((action) => action.toLowerCase());
    return (
      Effect === "Allow" &&
      who.some((one) => one === "*" || one === "events.amazonaws.com") &&
      what.some((one) => ["*", "sqs:*", "sqs:sendmessage"].includes(one))
    );
  });
}
