import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { EventBridgeClient } from "@aws-sdk/client-eventbridge";
import { SQSClient } from "@aws-sdk/client-sqs";
import { messagingNames } from "../../aws/messaging.ts";
import { openParameters } from "../../aws/ssm.ts";
import type { DeclaredServer } from "../../declare/declared-server.ts";
import { usesMessages } from "../../declare/registry.ts";
import { configTable, onceTable, outboxTable, physicalTableName } from "../../declare/table.ts";
import type { Clock } from "../../process/clock.ts";
import type { Variables } from "../../process/environment.ts";
import { accountChecks } from "./account.ts";
import { busChecks } from "./bus.ts";
import { outcomeOf } from "./call-error.ts";
import { messageChecks } from "./messages.ts";
import type { Check, Outcome } from "./outcome.ts";
import { parameterChecks, ringlessChecks } from "./parameters.ts";
import { placeOf, type ServiceName } from "./place.ts";
import { askedQueue, queueChecks, type WantedQueue } from "./queues.ts";
import { tableChecks } from "./tables.ts";

/** What came of one check. */
export interface Finding extends Outcome {
  readonly name: string;
}

/** How a server is looked at. */
export interface DiagnosisOptions {
  readonly env: Variables;
  readonly clock: Clock;
  /** How long a check may take, in milliseconds. */
  readonly timeoutMs: number;
}

/**
 * Looks at everything that a server needs from outside, all at once, and changes nothing. What cannot be asked is a finding.
 *
 * @throws Error where an endpoint is no URL.
 */
export async function diagnose(server: DeclaredServer, { env, clock, timeoutMs }: DiagnosisOptions): Promise<Finding[]> {
  const { options, registry } = server;
  const prefix = options.dynamodb?.prefix ?? "keelson";
  const signal = AbortSignal.timeout(timeoutMs);
  const at = (service: ServiceName, endpoint?: string) => placeOf(service, env, { signal, timeoutMs, endpoint });
  const places = { dynamodb: at("dynamodb", options.dynamodb?.endpoint), ssm: at("ssm"), sqs: at("sqs"), events: at("events") };
  const dynamodb = new DynamoDBClient(places.dynamodb.options);
  const timing = new DynamoDBClient({ ...places.dynamodb.options, maxAttempts: 1 });
  const sqs = new SQSClient(places.sqs.options);
  const eventBridge = new EventBridgeClient(places.events.options);
  const reader = await openParameters({ ...places.ssm.options, attemptMs: timeoutMs, totalMs: timeoutMs });
  try {
    const tables = [
      ...[configTable, onceTable, ...(registry.events.size > 0 ? [outboxTable] : [])],
      ...registry.tables.values(),
    ].map((table) => ({ ...table, tableName: physicalTableName(table.name, prefix, env) }));
    const names = messagingNames(prefix, env);
    const events: WantedQueue = { name: names.events, isOrdered: false, variable: "KEELSON_EVENT_QUEUE" };
    const jobs: WantedQueue = { name: names.jobs, isOrdered: true, variable: "KEELSON_JOB_QUEUE" };
    const eventQueue = askedQueue(sqs, places.sqs, events);
    const consumed = [...new Set([...registry.consumers.values()].map(({ type }) => type))];
    const checks: Check[] = [
      ...accountChecks(timing, places.dynamodb, clock, physicalTableName(configTable.name, prefix, env)),
      ...tables.flatMap((table) => tableChecks(dynamodb, places.dynamodb, table)),
      ...parameterChecks(reader, places.ssm, server),
      ...ringlessChecks(server),
      ...messageChecks(server),
      ...(consumed.length > 0 ? queueChecks(sqs, places.sqs, events, eventQueue) : []),
      ...(usesMessages(registry) ? queueChecks(sqs, places.sqs, jobs, askedQueue(sqs, places.sqs, jobs)) : []),
      ...(registry.events.size > 0
        ? busChecks(
            eventBridge,
            places.events,
            { name: names.bus, source: names.source, consumed },
            { queue: eventQueue, place: places.sqs },
          )
        : []),
    ];
    return await Promise.all(checks.map((check) => carriedOut(check, timeoutMs)));
  } finally {
    reader.close();
    for (const client of [dynamodb, timing, sqs, eventBridge]) client.destroy();
  }
}

/** Some of what the SDK waits for knows no signal: nothing takes longer than it may. */
async function carriedOut({ name, run }: Check, timeoutMs: number): Promise<Finding> {
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<never>((_resolve, reject) => {
    // What was asked has its own moment to say why.
    timer = setTimeout(() => reject(new Error(`no answer within ${timeoutMs} ms`)), timeoutMs + 500);
  });
  try {
    return { name, ...(await Promise.race([run(), timeout])) };
  } catch (error) {
    return { name, ...outcomeOf(error) };
  } finally {
    clearTimeout(timer);
  }
}
