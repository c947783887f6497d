import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { EventBridgeClient } from "@aws-sdk/client-eventbridge";
import { SQSClient } from "@aws-sdk/client-sqs";
import type { DeclaredServer } from "../../../app/registry/declared-server.ts";
import { openParameters } from "../../../aws/clients/ssm.ts";
import type { Clock } from "../../../base/process/clock.ts";
import type { Variables } from "../../../base/process/environment.ts";
import { type NeededQueue, needsOf, queuesOf } from "../../infra/needs.ts";
import { inTime } from "../setup/define-command.ts";
import { accountChecks } from "./account.ts";
import { busChecks, receivedChecks } from "./bus.ts";
import { type Check, type Outcome, outcomeOf } from "./outcome.ts";
import { parameterChecks, ringlessChecks } from "./parameters.ts";
import { placeOf, type ServiceName, withClient } from "./place.ts";
import { isolationChecks, messageChecks } from "./protection.ts";
import { type AskedQueue, askedQueue, fairCheck, queueChecks } from "./queues.ts";
import { tableChecks } from "./tables.ts";

export interface Finding extends Outcome {
  readonly name: string;
}

/**
 * Checks everything that a server needs, concurrently and without changes.
 *
 * @throws Error if an endpoint is not a URL.
 */
export async function diagnose(
  server: DeclaredServer,
  given: { readonly env: Variables; readonly clock: Clock; readonly timeoutMs: number },
): Promise<Finding[]> {
  const { env, clock, timeoutMs } = given;
  const { options } = server;
  const signal = AbortSignal.timeout(timeoutMs);
  const at = (service: ServiceName, endpoint?: string) =>
    placeOf(service, env, { signal, timeoutMs, endpoint });
  const [dynamodb, ssm] = [at("dynamodb", options.dynamodb?.endpoint), at("ssm")];
  const [sqs, eventBridge, sts] = [at("sqs"), at("events"), at("sts")];
  const tablesAt = withClient(dynamodb, new DynamoDBClient(dynamodb.options));
  const timed = withClient(dynamodb, new DynamoDBClient({ ...dynamodb.options, maxAttempts: 1 }));
  const queuesAt = withClient(sqs, new SQSClient(sqs.options));
  const busAt = withClient(eventBridge, new EventBridgeClient(eventBridge.options));
  const reader = await openParameters({
    ...ssm.options,
    ...{ attemptMs: timeoutMs, totalMs: timeoutMs },
  });
  try {
    // Like a server on an emulator, which does not run together with an older version.
    const needs = needsOf(server, { env, fair: sqs.isEmulator ? "send" : "off" });
    const { tables, bus, received, parameters, isIsolated } = needs;
    const queues = queuesOf(needs).map((queue) => askedQueue(queuesAt, queue));
    const queueOf = (kind: NeededQueue["kind"]) =>
      queues.find(({ wanted }) => wanted.kind === kind);
    const checks: Check[] = [
      ...accountChecks(timed, clock, tables[0].tableName),
      ...tables.flatMap((table) => tableChecks(tablesAt, table)),
      ...parameterChecks(ssm, reader, server, parameters),
      ...ringlessChecks(server),
      ...messageChecks(server),
      ...(isIsolated ? isolationChecks(server, env, sts) : []),
      ...queues.flatMap((queue) => queueChecks(queuesAt, queue)),
      ...(needs.fair === undefined ? [] : [fairCheck(queuesAt, needs.fair)]),
      ...(bus === undefined ? [] : busChecks(busAt, bus, { queue: queueOf("events"), place: sqs })),
      ...(received === undefined
        ? []
        : receivedChecks(busAt, received, {
            // Safe cast: the queue is one of `queuesOf`.
            queue: queueOf("received") as AskedQueue,
            place: sqs,
          })),
    ];
    return await Promise.all(checks.map((check) => carriedOut(check, timeoutMs)));
  } finally {
    reader.close();
    for (const { client } of [tablesAt, timed, queuesAt, busAt]) client.destroy();
  }
}

async function carriedOut({ name, run }: Check, timeoutMs: number): Promise<Finding> {
  const late = `no answer within ${timeoutMs} ms`;
  try {
    // The extra 500 ms let an aborted call report its own error first.
    return { name, ...(await inTime(run(), timeoutMs + 500, late)) };
  } catch (error) {
    return { name, ...outcomeOf(error) };
  }
}
