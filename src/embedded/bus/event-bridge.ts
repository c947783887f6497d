import type { Sqs } from "../queues/sqs.ts";
import { embeddedAccount } from "../queues/sqs-scope.ts";
import { detected, validationError } from "../service/operation.ts";
import {
  type AwsJsonService,
  type CallContext,
  type Input,
  unknownOperation,
} from "../service/service.ts";
import {
  busArn,
  busIn,
  type EventBridgeScope,
  eventsError,
  nameOf,
  optionalText,
  ruleArn,
  ruleIn,
  text,
} from "./event-bridge-scope.ts";
import { type EventBus, openEventBusStore, type Rule, type RuleTarget } from "./event-bus-store.ts";
import { fieldOf } from "./event-pattern.ts";
import { type BusEvent, type RefusedEntry, readEntries, refused } from "./put-events.ts";
import { listTargets, putTargets, removeTargets } from "./rule-targets.ts";

const busName = /^[\w.-]{1,256}$/;
const ruleName = /^[\w.-]{1,64}$/;

type Operation = (
  scope: EventBridgeScope,
  input: Input,
  context: CallContext,
) => object | Promise<object>;

const operations: Readonly<Record<string, Operation>> = {
  CreateEventBus: createEventBus,
  DescribeEventBus: (scope, input) => shownBus(scope, busIn(scope, input, "Name")),
  DeleteEventBus: deleteEventBus,
  ListEventBuses: listEventBuses,
  PutRule: putRule,
  DescribeRule: (scope, input) => ({
    ...shownRule(scope, ruleIn(scope, input, "Name")),
    CreatedBy: embeddedAccount,
  }),
  ListRules: listRules,
  DeleteRule: deleteRule,
  PutTargets: putTargets,
  ListTargetsByRule: listTargets,
  RemoveTargets: removeTargets,
  PutEvents: putEvents,
};

export interface EventBridge extends AwsJsonService {
  call(operation: string, input: Input, context: CallContext): Promise<object>;
  close(): void;
}

interface EventBridgeOptions {
  readonly sqs: Pick<Sqs, "call">;
  readonly path?: string | undefined;
  readonly region?: string;
  /** Receives what PutEvents does not report: events that a target did not accept. */
  readonly reportFault?: (error: unknown) => void;
}

/**
 * Opens EventBridge with buses, pattern rules and queue targets, which have the events when
 * PutEvents returns.
 * @throws Error if the file is corrupt.
 */
export function openEventBridge({
  sqs,
  path,
  region = "us-east-1",
  reportFault = () => {},
}: EventBridgeOptions): EventBridge {
  const store = openEventBusStore(path);
  const scope: EventBridgeScope = { store, sqs, region, reportFault };
  return {
    targetPrefix: "AWSEvents.",
    async call(name, input, context) {
      const operation = Object.hasOwn(operations, name) ? operations[name] : undefined;
      if (operation === undefined) throw unknownOperation(name);
      const answer = await operation(scope, input, context);
      store.flush();
      return answer;
    },
    close: () => store.close(),
  };
}

function createEventBus(scope: EventBridgeScope, input: Input, { nowMs }: CallContext): object {
  const name = text(input, "Name");
  const description = optionalText(input, "Description");
  if (!busName.test(name)) throw detected(`'name' has to match ${busName.source}`);
  if (scope.store.bus(name) !== undefined) {
    throw eventsError("ResourceAlreadyExistsException", `Event bus ${name} already exists.`);
  }
  scope.store.putBus({ name, createdAt: nowMs, description });
  return { EventBusArn: busArn(scope, name), Description: description };
}

function deleteEventBus({ store }: EventBridgeScope, input: Input): object {
  const name = nameOf(text(input, "Name"));
  if (name === "default") throw validationError("Cannot delete event bus default.");
  if (store.rules(name).length > 0)
    throw validationError("Cannot delete event bus because it contains rules.");
  if (store.bus(name) !== undefined) store.deleteBus(name);
  return {};
}

