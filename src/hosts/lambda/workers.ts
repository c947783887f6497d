import type {
  Context,
  DynamoDBBatchResponse,
  DynamoDBStreamEvent,
  SQSBatchResponse,
  SQSEvent,
} from "aws-lambda";
import type { Server } from "../../app/server/server.ts";
import type { Clock } from "../../base/process/clock.ts";
import type { Swept } from "../../parts/messages/outbox-store.ts";
import { type InvocationModule, type Invoked, marked, prepareLambda } from "../lambda-http/bind.ts";
import type { TimeLeft } from "./dispatch-records.ts";
import type { FiredSchedules } from "./fire-schedules.ts";

type TimedContext = Partial<Pick<Context, "getRemainingTimeInMillis">>;

/** Lambda function for SQS batches. */
export type LambdaQueueHandler = (
  event: SQSEvent,
  context: TimedContext,
) => Promise<SQSBatchResponse>;

/**
 * Creates one Lambda function that consumes events and runs jobs, for all queues. It returns the
 * messages to retry, so the event source mapping needs `ReportBatchItemFailures`. On an ordered
 * queue, it also returns the messages after a failed one in the same group. Set the visibility
 * timeout of the queues to six times the function's timeout: the function does not extend it.
 *
 * @example
 * export const queue = lambdaQueue(server);
 */
export function lambdaQueue(server: Server): LambdaQueueHandler {
  return worker(
    server,
    "queue",
    () => import("./consume-batch.ts"),
    ({ loaded, runtime }, event, context) =>
      loaded.consumeBatch(runtime, event, timeLeft(context, runtime.clock)),
  );
}

/** Lambda function for DynamoDB stream batches. */
export type LambdaOutboxHandler = (
  event: DynamoDBStreamEvent,
  context: TimedContext,
) => Promise<DynamoDBBatchResponse>;

/**
 * Creates a Lambda function for the stream of the outbox table. It dispatches events that were
 * committed but not dispatched, because the function ended or the event bus failed. Usually no row
 * is left, which costs one read per shard. The function returns the first record that failed, so
 * the event source mapping needs `ReportBatchItemFailures`. The stream view type `KEYS_ONLY` is
 * enough. {@link lambdaSweep} dispatches rows that the stream no longer retries.
 *
 * @example
 * export const stream = lambdaOutbox(server);
 */
export function lambdaOutbox(server: Server): LambdaOutboxHandler {
  return worker(
    server,
    "stream",
    () => import("./dispatch-records.ts"),
    ({ loaded, runtime }, event, context) =>
      loaded.dispatchRecords(runtime, event, timeLeft(context, runtime.clock)),
  );
}

/**
 * Creates a Lambda function for a schedule, such as `rate(1 minute)`. It dispatches events that
 * were committed to the outbox but not dispatched, because the function ended or the event bus
 * failed. It also sends jobs and deliveries that are due, and those that were not sent after their
 * commit: {@link lambdaOutbox} does not send them. It starts no work in the last 10 s before the
 * function's timeout, and returns how many rows were sent, set aside and, at least, left.
 *
 * @example
 * export const sweep = lambdaSweep(server);
 */
export function lambdaSweep(
  server: Server,
): (event?: unknown, context?: TimedContext) => Promise<Swept> {
  return worker(
    server,
    "sweep",
    () => import("./sweep-in-time.ts"),
    ({ loaded, runtime }, _event, context) =>
      loaded.sweepInTime(runtime, timeLeft(context, runtime.clock)),
  );
}

/** Lambda function that runs due schedules. */
export type LambdaScheduleHandler = (
  event?: unknown,
  context?: TimedContext,
) => Promise<FiredSchedules>;

/**
 * Creates a Lambda function for a rule that invokes it every minute, `rate(1 minute)`. It runs the
 * server's due schedules and returns how many ran and failed. Each scheduled run happens once,
 * regardless of the number of processes and invocations. A later invocation retries failed runs.
 *
 * @example
 * export const schedule = lambdaSchedule(server);
 */
export function lambdaSchedule(server: Server): LambdaScheduleHandler {
  return worker(
    server,
    "schedule",
    () => import("./fire-schedules.ts"),
    ({ loaded, runtime }, _event, context) =>
      loaded.fireSchedules(runtime, timeLeft(context, runtime.clock)),
  );
}

/** Time before the function's timeout in which no work starts, in milliseconds. */
const marginMs = 1_000;

function timeLeft(context: TimedContext | undefined, clock: Clock): TimeLeft {
  const leftMs = () => context?.getRemainingTimeInMillis?.() ?? Number.POSITIVE_INFINITY;
  const deadlineMs = clock.now() + leftMs();
  return {
    deadlineMs: Number.isFinite(deadlineMs) ? deadlineMs : undefined,
    isOverIn: (ms) => leftMs() < ms + marginMs,
  };
}

function worker<Loaded extends InvocationModule, Given extends readonly unknown[], Result>(
  server: Server,
  kind: string,
  load: () => Promise<Loaded>,
  work: (invoked: Invoked<Loaded>, ...given: Given) => Promise<Result>,
): (...given: Given) => Promise<Result> {
  const opening = prepareLambda(server, load);
  const invoke = async (...given: Given) => {
    const invoked = opening.value ?? (await opening.open());
    const { log, metrics } = invoked.runtime;
    if (log.isSampling) log.refreshSampling();
    const done = work(invoked, ...given);
    // Metrics are flushed before the invocation ends, because Lambda may then freeze the process.
    return metrics === undefined ? done : done.finally(metrics.flush);
  };
  return marked(invoke, { kind });
}
