import { outboxTable } from "../../app/handlers/table.ts";
import type { DataPlace } from "./data-place.ts";
import { functionIds } from "./function-part.ts";
import type { NeededFunction } from "./functions.ts";
import { messageIds } from "./message-parts.ts";
import { type NeededQueue, type Needs, queuesOf } from "./needs.ts";
import { queueParameters } from "./parameters.ts";
import { tableId } from "./table-part.ts";
import { attributeOf, ref, type TemplatePart } from "./template.ts";

export function triggerParts(
  functions: readonly NeededFunction[],
  needs: Needs,
  place: DataPlace,
): TemplatePart[] {
  return functions.flatMap(({ name, calledBy }) => {
    switch (calledBy) {
      case "queues":
        return [
          queueParameters,
          ...queuesOf(needs).map((queue) => queueMapping(name, queue, place)),
        ];
      case "stream":
        return [streamMapping(name, place)];
      case "minute":
        return [minuteRule(name)];
      default:
        return []; // the API calls these functions
    }
  });
}

function queueMapping(name: string, queue: NeededQueue, place: DataPlace): TemplatePart {
  const { id, lambda } = functionIds(name);
  return {
    Resources: {
      [`${id}EventSourceMappingSQS${messageIds[queue.kind].queue}`]: {
        Type: "AWS::Lambda::EventSourceMapping",
        Properties: {
          EventSourceArn: place.queueArn(queue),
          FunctionName: attributeOf(lambda, "Arn"),
          BatchSize: 10,
          FunctionResponseTypes: ["ReportBatchItemFailures"],
          ScalingConfig: { MaximumConcurrency: ref("QueueConcurrency") },
        },
      },
    },
  };
}

function streamMapping(name: string, place: DataPlace): TemplatePart {
  const { id, lambda } = functionIds(name);
  return {
    Resources: {
      [`${id}EventSourceMappingDynamodb${tableId(outboxTable.name)}`]: {
        Type: "AWS::Lambda::EventSourceMapping",
        Properties: {
          EventSourceArn: place.streamArn,
          FunctionName: attributeOf(lambda, "Arn"),
          StartingPosition: "TRIM_HORIZON",
          BatchSize: 100,
          // By then, the publishing function has usually dispatched the event.
          MaximumBatchingWindowInSeconds: 5,
          MaximumRetryAttempts: 3, // after that, the sweep dispatches it
          BisectBatchOnFunctionError: true,
          FunctionResponseTypes: ["ReportBatchItemFailures"],
          FilterCriteria: { Filters: [{ Pattern: JSON.stringify({ eventName: ["INSERT"] }) }] },
        },
      },
    },
  };
}

function minuteRule(name: string): TemplatePart {
  const { id, lambda } = functionIds(name);
  const rule = `${id}EventsRuleSchedule1`;
  return {
    Resources: {
      [rule]: {
        Type: "AWS::Events::Rule",
        Properties: {
          ScheduleExpression: "rate(1 minute)",
          State: "ENABLED",
          Targets: [{ Id: `${name}Schedule`, Arn: attributeOf(lambda, "Arn") }],
        },
      },
      [`${id}LambdaPermissionEventsRuleSchedule1`]: {
        Type: "AWS::Lambda::Permission",
        Properties: {
          FunctionName: attributeOf(lambda, "Arn"),
          Action: "lambda:InvokeFunction",
          Principal: "events.amazonaws.com",
          SourceArn: attributeOf(rule, "Arn"),
        },
      },
    },
  };
}
