import { type EventBus, type EventBusStore, openEventBusStore, type Rule, type RuleTarget } from "./event-bus-store.ts";
import { fieldOf, isObject } from "./event-pattern.ts";
import { validationError } from "./operation.ts";
import { type BusEvent, type RefusedEntry, readEntries } from "./put-events.ts";
import { type AwsJsonService, type CallContext, ServiceError, unknownOperation } from "./service.ts";
import type { Sqs } from "./sqs.ts";
import { embeddedAccount } from "./sqs-scope.ts";

const busName = /^[\w.-]{1,256}$/;
const ruleName = /^[\w.-]{1,64}$/;
const queueArn = /^arn:aws:sqs:[^:]+:[^:]+:[\w-]+(\.fifo)?$/;
const inputPath = /^\$(\.[\w-]+)*$/;

type Input = Readonly<Record<string, unknown>>;

interface Scope {
  readonly store: EventBusStore;
  readonly sqs: Pick<Sqs, "call">;
  readonly region: string;
  readonly reportFault: (error: unknown) => void;
}

type Operation = (scope: Scope, input: Input, context: CallContext) => object | Promise<object>;

const operations: Readonly<Record<string, Operation>> = {
  CreateEventBus: createEventBus,
  DescribeEventBus: (scope, input) => shownBus(scope, busIn(scope, input, "Name")),
  DeleteEventBus: deleteEventBus,
  ListEventBuses: listEventBuses,
  PutRule: putRule,
  DescribeRule: (scope, input) => ({ ...shownRule(scope, ruleIn(scope, input, "Name")), CreatedBy: embeddedAccount }),
  ListRules: listRules,
  DeleteRule: deleteRule,
  PutTargets: putTargets,
  ListTargetsByRule: (scope, input) => ({ Targets: ruleIn(scope, input, "Rule").targets.map(shownTarget) }),
  RemoveTargets: removeTargets,
  PutEvents: putEvents,
};

/** EventBridge on this machine. */
export interface EventBridge extends AwsJsonService {
  call(operation: string, input: Input, context: CallContext): Promise<object>;
  close(): void;
}

/** How {@link openEventBridge} opens its store. */
export interface EventBridgeOptions {
  /** Where its events go. */
  readonly sqs: Pick<Sqs, "call">;
  /** The file of buses and rules; absent: in memory. */
  readonly path?: string;
  /** What ARNs and events name. Default `us-east-1`. */
  readonly region?: string;
  /** Told of an event that its target did not take: no answer says so. */
  readonly reportFault?: (error: unknown) => void;
}

/**
 * Opens EventBridge: buses, rules by pattern, queues as targets. What fits is in its queues before
 * PutEvents is answered.
 *
 * @throws Error where the file is not what was written.
 */
