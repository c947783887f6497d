import type { Sqs } from "../queues/sqs.ts";
import { openJournal } from "../service/journal.ts";
import { byName, detected, type Input, ServiceError, textReader } from "../service/service.ts";
import { type EventPattern, readEventPattern } from "./events.ts";

export interface RuleTarget {
  readonly id: string;
  readonly arn: string;
  readonly messageGroupId?: string | undefined;
  /** For example `$.detail`. Default: the whole event. */
  readonly inputPath?: string | undefined;
}

interface StoredRule extends RuleName {
  readonly pattern: string;
  readonly enabled: boolean;
  readonly description?: string | undefined;
  readonly targets: readonly RuleTarget[];
}

export type RuleName = Readonly<Record<"bus" | "name", string>>;

export interface Rule extends StoredRule {
  readonly fits: EventPattern;
}

export interface EventBus {
  readonly name: string;
  /** Epoch milliseconds. */
  readonly createdAt: number;
  readonly description?: string | undefined;
}

export type EventBusStore = ReturnType<typeof openEventBusStore>;

type JournalEntry = { readonly bus: EventBus } | { readonly rule: StoredRule };

/** The bus `default` always exists. @throws Error if the file is corrupt. */
export function openEventBusStore(path?: string) {
  const journal = openJournal<JournalEntry>(path);
  const buses = new Map<string, EventBus>([["default", { name: "default", createdAt: 0 }]]);
  const rules = new Map<string, Rule>();
  const read = (rule: StoredRule) =>
    rules.set(ruleKey(rule), { ...rule, fits: readEventPattern(rule.pattern) });

  for (const entry of journal.opened) {
    if ("bus" in entry) buses.set(entry.bus.name, entry.bus);
    else read(entry.rule);
  }

  return {
    bus: (name: string) => buses.get(name),
    buses: () => [...buses.values()].sort(byName),
    putBus(bus: EventBus) {
      buses.set(bus.name, bus);
      journal.put(`bus/${bus.name}`, { bus });
    },
    deleteBus(name: string) {
      buses.delete(name);
      journal.delete(`bus/${name}`);
    },
    rule: (bus: string, name: string) => rules.get(ruleKey({ bus, name })),
    rules: (bus: string) => [...rules.values()].filter((rule) => rule.bus === bus).sort(byName),
    putRule({ bus, name, pattern, enabled, description, targets }: StoredRule) {
      const rule = { bus, name, pattern, enabled, description, targets };
      read(rule);
      journal.put(ruleKey(rule), { rule });
    },
    deleteRule(rule: StoredRule) {
      rules.delete(ruleKey(rule));
      journal.delete(ruleKey(rule));
    },
    flush: journal.flush,
    close: journal.close,
  };
}

function ruleKey({ bus, name }: RuleName) {
  return `rule/${bus}/${name}`;
}

export interface EventBridgeScope {
  readonly store: EventBusStore;
  readonly sqs: Pick<Sqs, "call">;
  readonly region: string;
  readonly reportFault: (error: unknown) => void;
}

export function busIn({ store }: EventBridgeScope, input: Input, member: string): EventBus {
  const name = nameOf(optionalText(input, member) ?? "default");
  const bus = store.bus(name);
  if (bus === undefined) throw notFound(`Event bus ${name.slice(0, 256)} does not exist.`);
  return bus;
}

export function ruleIn(scope: EventBridgeScope, input: Input, member: string): Rule {
  const bus = busIn(scope, input, "EventBusName").name;
  const name = text(input, member);
  const rule = scope.store.rule(bus, name);
  if (rule === undefined)
    throw notFound(`Rule ${name.slice(0, 64)} does not exist on EventBus ${bus}.`);
  return rule;
}

function notFound(message: string) {
  return eventsError("ResourceNotFoundException", message);
}

export function nameOf(nameOrArn: string) {
  return nameOrArn.slice(nameOrArn.lastIndexOf("/") + 1);
}

export function eventsError(type: string, message: string) {
  return new ServiceError(`com.amazonaws.eventbridge#${type}`, message);
}

export const { optionalText, text } = textReader((member, wrong) =>
  detected(
    wrong === undefined
      ? `Value at '${member}' failed to satisfy constraint: Member must not be null`
      : `'${member}' must be a string`,
  ),
);

export function withPrefix<Named extends { readonly name: string }>(
  all: readonly Named[],
  input: Input,
): readonly Named[] {
  const prefix = optionalText(input, "NamePrefix") ?? "";
  return all.filter(({ name }) => name.startsWith(prefix));
}
