import { isRecord } from "../../base/errors/option-table.ts";
import { detected, validationError } from "../service/operation.ts";
import type { Input, Operations } from "../service/service.ts";
import { type EventBridgeScope, optionalText, ruleIn, text } from "./event-bridge-scope.ts";
import type { RuleTarget } from "./event-bus-store.ts";
import { fieldOf } from "./event-pattern.ts";

const queueArn = /^arn:aws:sqs:[^:]+:[^:]+:[\w-]+(\.fifo)?$/;
const inputPath = /^\$(\.[\w-]+)*$/;

export const targetOperations: Operations<EventBridgeScope> = {
  ListTargetsByRule: (scope, input) => ({
    Targets: ruleIn(scope, input, "Rule").targets.map(shownTarget),
  }),
  PutTargets(scope, input) {
    const rule = ruleIn(scope, input, "Rule");
    const targets = new Map(rule.targets.map((target) => [target.id, target]));
    const FailedEntries: object[] = [];
    for (const target of listIn(input, "Targets").map(readTarget)) {
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
  },
  RemoveTargets(scope, input) {
    const rule = ruleIn(scope, input, "Rule");
    const ids = listIn(input, "Ids");
    scope.store.putRule({ ...rule, targets: rule.targets.filter(({ id }) => !ids.includes(id)) });
    return { FailedEntryCount: 0, FailedEntries: [] };
  },
};

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
  return {
    id,
    arn,
    messageGroupId: typeof messageGroupId === "string" ? messageGroupId : undefined,
    inputPath: path,
  };
}

function shownTarget({ id, arn, messageGroupId, inputPath: path }: RuleTarget) {
  return {
    Id: id,
    Arn: arn,
    SqsParameters: messageGroupId && { MessageGroupId: messageGroupId },
    InputPath: path,
  };
}
