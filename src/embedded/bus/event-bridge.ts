import { embeddedAccount } from "../queues/sqs-scope.ts";
import { detected, validationError } from "../service/operation.ts";
import {
  type AwsJsonService,
  type CallContext,
  type Operations,
  operationOf,
} from "../service/service.ts";
import {
  busIn,
  type EventBridgeScope,
  eventsError,
  nameOf,
  optionalText,
  ruleIn,
  text,
  withPrefix,
} from "./event-bridge-scope.ts";
import { type EventBus, openEventBusStore, type Rule, type RuleTarget } from "./event-bus-store.ts";
import { fieldOf } from "./event-pattern.ts";
import { type BusEvent, type RefusedEntry, readEntries, refused } from "./put-events.ts";
import { targetOperations } from "./rule-targets.ts";

const busName = /^[\w.-]{1,256}$/;
const ruleName = /^[\w.-]{1,64}$/;

export type EventBridge = ReturnType<typeof openEventBridge>;

/**
 * Opens an EventBridge service. PutEvents returns after the delivery to all targets and passes each
 * failed delivery to `reportFault`. @throws Error if the file is corrupt.
 */
export function openEventBridge({
  path,
  region = "us-east-1",
  reportFault = () => {},
  ...given
}: Pick<EventBridgeScope, "sqs"> &
  Partial<Pick<EventBridgeScope, "region" | "reportFault">> & {
    readonly path?: string | undefined;
  }) {
  const store = openEventBusStore(path);
  const scope: EventBridgeScope = { ...given, store, region, reportFault };
  return {
    targetPrefix: "AWSEvents.",
    async call(name, input, context) {
      const answer = await operationOf(operations, name)(scope, input, context);
      store.flush();
      return answer;
    },
    close: store.close,
  } satisfies AwsJsonService & { close(): void };
}

const operations: Operations<EventBridgeScope> = {
  CreateEventBus(scope, input, { nowMs }) {
    const name = text(input, "Name");
    const description = optionalText(input, "Description");
    if (!busName.test(name)) throw detected(`'name' has to match ${busName.source}`);
    if (scope.store.bus(name) !== undefined)
      throw eventsError("ResourceAlreadyExistsException", `Event bus ${name} already exists.`);
    scope.store.putBus({ name, createdAt: nowMs, description });
    return { EventBusArn: busArn(scope, name), Description: description };
  },
  DescribeEventBus: (scope, input) => shownBus(scope, busIn(scope, input, "Name")),
  DeleteEventBus({ store }, input) {
    const name = nameOf(text(input, "Name"));
    if (name === "default") throw validationError("Cannot delete event bus default.");
    if (store.rules(name).length > 0)
      throw validationError("Cannot delete event bus because it contains rules.");
    if (store.bus(name) !== undefined) store.deleteBus(name);
    return {};
  },
  ListEventBuses: (scope, input) => ({
    EventBuses: withPrefix(scope.store.buses(), input).map((bus) => shownBus(scope, bus)),
  }),
  PutRule(scope, input) {
    const bus = busIn(scope, input, "EventBusName").name;
    const name = text(input, "Name");
    const pattern = optionalText(input, "EventPattern");
    const state = input["State"] ?? "ENABLED";
    const description = optionalText(input, "Description");
    if (!ruleName.test(name)) throw detected(`'name' has to match ${ruleName.source}`);
    if (input["ScheduleExpression"] !== undefined)
      throw validationError("The embedded stack has no ScheduleExpression");
    if (pattern === undefined)
      throw validationError("Parameter(s) EventPattern or ScheduleExpression must be specified.");
    if (state !== "ENABLED" && state !== "DISABLED")
      throw detected("'state' has to be ENABLED or DISABLED");
    const targets = scope.store.rule(bus, name)?.targets ?? [];
    const enabled = state === "ENABLED";
    scope.store.putRule({ bus, name, pattern, enabled, targets, description });
    return { RuleArn: ruleArn(scope, { bus, name }) };
  },
  DescribeRule: (scope, input) => ({
    ...shownRule(scope, ruleIn(scope, input, "Name")),
    CreatedBy: embeddedAccount,
  }),
  ListRules(scope, input) {
    const rules = scope.store.rules(busIn(scope, input, "EventBusName").name);
    return { Rules: withPrefix(rules, input).map((rule) => shownRule(scope, rule)) };
  },
  DeleteRule(scope, input) {
    const bus = busIn(scope, input, "EventBusName").name;
    const rule = scope.store.rule(bus, text(input, "Name"));
    if (rule === undefined) return {};
    if (rule.targets.length > 0)
      throw validationError("Rule can't be deleted since it has targets.");
    scope.store.deleteRule(rule);
    return {};
  },
  ...targetOperations,
  async PutEvents(scope, input, context) {
    const origin = { account: embeddedAccount, region: scope.region, nowMs: context.nowMs };
    const Entries: (RefusedEntry | { readonly EventId: string })[] = [];
    for (const entry of readEntries(input["Entries"], origin)) {
      Entries.push(
        "event" in entry ? await route(scope, nameOf(entry.bus), entry.event, context) : entry,
      );
    }
    return { FailedEntryCount: Entries.filter((entry) => "ErrorCode" in entry).length, Entries };
  },
};

async function route(
  { store, sqs, reportFault }: EventBridgeScope,
  bus: string,
  event: BusEvent,
  context: CallContext,
): Promise<RefusedEntry | { readonly EventId: string }> {
  // AWS accepts and drops events for an unknown bus. A refusal shows the wrong name.
  if (store.bus(bus) === undefined)
    return refused("ResourceNotFoundException", `Event bus ${bus} does not exist.`);
  for (const { enabled, fits, targets } of store.rules(bus)) {
    if (!enabled || !fits(event)) continue;
    for (const target of targets) {
      const sent = sqs.call("SendMessage", messageOf(target, event, context), context);
      await sent.catch((cause: unknown) =>
        reportFault(
          new Error(`An event of the bus ${bus} did not get into ${target.arn}`, { cause }),
        ),
      );
    }
  }
  return { EventId: event.id };
}

function messageOf(
  { arn, messageGroupId, inputPath: path = "$" }: RuleTarget,
  event: BusEvent,
  { endpoint }: CallContext,
) {
  const part = path.split(".").slice(1).reduce<unknown>(fieldOf, event);
  return {
    QueueUrl: `${endpoint}/${embeddedAccount}/${arn.slice(arn.lastIndexOf(":") + 1)}`,
    MessageBody: JSON.stringify(part ?? null),
    MessageGroupId: messageGroupId,
  };
}

function busArn(scope: EventBridgeScope, name: string) {
  return arnOf(scope, `event-bus/${name}`);
}

function ruleArn(scope: EventBridgeScope, { bus, name }: Pick<Rule, "bus" | "name">) {
  return arnOf(scope, `rule/${bus === "default" ? "" : `${bus}/`}${name}`);
}

function arnOf({ region }: EventBridgeScope, resource: string) {
  return `arn:aws:events:${region}:${embeddedAccount}:${resource}`;
}

function shownBus(scope: EventBridgeScope, { name, createdAt, description }: EventBus) {
  return {
    Name: name,
    Arn: busArn(scope, name),
    CreationTime: createdAt / 1000,
    Description: description,
  };
}

function shownRule(scope: EventBridgeScope, rule: Rule) {
  return {
    Name: rule.name,
    Arn: ruleArn(scope, rule),
    EventPattern: rule.pattern,
    State: rule.enabled ? "ENABLED" : "DISABLED",
    EventBusName: rule.bus,
    Description: rule.description,
  };
}
