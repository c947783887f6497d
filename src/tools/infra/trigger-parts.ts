import { outboxTable } from "../../app/handlers/table.ts";
import { type DataPlace, messageIds, tableId } from "./data-parts.ts";
import { functionIds, permissionPart } from "./function-part.ts";
import type { NeededFunction } from "./functions.ts";
import { type Needs, queuesOf } from "./needs.ts";
import { queueParameters } from "./parameters.ts";
import { arnRef, type Members, ref, resource, type Value } from "./template.ts";

export function triggerParts(functions: readonly NeededFunction[], needs: Needs, place: DataPlace) {
  return functions.flatMap(({ name, calledBy }) => {
    if (calledBy === "stream")
      return mapping(name, `Dynamodb${tableId(outboxTable.name)}`, place.streamArn, ofStream);
    if (calledBy === "minute") return minuteParts(name);
    if (calledBy === "requests") return [];
    return [
      queueParameters,
      ...queuesOf(needs).map((queue) =>
        mapping(name, `SQS${messageIds[queue.kind].queue}`, place.queueArn(queue), ofQueue),
      ),
    ];
  });
}

const FunctionResponseTypes = ["ReportBatchItemFailures"];
const ofQueue = {
  BatchSize: 10,
  FunctionResponseTypes,
  ScalingConfig: { MaximumConcurrency: ref("QueueConcurrency") },
};
const ofStream = {
  StartingPosition: "TRIM_HORIZON",
  BatchSize: 100,
  // Within this window, the publishing function has usually dispatched the event.
  MaximumBatchingWindowInSeconds: 5,
  MaximumRetryAttempts: 3, // after that, the sweep dispatches the event
  BisectBatchOnFunctionError: true,
  FunctionResponseTypes,
  FilterCriteria: { Filters: [{ Pattern: JSON.stringify({ eventName: ["INSERT"] }) }] },
};

function mapping(name: string, source: string, arn: Value, properties: Members) {
  const { id, lambda } = functionIds(name);
  return resource(`${id}EventSourceMapping${source}`, "AWS::Lambda::EventSourceMapping", {
    EventSourceArn: arn,
    FunctionName: arnRef(lambda),
    ...properties,
  });
}

function minuteParts(name: string) {
  const { id, lambda } = functionIds(name);
  const rule = "EventsRuleSchedule1";
  return [
    resource(`${id}${rule}`, "AWS::Events::Rule", {
      ScheduleExpression: "rate(1 minute)",
      State: "ENABLED",
      Targets: [{ Id: `${name}Schedule`, Arn: arnRef(lambda) }],
    }),
    permissionPart(name, rule, "events", arnRef(`${id}${rule}`)),
  ];
}
