import { isRecord } from "../../base/errors/option-table.ts";
import { embeddedAccount } from "../queues/sqs-scope.ts";
import {
  type AwsJsonService,
  type CallContext,
  detected,
  type Input,
  type Operations,
  operationOf,
  validationError,
} from "../service/service.ts";
import {
  busIn,
  type EventBridgeScope,
  type EventBus,
  eventsError,
  nameOf,
  openEventBusStore,
  optionalText,
  type Rule,
  type RuleName,
  type RuleTarget,
  ruleIn,
  text,
  withPrefix,
} from "./event-bus-store.ts";
import { type BusEvent, fieldOf, readEntries, refused } from "./events.ts";

const busName = /^[\w.-]{1,256}$/;
const ruleName = /^[\w.-]{1,64}$/;
const queueArn = /^arn:aws:sqs:[^:]+:[^:]+:[\w-]+(\.fifo)?$/;
const inputPath = /^\$(\.[\w-]+)*$/;
const longestGroup = 100;

export type EventBridge = ReturnType<typeof openEventBridge>;

/**
 * PutEvents returns after the delivery to all targets and passes each failed delivery to
 * `reportFault`. @throws Error if the file is corrupt.
 */
export function openEventBridge({
  path,
  region = "us-east-1",
  reportFault = () => {},
  sqs,
}: Partial<EventBridgeScope> &
  Pick<EventBridgeScope, "sqs"> & { readonly path?: string | undefined }) {
  const store = openEventBusStore(path);
  const scope: EventBridgeScope = { sqs, store, region, reportFault };
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
    return { EventBusArn: arnOf(scope, `event-bus/${name}`), Description: description };
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
  ListTargetsByRule: (scope, input) => ({
    Targets: ruleIn(scope, input, "Rule").targets.map(shownTarget),
  }),
  PutTargets(scope, input) {
    const rule = ruleIn(scope, input, "Rule");
    const targets = new Map(rule.targets.map((target) => [target.id, target]));
    const FailedEntries: object[] = [];
    for (const target of listIn(input, "Targets").map(readTarget)) {
      const { id: TargetId } = target;
      const problem = `Parameter(s) SqsParameters must be specified for target: ${TargetId}.`;
      if (target.arn.endsWith(".fifo") && target.messageGroupId === undefined)
        FailedEntries.push({ TargetId, ...refused("ValidationException", problem) });
      else targets.set(TargetId, target);
    }
    scope.store.putRule({ ...rule, targets: [...targets.values()] });
    return { FailedEntryCount: FailedEntries.length, FailedEntries };
  },
  RemoveTargets(scope, input) {
    const rule = ruleIn(scope, input, "Rule");
    const ids = listIn(input, "Ids");
    scope.store.putRule({ ...rule, targets: rule.targets.filter(({ id }) => !ids.includes(id)) });
    return { FailedEntryCount: 0, FailedEntries: [] };
  },
  async PutEvents(scope, input, context) {
    const origin = { account: embeddedAccount, region: scope.region, nowMs: context.nowMs };
    const Entries: object[] = [];
    for (const one of readEntries(input["Entries"], origin))
      Entries.push("event" in one ? await route(scope, nameOf(one.bus), one.event, context) : one);
    return { FailedEntryCount: Entries.filter((entry) => "ErrorCode" in entry).length, Entries };
  },
};

async function route(
  { store, sqs, reportFault }: EventBridgeScope,
  bus: string,
  event: BusEvent,
  context: CallContext,
) {
  // AWS accepts and drops events for an unknown bus. A refusal shows the wrong name.
  if (store.bus(bus) === undefined)
    return refused("ResourceNotFoundException", `Event bus ${bus} does not exist.`);
  for (const { enabled, fits, targets } of store.rules(bus)) {
    if (!enabled || !fits(event)) continue;
    for (const target of targets) {
      try {
        await sqs.call("SendMessage", messageOf(target, event, context), context);
      } catch (cause) {
        const problem = `An event of the bus ${bus} did not get into ${target.arn}`;
        reportFault(new Error(problem, { cause }));
      }
    }
  }
  return { EventId: event.id };
}

function messageOf(
  { arn, messageGroupId, inputPath: path = "$" }: RuleTarget,
  event: BusEvent,
  { endpoint }: CallContext,
) {
  const part = partOf(event, path);
  return {
    QueueUrl: `${endpoint}/${embeddedAccount}/${arn.slice(arn.lastIndexOf(":") + 1)}`,
    MessageBody: JSON.stringify(part ?? null),
    MessageGroupId: messageGroupId && groupOf(event, messageGroupId),
  };
}

/**
 * A constant, or the string at a path. AWS does not document a path that matches nothing. Here, the
 * event is not delivered, so that a test shows the mistake.
 */
function groupOf(event: BusEvent, constantOrPath: string): string {
  if (!constantOrPath.startsWith("$")) return constantOrPath;
  const group = partOf(event, constantOrPath);
  if (typeof group === "string") return group;
  throw new Error(`its MessageGroupId ${constantOrPath} matches no string`);
}

function partOf(event: BusEvent, path: string) {
  return path.split(".").slice(1).reduce<unknown>(fieldOf, event);
}

function ruleArn(scope: EventBridgeScope, { bus, name }: RuleName) {
  return arnOf(scope, `rule/${bus === "default" ? "" : `${bus}/`}${name}`);
}

function arnOf({ region }: EventBridgeScope, resource: string) {
  return `arn:aws:events:${region}:${embeddedAccount}:${resource}`;
}

function shownBus(scope: EventBridgeScope, { name, createdAt, description }: EventBus) {
  return {
    Name: name,
    Arn: arnOf(scope, `event-bus/${name}`),
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

function listIn(input: Input, member: string): readonly unknown[] {
  const list = input[member];
  if (Array.isArray(list) && list.length > 0) return list;
  throw detected(`'${member.toLowerCase()}' has to be a list`);
}

function readTarget(target: unknown): RuleTarget {
  if (!isRecord(target)) throw detected("a target has to be a structure");
  const id = text(target, "Id");
  const arn = text(target, "Arn");
  const path = optionalText(target, "InputPath");
  const messageGroupId = fieldOf(target["SqsParameters"], "MessageGroupId");
  if (!queueArn.test(arn))
    throw validationError(
      `The embedded stack delivers to the ARNs of queues only, not to ${arn.slice(0, 200)}`,
    );
  if (target["InputTransformer"] !== undefined || target["Input"] !== undefined)
    throw validationError(
      "The embedded stack has no Input and no InputTransformer, only InputPath",
    );
  if (path !== undefined && !inputPath.test(path))
    throw validationError(`Invalid InputPath for target ${id.slice(0, 64)}.`);
  const group = typeof messageGroupId === "string" ? messageGroupId : undefined;
  const isGroup = group === undefined || !group.startsWith("$") || inputPath.test(group);
  if (!isGroup || (group?.length ?? 0) > longestGroup)
    throw validationError(`Invalid MessageGroupId for target ${id.slice(0, 64)}.`);
  return { id, arn, messageGroupId: group, inputPath: path };
}

function shownTarget({ id, arn, messageGroupId, inputPath: path }: RuleTarget) {
  return {
    Id: id,
    Arn: arn,
    SqsParameters: messageGroupId && { MessageGroupId: messageGroupId },
    InputPath: path,
  };
}