function listEventBuses(scope: EventBridgeScope, input: Input): object {
  const prefix = optionalText(input, "NamePrefix") ?? "";
  const found = scope.store.buses().filter(({ name }) => name.startsWith(prefix));
  return { EventBuses: found.map((bus) => shownBus(scope, bus)) };
}

function putRule(scope: EventBridgeScope, input: Input): object {
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
  if (state !== "ENABLED" && state !== "DISABLED") {
    throw detected("'state' has to be ENABLED or DISABLED");
  }
  const targets = scope.store.rule(bus, name)?.targets ?? [];
  scope.store.putRule({
    bus,
    name,
    pattern,
    enabled: state === "ENABLED",
    targets,
    description,
  });
  return { RuleArn: ruleArn(scope, { bus, name }) };
}

function listRules(scope: EventBridgeScope, input: Input): object {
  const prefix = optionalText(input, "NamePrefix") ?? "";
  const found = scope.store
    .rules(busIn(scope, input, "EventBusName").name)
    .filter(({ name }) => name.startsWith(prefix));
  return { Rules: found.map((rule) => shownRule(scope, rule)) };
}

function deleteRule(scope: EventBridgeScope, input: Input): object {
  const rule = scope.store.rule(busIn(scope, input, "EventBusName").name, text(input, "Name"));
  if (rule === undefined) return {};
  if (rule.targets.length > 0) throw validationError("Rule can't be deleted since it has targets.");
  scope.store.deleteRule(rule);
  return {};
}

async function putEvents(
  scope: EventBridgeScope,
  input: Input,
  context: CallContext,
): Promise<object> {
  const origin = { account: embeddedAccount, region: scope.region, nowMs: context.nowMs };
  const Entries: (RefusedEntry | { readonly EventId: string })[] = [];
  for (const entry of readEntries(input["Entries"], origin)) {
    Entries.push(
      "event" in entry ? await route(scope, nameOf(entry.bus), entry.event, context) : entry,
    );
  }
  return { FailedEntryCount: Entries.filter((entry) => "ErrorCode" in entry).length, Entries };
}

async function route(
  { store, sqs, reportFault }: EventBridgeScope,
  bus: string,
  event: BusEvent,
  context: CallContext,
): Promise<RefusedEntry | { readonly EventId: string }> {
  // AWS accepts and drops such an event. This reports the wrong name instead.
  if (store.bus(bus) === undefined) {
    return refused("ResourceNotFoundException", `Event bus ${bus} does not exist.`);
  }
  for (const { enabled, fits, targets } of store.rules(bus)) {
    if (!enabled || !fits(event)) continue;
    for (const target of targets) {
      await sqs
        .call("SendMessage", messageOf(target, event, context), context)
        .catch((cause: unknown) => {
          reportFault(
            new Error(`An event of the bus ${bus} did not get into ${target.arn}`, { cause }),
          );
        });
    }
  }
  return { EventId: event.id };
}

function messageOf(
  { arn, messageGroupId, inputPath: path = "$" }: RuleTarget,
  event: BusEvent,
  { endpoint }: CallContext,
): Input {
  const part = path.split(".").slice(1).reduce<unknown>(fieldOf, event);
  return {
    QueueUrl: `${endpoint}/${embeddedAccount}/${arn.slice(arn.lastIndexOf(":") + 1)}`,
    MessageBody: JSON.stringify(part ?? null),
    MessageGroupId: messageGroupId,
  };
}

function shownBus(scope: EventBridgeScope, { name, createdAt, description }: EventBus): object {
  return {
    Name: name,
    Arn: busArn(scope, name),
    CreationTime: createdAt / 1000,
    Description: description,
  };
}

function shownRule(scope: EventBridgeScope, rule: Rule): object {
  return {
    Name: rule.name,
    Arn: ruleArn(scope, rule),
    EventPattern: rule.pattern,
    State: rule.enabled ? "ENABLED" : "DISABLED",
    EventBusName: rule.bus,
    Description: rule.description,
  };
}
