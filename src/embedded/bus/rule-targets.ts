import { isRecord } from "../../base/errors/option-table.ts";
import { detected, validationError } from "../service/operation.ts";
import type { Input } from "../service/service.ts";
import { type EventBridgeScope, optionalText, ruleIn, text } from "./event-bridge-scope.ts";
import type { RuleTarget } from "./event-bus-store.ts";
import { fieldOf } from "./event-pattern.ts";

const queueArn = /^arn:aws:sqs:[^:]+:[^:]+:[\w-]+(\.fifo)?$/;
const inputPath = /^\$(\.[\w-]+)*$/;

export function listTargets(scope: EventBridgeScope, input: Input): object {
  return { Targets: ruleIn(scope, input, "Rule").targets.map(shownTarget) };
}

export function putTargets(scope: EventBridgeScope, input: Input): object {
  const rule = ruleIn(scope, input, "Rule");
  const given = input["Targets"];
  if (!Array.isArray(given) || given.length === 0) throw detected("'targets' has to be a list");
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

export function removeTargets(scope: EventBridgeScope, input: Input): object {
  const rule = ruleIn(scope, input, "Rule");
  const ids = input["Ids"];
  if (!Array.isArray(ids) || ids.length === 0) throw detected("'ids' has to be a list");
  scope.store.putRule({ ...rule, targets: rule.targets.filter(({ id }) => !ids.includes(id)) });
  return { FailedEntryCount: 0, FailedEntries: [] };
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
  if (target["InputTransformer"] !== undefined || target["Input"] !== undefined) {
    throw validationError(
      "The embedded stack has no Input and no InputTransformer, only InputPath",
    );
  }
  if (path !== undefined && !inputPath.test(path))
    throw validationError(`Invalid InputPath for target ${id.slice(0, 64)}.`);
  return {
    id,
    arn,
    messageGroupId: typeof messageGroupId === "string" ? messageGroupId : undefined,
    inputPath: path,
  };
}

function shownTarget({ id, arn, messageGroupId, inputPath: path }: RuleTarget): object {
  return {
    Id: id,
    Arn: arn,
    SqsParameters: messageGroupId && { MessageGroupId: messageGroupId },
    InputPath: path,
  };
}
