import type { Sqs } from "../queues/sqs.ts";
import { embeddedAccount } from "../queues/sqs-scope.ts";
import { detected } from "../service/operation.ts";
import { type Input, ServiceError } from "../service/service.ts";
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

function notFound(message: string): ServiceError {
  return eventsError("ResourceNotFoundException", message);
}

export function nameOf(nameOrArn: string): string {
  return nameOrArn.slice(nameOrArn.lastIndexOf("/") + 1);
}

export function busArn({ region }: EventBridgeScope, name: string): string {
  return `arn:aws:events:${region}:${embeddedAccount}:event-bus/${name}`;
}

export function ruleArn(
  { region }: EventBridgeScope,
  { bus, name }: Pick<Rule, "bus" | "name">,
): string {
  return `arn:aws:events:${region}:${embeddedAccount}:rule/${bus === "default" ? "" : `${bus}/`}${name}`;
}

export function eventsError(type: string, message: string): ServiceError {
  return new ServiceError(`com.amazonaws.eventbridge#${type}`, message);
}

export function optionalText(input: Input, member: string): string | undefined {
  const value = input[member] ?? undefined;
  if (value !== undefined && typeof value !== "string")
    throw detected(`'${member}' has to be a text`);
  return value;
}

export function text(input: Input, member: string): string {
  const value = optionalText(input, member);
  if (value === undefined || value === "") {
    throw detected(`Value at '${member}' failed to satisfy constraint: Member must not be null`);
  }
  return value;
}
