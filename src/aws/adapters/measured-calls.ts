import type { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import type { Metrics } from "../../base/metrics/metrics.ts";
import type { LeanRows } from "../light/lean-rows.ts";

type MeasuredClient = Pick<DynamoDBClient, "middlewareStack">;

export function measureCalls(client: MeasuredClient, metrics: Metrics): void {
  client.middlewareStack.add(
    (next, { commandName = "" }) =>
      async (given) => {
        const startMs = performance.now();
        try {
          const output = await next(given);
          note(metrics, operationOf(commandName), startMs);
          return output;
        } catch (error) {
          note(metrics, operationOf(commandName), startMs, error);
          throw error;
        }
      },
    { step: "initialize", priority: "high", name: "keelsonMetrics" },
  );
}

/** Measures reads without the SDK. Reads that the SDK repeats are measured there. */
export function measuredRows(
  rows: Pick<LeanRows, "read"> | undefined,
  metrics: Metrics,
): Pick<LeanRows, "read"> | undefined {
  return (
    rows && {
      read: async (...given) => {
        const startMs = performance.now();
        const items = await rows.read(...given);
        if (items !== undefined) note(metrics, "BatchGetItem", startMs);
        return items;
      },
    }
  );
}

function operationOf(commandName: string): string {
  return commandName.replace(/Command$/, "");
}

function note(
  metrics: Metrics,
  operation: string,
  startMs: number,
  ...failed: readonly unknown[]
): void {
  metrics.record("db.client.operation.duration", (performance.now() - startMs) / 1_000, {
    "db.system.name": "aws.dynamodb",
    "db.operation.name": operation,
    "error.type": failed.length === 0 ? undefined : nameOf(failed[0]),
  });
}

function nameOf(error: unknown): string {
  return error instanceof Error ? error.name : "_OTHER";
}
