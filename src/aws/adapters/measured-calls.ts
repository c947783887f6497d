import type { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import type { Metrics } from "../../base/metrics/metrics.ts";
import type { EarlyRows } from "../light/light-database.ts";
import { NotSentError } from "../stores/table.ts";

export function measureCalls(metrics: Metrics) {
  const note = (operation: string, startMs: number, failure?: string) =>
    metrics.record("db.client.operation.duration", (performance.now() - startMs) / 1_000, {
      "db.system.name": "aws.dynamodb",
      "db.operation.name": operation,
      "error.type": failure,
    });
  return {
    client: ({ middlewareStack }: Pick<DynamoDBClient, "middlewareStack">): void =>
      middlewareStack.add(
        (next, { commandName = "" }) =>
          async (given) => {
            const operation = commandName.replace(/Command$/, "");
            const startMs = performance.now();
            try {
              const output = await next(given);
              note(operation, startMs);
              return output;
            } catch (error) {
              if (!(error instanceof NotSentError)) note(operation, startMs, failureOf(error));
              throw error;
            }
          },
        { step: "initialize", priority: "high", name: "keelsonMetrics" },
      ),
    /** Measures successful calls and failed conditions. The SDK repeats other failed calls, and `client` measures those. */
    rows: (rows: EarlyRows): EarlyRows => ({
      read: async (tableName, call) => {
        const startMs = performance.now();
        const items = await rows.read(tableName, call);
        if (items !== undefined) note(call.operation, startMs);
        return items;
      },
      put: async (input) => {
        const startMs = performance.now();
        try {
          const isPut = await rows.put(input);
          if (isPut) note("PutItem", startMs);
          return isPut;
        } catch (error) {
          note("PutItem", startMs, failureOf(error));
          throw error;
        }
      },
    }),
  };
}

function failureOf(error: unknown): string {
  return error instanceof Error ? error.name : "_OTHER";
}