export function openEventBridge({ sqs, path, region = "us-east-1", reportFault = () => {} }: EventBridgeOptions): EventBridge {
  const store = openEventBusStore(path);
  const scope: Scope = { store, sqs, region, reportFault };
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

function createEventBus(scope: Scope, input: Input, { nowMs }: CallContext): object {
  const name = text(input, "Name");
  const description = optionalText(input, "Description");
  if (!busName.test(name)) throw validationError(`1 validation error detected: 'name' has to match ${busName.source}`);
  if (scope.store.bus(name) !== undefined) {
    throw eventsError("ResourceAlreadyExistsException", `Event bus ${name} already exists.`);
  }
  const bus = { name, createdAt: nowMs, ...(description === undefined ? {} : { description }) };
  scope.store.putBus(bus);
  return { EventBusArn: busArn(scope, name), ...(description === undefined ? {} : { Description: description }) };
}

function deleteEventBus({ store }: Scope, input: Input): object {
  const name = nameOf(text(input, "Name"));
  if (name === "default") throw validationError("Cannot delete event bus default.");
  if (store.rules(name).length > 0) throw validationError("Cannot delete event bus because it contains rules.");
  if (store.bus(name) !== undefined) store.deleteBus(name);
  return {};
}

function listEventBuses(scope: Scope, input: Input): object {
  const prefix = optionalText(input, "NamePrefix") ?? "";
  const found = scope.store.buses().filter(({ name }) => name.startsWith(prefix));
  return { EventBuses: found.map((bus) => shownBus(scope, bus)) };
}

function putRule(scope: Scope, input: Input): object {
  const bus = busIn(scope, input, "EventBusName").name;
  const name = text(input, "Name");
  const pattern = optionalText(input, "EventPattern");
  const state = input["State"] ?? "ENABLED";
  const description = optionalText(input, "Description");
  if (!ruleName.test(name)) throw validationError(`1 validation error detected: 'name' has to match ${ruleName.source}`);
  if (input["ScheduleExpression"] !== undefined) throw validationError("The embedded stack has no ScheduleExpression");
  if (pattern === undefined) throw validationError("Parameter(s) EventPattern or ScheduleExpression must be specified.");
  if (state !== "ENABLED" && state !== "DISABLED") {
    throw validationError("1 validation error detected: 'state' has to be ENABLED or DISABLED");
  }
  const targets = scope.store.rule(bus, name)?.targets ?? [];
  scope.store.putRule({
    bus,
    name,
    pattern,
    enabled: state === "ENABLED",
    targets,
    ...(description === undefined ? {} : { description }),
  });
  return { RuleArn: ruleArn(scope, { bus, name }) };
}

function listRules(scope: Scope, input: Input): object {
  const prefix = optionalText(input, "NamePrefix") ?? "";
  const found = scope.store.rules(busIn(scope, input, "EventBusName").name).filter(({ name }) => name.startsWith(prefix));
  return { Rules: found.map((rule) => shownRule(scope, rule)) };
}

function deleteRule(scope: Scope, input: Input): object {
  const rule = scope.store.rule(busIn(scope, input, "EventBusName").name, text(input, "Name"));
  if (rule === undefined) return {};
  if (rule.targets.length > 0) throw validationError("Rule can't be deleted since it has targets.");
  scope.store.deleteRule(rule);
  return {};
}

function putTargets(scope: Scope, input: Input): object {
  const rule = ruleIn(scope, input, "Rule");
  const given = input["Targets"];
  if (!Array.isArray(given) || given.length === 0)
    throw validationError("1 validation error detected: 'targets' has to be a list");
  const targets = new Map(rule.targets.map((target) => [target.id, target]));
  const FailedEntries: object[] = [];
  for (const one of given) {
    const target = readTarget(one);
    if (target.arn.endsWith(".fifo") && target.messageGroupId === undefined) {
      FailedEntries.push({
        TargetId: target.id,
        ErrorCode: "ValidationException",
        ErrorMessage: `Parameter(s) SqsParameters must be specified for target: ${target.id}.`,
      });
    } else {
      targets.set(target.id, target);
    }
  }
  scope.store.putRule({ ...rule, targets: [...targets.values()] });
  return { FailedEntryCount: FailedEntries.length, FailedEntries };
}

function removeTargets(scope: Scope, input: Input): object {
  const rule = ruleIn(scope, input, "Rule");
  const ids = input["Ids"];
  if (!Array.isArray(ids) || ids.length === 0) throw validationError("1 validation error detected: 'ids' has to be a list");
  scope.store.putRule({ ...rule, targets: rule.targets.filter(({ id }) => !ids.includes(id)) });
  return { FailedEntryCount: 0, FailedEntries: [] };
}

async function putEvents(scope: Scope, input: Input, context: CallContext): Promise<object> {
  const origin = { account: embeddedAccount, region: scope.region, nowMs: context.nowMs };
  const Entries: (RefusedEntry | { readonly EventId: string })[] = [];
  for (const entry of readEntries(input["Entries"], origin)) {
    Entries.push("event" in entry ? await route(scope, nameOf(entry.bus), entry.event, context) : entry);
  }
  return { FailedEntryCount: Entries.filter((entry) => "ErrorCode" in entry).length, Entries };
}

async function route(
  { store, sqs, reportFault }: Scope,
  bus: string,
  event: BusEvent,
  context: CallContext,
): Promise<RefusedEntry | { readonly EventId: string }> {
  // The real one takes such an event and drops it; here somebody has to learn of the wrong name.
  if (store.bus(bus) === undefined) {
    return { ErrorCode: "ResourceNotFoundException", ErrorMessage: `Event bus ${bus} does not exist.` };
  }
  for (const { enabled, fits, targets } of store.rules(bus)) {
    if (!enabled || !fits(event)) continue;
    for (const target of targets) {
      await sqs.call("SendMessage", messageOf(target, event, context), context).catch((cause: unknown) => {
        reportFault(new Error(`An event of the bus ${bus} did not get into ${target.arn}`, { cause }));
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
    ...(messageGroupId === undefined ? {} : { MessageGroupId: messageGroupId }),
  };
}

function readTarget(target: unknown): RuleTarget {
  if (!isObject(target)) throw validationError("1 validation error detected: a target has to be a structure");
  const id = text(target, "Id");
  const arn = text(target, "Arn");
  const path = optionalText(target, "InputPath");
  const messageGroupId = fieldOf(target["SqsParameters"], "MessageGroupId");
  if (!queueArn.test(arn))
    throw validationError(`The embedded stack delivers to the ARNs of queues only, not to ${arn.slice(0, 200)}`);
  if (target["InputTransformer"] !== undefined || target["Input"] !== undefined) {
    throw validationError("The embedded stack has no Input and no InputTransformer, only InputPath");
  }
  if (path !== undefined && !inputPath.test(path)) throw validationError(`Invalid InputPath for target ${id.slice(0, 64)}.`);
  return {
    id,
    arn,
    ...(typeof messageGroupId === "string" ? { messageGroupId } : {}),
    ...(path === undefined ? {} : { inputPath: path }),
  };
}

function busIn({ store }: Scope, input: Input, member: string): EventBus {
  const name = nameOf(optionalText(input, member) ?? "default");
  const bus = store.bus(name);
  if (bus === undefined) throw eventsError("ResourceNotFoundException", `Event bus ${name.slice(0, 256)} does not exist.`);
  return bus;
}

function ruleIn(scope: Scope, input: Input, member: string): Rule {
  const bus = busIn(scope, input, "EventBusName").name;
  const name = text(input, member);
  const rule = scope.store.rule(bus, name);
  if (rule === undefined) {
    throw eventsError("ResourceNotFoundException", `Rule ${name.slice(0, 64)} does not exist on EventBus ${bus}.`);
  }
  return rule;
}

function shownBus(scope: Scope, { name, createdAt, description }: EventBus): object {
  return {
    Name: name,
    Arn: busArn(scope, name),
    CreationTime: createdAt / 1000,
    ...(description === undefined ? {} : { Description: description }),
  };
}

function shownRule(scope: Scope, rule: Rule): object {
  return {
    Name: rule.name,
    Arn: ruleArn(scope, rule),
    EventPattern: rule.pattern,
    State: rule.enabled ? "ENABLED" : "DISABLED",
    EventBusName: rule.bus,
    ...(rule.description === undefined ? {} : { Description: rule.description }),
  };
}

function shownTarget({ id, arn, messageGroupId, inputPath: path }: RuleTarget): object {
  return {
    Id: id,
    Arn: arn,
    ...(messageGroupId === undefined ? {} : { SqsParameters: { MessageGroupId: messageGroupId } }),
    ...(path === undefined ? {} : { InputPath: path }),
  };
}

/** A bus may be named by its ARN. */
function nameOf(nameOrArn: string): string {
  return nameOrArn.slice(nameOrArn.lastIndexOf("/") + 1);
}

function busArn({ region }: Scope, name: string): string {
  return `arn:aws:events:${region}:${embeddedAccount}:event-bus/${name}`;
}

function ruleArn({ region }: Scope, { bus, name }: Pick<Rule, "bus" | "name">): string {
  return `arn:aws:events:${region}:${embeddedAccount}:rule/${bus === "default" ? "" : `${bus}/`}${name}`;
}

function eventsError(type: string, message: string): ServiceError {
  return new ServiceError(`com.amazonaws.eventbridge#${type}`, message);
}

function optionalText(input: Input, member: string): string | undefined {
  const value = input[member] ?? undefined;
  if (value !== undefined && typeof value !== "string")
    throw validationError(`1 validation error detected: '${member}' has to be a text`);
  return value;
}

function text(input: Input, member: string): string {
  const value = optionalText(input, member);
  if (value === undefined || value === "") {
    throw validationError(
      `1 validation error detected: Value at '${member}' failed to satisfy constraint: Member must not be null`,
    );
  }
  return value;
}
