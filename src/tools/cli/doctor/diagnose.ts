import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { EventBridgeClient } from "@aws-sdk/client-eventbridge";
import { SQSClient } from "@aws-sdk/client-sqs";
import type { DeclaredServer } from "../../../app/registry/declared-server.ts";
import { openParameters } from "../../../aws/clients/ssm.ts";
import type { Clock } from "../../../base/process/clock.ts";
import type { Variables } from "../../../base/process/environment.ts";
import { type NeededQueue, needsOf } from "../../infra/needs.ts";
import { accountChecks } from "./account.ts";
import { busChecks } from "./bus.ts";
import { outcomeOf } from "./call-error.ts";
import { isolationChecks } from "./isolation.ts";
import { messageChecks } from "./messages.ts";
import type { Check, Outcome } from "./outcome.ts";
import { parameterChecks, ringlessChecks } from "./parameters.ts";
import { placeOf, type ServiceName } from "./place.ts";
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
 * Checks everything that a server needs from outside, concurrently and without changing anything.
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
  const places = {
    dynamodb: at("dynamodb", options.dynamodb?.endpoint),
    ssm: at("ssm"),
    sqs: at("sqs"),
    events: at("events"),
    sts: at("sts"),
  };
  const dynamodb = new DynamoDBClient(places.dynamodb.options);
  const timing = new DynamoDBClient({ ...places.dynamodb.options, maxAttempts: 1 });
  const sqs = new SQSClient(places.sqs.options);
  const eventBridge = new EventBridgeClient(places.events.options);
  const reader = await openParameters({
    ...places.ssm.options,
    attemptMs: timeoutMs,
    totalMs: timeoutMs,
  });
  try {
    const { tables, events, jobs, bus, parameters, isIsolated } = needsOf(server, { env });
    const asked = (queue: NeededQueue | undefined) =>
      queue === undefined ? [] : [askedQueue(sqs, places.sqs, queue)];
    const eventQueue = asked(events);
    const checks: Check[] = [
      ...accountChecks(timing, places.dynamodb, clock, tables[0].tableName),
      ...tables.flatMap((table) => tableChecks(dynamodb, places.dynamodb, table)),
      ...parameterChecks(reader, places.ssm, server, parameters),
      ...ringlessChecks(server),
      ...messageChecks(server),
      ...(isIsolated ? isolationChecks(server, env, places.sts) : []),
      ...[...eventQueue, ...asked(jobs)].flatMap((queue) => queueChecks(sqs, places.sqs, queue)),
      ...(bus === undefined
        ? []
        : busChecks(eventBridge, places.events, bus, { queue: eventQueue[0], place: places.sqs })),
    ];
    return await Promise.all(checks.map((check) => carriedOut(check, timeoutMs)));
  } finally {
    reader.close();
    for (const client of [dynamodb, timing, sqs, eventBridge]) client.destroy();
  }
}

/** With its own timeout, because some of the SDK's waiting ignores the abort signal. */
async function carriedOut({ name, run }: Check, timeoutMs: number): Promise<Finding> {
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<never>((_resolve, reject) => {
    // The extra 500 ms let an aborted call report its own error first.
    timer = setTimeout(
      () => reject(new Error(`no answer within ${timeoutMs} ms`)),
      timeoutMs + 500,
    );
  });
  try {
    return { name, ...(await Promise.race([run(), timeout])) };
  } catch (error) {
    return { name, ...outcomeOf(error) };
  } finally {
    clearTimeout(timer);
  }
}
