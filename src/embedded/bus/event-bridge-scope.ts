import type { Sqs } from "../queues/sqs.ts";
import { detected } from "../service/operation.ts";
import { type Input, ServiceError, textReader } from "../service/service.ts";
import type { EventBus, EventBusStore, Rule } from "./event-bus-store.ts";

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

export function nameOf(nameOrArn: string): string {
  return nameOrArn.slice(nameOrArn.lastIndexOf("/") + 1);
}

export function eventsError(type: string, message: string): ServiceError {
  return new ServiceError(`com.amazonaws.eventbridge#${type}`, message);
}

export const { optionalText, text } = textReader((member, wrong) =>
  detected(
    wrong === undefined
      ? `Value at '${member}' failed to satisfy constraint: Member must not be null`
      : `'${member}' has to be a text`,
  ),
);

export function withPrefix<Named extends { readonly name: string }>(
  all: readonly Named[],
  input: Input,
): readonly Named[] {
  const prefix = optionalText(input, "NamePrefix") ?? "";
  return all.filter(({ name }) => name.startsWith(prefix));
}
