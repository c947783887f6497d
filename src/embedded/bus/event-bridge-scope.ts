import type { Sqs } from "../queues/sqs.ts";
import { embeddedAccount } from "../queues/sqs-scope.ts";
import { validationError } from "../service/operation.ts";
import { ServiceError } from "../service/service.ts";
import type { EventBus, EventBusStore, Rule } from "./event-bus-store.ts";

/** What a caller sends. */
export type Input = Readonly<Record<string, unknown>>;

/** What the operations of EventBridge work on. */
export interface EventBridgeScope {
  readonly store: EventBusStore;
  readonly sqs: Pick<Sqs, "call">;
  readonly region: string;
  readonly reportFault: (error: unknown) => void;
}

/** The bus that an input names, the default one where it names none. */
export function busIn({ store }: EventBridgeScope, input: Input, member: string): EventBus {
  const name = nameOf(optionalText(input, member) ?? "default");
  const bus = store.bus(name);
  if (bus === undefined)
    throw eventsError(
      "ResourceNotFoundException",
      `Event bus ${name.slice(0, 256)} does not exist.`,
    );
  return bus;
}

/** The rule that an input names. */
export function ruleIn(scope: EventBridgeScope, input: Input, member: string): Rule {
  const bus = busIn(scope, input, "EventBusName").name;
  const name = text(input, member);
  const rule = scope.store.rule(bus, name);
  if (rule === undefined) {
    throw eventsError(
      "ResourceNotFoundException",
      `Rule ${name.slice(0, 64)} does not exist on EventBus ${bus}.`,
    );
  }
  return rule;
}

/** A bus may be named by its ARN. */
export function nameOf(nameOrArn: string): string {
  return nameOrArn.slice(nameOrArn.lastIndexOf("/") + 1);
}

/** The ARN of a bus. */
export function busArn({ region }: EventBridgeScope, name: string): string {
  return `arn:aws:events:${region}:${embeddedAccount}:event-bus/${name}`;
}

/** The ARN of a rule. */
export function ruleArn(
  { region }: EventBridgeScope,
  { bus, name }: Pick<Rule, "bus" | "name">,
): string {
  return `arn:aws:events:${region}:${embeddedAccount}:rule/${bus === "default" ? "" : `${bus}/`}${name}`;
}

/** An error of EventBridge. */
export function eventsError(type: string, message: string): ServiceError {
  return new ServiceError(`com.amazonaws.eventbridge#${type}`, message);
}

/** A text that an input may have. */
export function optionalText(input: Input, member: string): string | undefined {
  const value = input[member] ?? undefined;
  if (value !== undefined && typeof value !== "string")
    throw validationError(`1 validation error detected: '${member}' has to be a text`);
  return value;
}

/** A text that an input has to have. */
export function text(input: Input, member: string): string {
  const value = optionalText(input, member);
  if (value === undefined || value === "") {
    throw validationError(
      `1 validation error detected: Value at '${member}' failed to satisfy constraint: Member must not be null`,
    );
  }
  return value;
}
