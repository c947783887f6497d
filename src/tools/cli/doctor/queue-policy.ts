import { after, type Check, check, doubtful, fine, unchecked, wrong } from "./outcome.ts";
import type { Place } from "./place.ts";
import { type AskedQueue, type FoundQueue, setAttributes } from "./queues.ts";

/** A rule that sends events into a queue. */
export interface SendingRule {
  readonly bus: string;
  readonly name: string;
}

/** Checks that EventBridge may send into a queue, and only for rules that the policy names. */
export function policyCheck(place: Place, queue: AskedQueue, rules: readonly SendingRule[]): Check {
  return check(`${queue.name}: policy`, () =>
    after(queue, (found) => policyOutcome(place, found, rules)),
  );
}

function policyOutcome(place: Place, queue: FoundQueue, rules: readonly SendingRule[]) {
  const set = (attribute: string, value: string) =>
    setAttributes(place, queue.url, JSON.stringify({ [attribute]: value }));
  const { KmsMasterKeyId: key, Policy: policy } = queue.attributes;
  if (key === "alias/aws/sqs") {
    const message = "it is encrypted with alias/aws/sqs, which EventBridge may not use";
    return wrong(message, set("KmsMasterKeyId", ""), set("SqsManagedSseEnabled", "true"));
  }
  const allowing = policy ? statementsForEventBridge(policy) : [];
  const fix = () => set("Policy", JSON.stringify(policyOf(queue.arn, rules)));
  if (allowing.length === 0)
    return place.isEmulator
      ? unchecked("an emulator does not check policies")
      : wrong("EventBridge may not send into it, so that events are lost", fix());
  if (allowing.every(namesSource)) return fine("EventBridge may send into it");
  return doubtful(
    "a rule of any AWS account may send into it, so that events can be forged",
    fix(),
  );
}

/** Has the statements of the policy that `keelson infra` makes. */
function policyOf(arn: string, rules: readonly SendingRule[]) {
  const allow = {
    Effect: "Allow",
    Principal: { Service: "events.amazonaws.com" },
    Action: "sqs:SendMessage",
    Resource: arn,
    Condition: { ArnEquals: { "aws:SourceArn": rules.map((rule) => ruleArn(arn, rule)) } },
  };
  const deny = {
    Effect: "Deny",
    Principal: "*",
    Action: "sqs:*",
    Resource: arn,
    Condition: { Bool: { "aws:SecureTransport": "false" } },
  };
  return { Version: "2012-10-17", Statement: [allow, deny] };
}

/** The rules are in the account and the Region of the queue. */
function ruleArn(queueArn: string, { bus, name }: SendingRule) {
  const [arn, partition, , region, account] = queueArn.split(":");
  const path = bus === "default" ? name : `${bus}/${name}`;
  return [arn, partition, "events", region, account, `rule/${path}`].join(":");
}

type Texts = string | readonly string[];

interface Statement {
  readonly Effect?: string;
  readonly Principal?: string | Readonly<Record<string, Texts>>;
  readonly Action?: Texts;
  readonly Condition?: Readonly<Record<string, object>>;
}

function statementsForEventBridge(policy: string): readonly Statement[] {
  // Safe cast: SQS only accepts policies of this shape.
  const { Statement = [] } = JSON.parse(policy) as { Statement?: Statement | Statement[] };
  return [Statement].flat().filter(({ Effect, Principal = {}, Action = [] }) => {
    const who = typeof Principal === "string" ? [Principal] : Object.values(Principal).flat();
    return (
      Effect === "Allow" &&
      who.some((one) => /^(?:\*|events\.amazonaws\.com)$/.test(one)) &&
      [Action].flat().some((one) => /^(?:\*|sqs:(?:\*|sendmessage))$/i.test(one))
    );
  });
}

/** Whether the statement names rules or their account. Ignores which ones, and other conditions. */
function namesSource({ Condition = {} }: Statement): boolean {
  return Object.values(Condition)
    .flatMap((values) => Object.keys(values))
    .some((key) => /^aws:source(?:arn|account)$/i.test(key));
}
