import {
  DescribeEventBusCommand,
  type EventBridgeClient,
  ListRulesCommand,
  type ListRulesResponse,
  ListTargetsByRuleCommand,
} from "@aws-sdk/client-eventbridge";
import type { NeededBus, Needs } from "../../infra/needs.ts";
import { after, asked, type Check, check, fine, unlessMissing, wrong } from "./outcome.ts";
import type { Place, PlaceOf } from "./place.ts";
import { policyCheck } from "./queue-policy.ts";
import type { AskedQueue, FoundQueue } from "./queues.ts";

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
      after(bus, () => after(queue, (found) => rulesOutcome(place, bus, needed, found))),
    ),
    policyCheck(queues, queue, [{ bus: needed.name, name: needed.rule.name }]),
  ];
}

/** Checks the rules for events of others, which may come from several buses. */
export function receivedChecks(
  place: Bus,
  { rules }: NonNullable<Needs["received"]>,
  { queue, place: queues }: { readonly queue: AskedQueue; readonly place: Place },
): Check[] {
  const byName = Map.groupBy(rules, ({ bus }) => bus);
  const buses = [...byName].map(([name, ofBus]) => ({ bus: askedBus(place, name), ofBus }));
  return [
    ...buses.map(({ bus }) => isThereCheck(place, bus)),
    ...buses.flatMap(({ bus, ofBus }) =>
      ofBus.map(({ source, detailType, ...rule }) => {
        const wanted = { name: bus.of, source, consumed: [detailType], rule };
        return check(`${bus.name}: ${detailType} of ${source}`, () =>
          after(bus, () => after(queue, (found) => rulesOutcome(place, bus, wanted, found))),
        );
      }),
    ),
    policyCheck(queues, queue, rules),
  ];
}

function askedBus(place: Bus, of: string) {
  const describe = new DescribeEventBusCommand({ Name: of });
  const find = asked(() => unlessMissing(() => place.send(describe, of)));
  return { name: `bus ${of}`, of, find, rules: asked(() => rulesOf(place, of)) };
}

type AskedBus = ReturnType<typeof askedBus>;

function isThereCheck(place: Bus, { name, of, find }: AskedBus) {
  return check(name, async () =>
    (await find())
      ? fine("it is there")
      : wrong("it does not exist", place.aws("create-event-bus", { name: of })),
  );
}

type WantedRule = Pick<NeededBus, "name" | "source" | "consumed" | "rule">;

async function rulesOutcome(
  place: Bus,
  { rules: find }: AskedBus,
  bus: WantedRule,
  queue: FoundQueue,
) {
  const isRouting = ({ pattern }: FoundRule) =>
    bus.consumed.some((type) => routes(pattern, bus.source, type));
  // A bus may have hundreds of rules, and EventBridge throttles questions about their targets.
  const rules = (await find()).filter(isRouting);
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

interface FoundRule {
  readonly name: string;
  readonly isDisabled: boolean;
  readonly pattern: Pattern;
}

async function rulesOf({ send }: Bus, EventBusName: string) {
  const rules: FoundRule[] = [];
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
