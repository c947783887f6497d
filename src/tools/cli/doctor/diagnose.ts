import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { EventBridgeClient } from "@aws-sdk/client-eventbridge";
import { SQSClient } from "@aws-sdk/client-sqs";
import type { DeclaredServer } from "../../../app/registry/declared-server.ts";
import { openParameters } from "../../../aws/clients/ssm.ts";
import type { Clock } from "../../../base/process/clock.ts";
import type { Variables } from "../../../base/process/environment.ts";
import { type NeededQueue, needsOf } from "../../infra/needs.ts";
import { inTime } from "../setup/define-command.ts";
import { accountChecks } from "./account.ts";
import { busChecks } from "./bus.ts";
import { outcomeOf } from "./call-error.ts";
import { isolationChecks } from "./isolation.ts";
import { messageChecks } from "./messages.ts";
import type { Check, Outcome } from "./outcome.ts";
import { parameterChecks, ringlessChecks } from "./parameters.ts";
import { placeOf, type ServiceName, withClient } from "./place.ts";
import { askedQueue, queueChecks } from "./queues.ts";
import { tableChecks } from "./tables.ts";

export interface Finding extends Outcome {
  readonly name: string;
}

export interface DiagnosisOptions {
  readonly env: Variables;
  readonly clock: Clock;
  readonly timeoutMs: number;
}

/**
 * Checks everything that a server needs, concurrently and without changes.
 *
 * @throws Error if an endpoint is not a URL.
 */
export async function diagnose(
  server: DeclaredServer,
  { env, clock, timeoutMs }: DiagnosisOptions,
): Promise<Finding[]> {
  const { options } = server;
  const signal = AbortSignal.timeout(timeoutMs);
  const at = (service: ServiceName, endpoint?: string) =>
    placeOf(service, env, { signal, timeoutMs, endpoint });
  const [dynamodb, ssm] = [at("dynamodb", options.dynamodb?.endpoint), at("ssm")];
  const [sqs, events, sts] = [at("sqs"), at("events"), at("sts")];
  const tablesAt = withClient(dynamodb, new DynamoDBClient(dynamodb.options));
  const once = { ...dynamodb.options, maxAttempts: 1 };
  const timed = withClient(dynamodb, new DynamoDBClient(once));
  const queuesAt = withClient(sqs, new SQSClient(sqs.options));
  const busAt = withClient(events, new EventBridgeClient(events.options));
  const limits = { attemptMs: timeoutMs, totalMs: timeoutMs };
  const reader = await openParameters({ ...ssm.options, ...limits });
  try {
    const needs = needsOf(server, { env });
    const { tables, bus } = needs;
    const asked = (queue: NeededQueue | undefined) =>
      queue === undefined ? [] : [askedQueue(queuesAt, queue)];
    const eventQueue = asked(needs.events);
    const checks: Check[] = [
      ...accountChecks(timed, clock, tables[0].tableName),
      ...tables.flatMap((table) => tableChecks(tablesAt, table)),
      ...parameterChecks(ssm, reader, server, needs.parameters),
      ...ringlessChecks(server),
      ...messageChecks(server),
      ...(needs.isIsolated ? isolationChecks(server, env, sts) : []),
      ...[...eventQueue, ...asked(needs.jobs)].flatMap((queue) => queueChecks(queuesAt, queue)),
      ...(bus === undefined ? [] : busChecks(busAt, bus, { queue: eventQueue[0], place: sqs })),
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
