import {
  DescribeEventBusCommand,
  type EventBridgeClient,
  ListRulesCommand,
  type ListRulesResponse,
  ListTargetsByRuleCommand,
} from "@aws-sdk/client-eventbridge";
import type { NeededBus, Needs } from "../../infra/needs.ts";
import {
  after,
  asked,
  type Check,
  check,
  fine,
  unchecked,
  unlessMissing,
  wrong,
} from "./outcome.ts";
import type { Place, PlaceOf } from "./place.ts";
import { type AskedQueue, type FoundQueue, setAttributes } from "./queues.ts";

type Bus = PlaceOf<EventBridgeClient>;

export function busChecks(
  place: Bus,
  needed: NeededBus,
  { queue, place: queues }: { readonly queue: AskedQueue | undefined; readonly place: Place },
): Check[] {
  const bus = askedBus(place, needed.name);
  const isThere = isThereCheck(place, bus);
  if (queue === undefined) return [isThere];
  return [
    isThere,
    check(`${bus.name}: rules`, () =>
      after(bus, () => after(queue, (found) => rulesOutcome(place, needed, found))),
    ),
    policyCheck(queues, queue),
  ];
}

/** Checks the rules for events of others, which may come from several buses. */
export function receivedChecks(
  place: Bus,
  { rules }: NonNullable<Needs["received"]>,
  { queue, place: queues }: { readonly queue: AskedQueue; readonly place: Place },
): Check[] {
  const buses = [...new Set(rules.map(({ bus }) => bus))].map((name) => askedBus(place, name));
  return [
    ...buses.map((bus) => isThereCheck(place, bus)),
    ...rules.map(({ bus: name, source, detailType, ...rule }) => {
      const wanted = { name, source, consumed: [detailType], rule };
      return check(`bus ${name}: ${detailType} of ${source}`, () =>
        after(queue, (found) => rulesOutcome(place, wanted, found)),
      );
    }),
    policyCheck(queues, queue),
  ];
}

function askedBus(place: Bus, of: string) {
  const describe = new DescribeEventBusCommand({ Name: of });
  const find = asked(() => unlessMissing(() => place.send(describe, of)));
  return { name: `bus ${of}`, of, find };
}

function isThereCheck(place: Bus, { name, of, find }: ReturnType<typeof askedBus>) {
  return check(name, async () =>
    (await find())
      ? fine("it is there")
      : wrong("it does not exist", place.aws("create-event-bus", { name: of })),
  );
}

function policyCheck(queues: Place, queue: AskedQueue) {
  return check(`${queue.name}: policy`, () =>
    after(queue, (found) => policyOutcome(queues, found)),
  );
}

type WantedRule = Pick<NeededBus, "name" | "source" | "consumed" | "rule">;

async function rulesOutcome(place: Bus, bus: WantedRule, queue: FoundQueue) {
  const rules = await rulesOf(place, bus.name);
  const targets = await Promise.all(rules.map(({ name }) => targetsOf(place, bus.name, name)));
  const routing = rules.filter((_, index) => targets[index]?.includes(queue.arn));
  const matching = (type: string) =>
    routing.filter(({ pattern }) => routes(pattern, bus.source, type));
  const lost = bus.consumed.filter((type) => !matching(type).some(({ isDisabled }) => !isDisabled));
  if (lost.length === 0)
    return fine(`${routing.map(({ name }) => name).join(", ")} to ${queue.arn}`);
  const says = `nothing brings ${lost.join(", ")} to ${queue.arn}`;
  const there = { "event-bus-name": bus.name };
  const disabled = [...new Set(lost.flatMap(matching).map(({ name }) => name))];
  if (disabled.length > 0) {
    const fixes = disabled.map((name) => place.aws("enable-rule", { ...there, name }));
    return wrong(`${says}: ${disabled.join(", ")} is disabled`, ...fixes);
  }
  const { name, pattern, targetId } = bus.rule;
  const targeted = { ...there, rule: name, targets: `Id=${targetId},Arn=${queue.arn}` };
  return wrong(
    says,
    place.aws("put-rule", { ...there, name, "event-pattern": JSON.stringify(pattern) }),
    place.aws("put-targets", targeted),
  );
}

type Pattern = Readonly<Record<string, unknown>>;

async function rulesOf({ send }: Bus, EventBusName: string) {
  const rules: { name: string; isDisabled: boolean; pattern: Pattern }[] = [];
  let NextToken: string | undefined;
  do {
    const command = new ListRulesCommand({ EventBusName, NextToken });
    const page: ListRulesResponse = await send(command, EventBusName);
    for (const { Name, State, EventPattern } of page.Rules ?? []) {
      if (EventPattern === undefined) continue;
      // Safe cast: EventBridge only accepts objects.
      const pattern = JSON.parse(EventPattern) as Pattern;
      rules.push({ name: String(Name), isDisabled: State === "DISABLED", pattern });
    }
    NextToken = page.NextToken;
  } while (NextToken !== undefined);
  return rules;
}

async function targetsOf({ send }: Bus, EventBusName: string, Rule: string) {
  const { Targets = [] } = await send(new ListTargetsByRuleCommand({ EventBusName, Rule }), Rule);
  return Targets.map(({ Arn }) => Arn);
}

function routes(pattern: Pattern, source: string, type: string) {
  return takes(pattern["source"], source) && takes(pattern["detail-type"], type);
}

/** Assumes that every complex matcher of a pattern (a prefix, a wildcard) matches `text`. */
function takes(member: unknown, text: string) {
  return !Array.isArray(member) || member.some((one) => one === text || typeof one === "object");
}

function policyOutcome(place: Place, { arn, url, attributes }: FoundQueue) {
  const set = (attribute: string, value: string) =>
    setAttributes(place, url, JSON.stringify({ [attribute]: value }));
  const { KmsMasterKeyId: key, Policy: policy } = attributes;
  if (key === "alias/aws/sqs") {
    const message = "it is encrypted with alias/aws/sqs, which EventBridge may not use";
    return wrong(message, set("KmsMasterKeyId", ""), set("SqsManagedSseEnabled", "true"));
  }
  if (policy && allowsEventBridge(policy)) return fine("EventBridge may send into it");
  if (place.isEmulator) return unchecked("an emulator does not check policies");
  const Principal = { Service: "events.amazonaws.com" };
  const Statement = [{ Effect: "Allow", Principal, Action: "sqs:SendMessage", Resource: arn }];
  return wrong(
    "EventBridge may not send into it, so that events are lost",
    set("Policy", JSON.stringify({ Version: "2012-10-17", Statement })),
  );
}

type Texts = string | readonly string[];

interface Statement {
  readonly Effect?: string;
  readonly Principal?: string | Readonly<Record<string, Texts>>;
  readonly Action?: Texts;
}

/** Ignores the statements' conditions. */
function allowsEventBridge(policy: string) {
  // Safe cast: SQS only accepts policies of this shape.
  const { Statement = [] } = JSON.parse(policy) as { Statement?: Statement | Statement[] };
  return [Statement].flat().some(({ Effect, Principal = {}, Action = [] }) => {
    const who = typeof Principal === "string" ? [Principal] : Object.values(Principal).flat();
    return (
      Effect === "Allow" &&
      who.some((one) => /^(?:\*|events\.amazonaws\.com)$/.test(one)) &&
      [Action].flat().some((one) => /^(?:\*|sqs:(?:\*|sendmessage))$/i.test(one))
    );
  });
}
