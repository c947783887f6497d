import { createDatabase } from "../../src/aws/clients/dynamodb.ts";
import * as sdk from "../../src/aws/clients/dynamodb-sdk.ts";
import type { Database } from "../../src/base/types/database.ts";

/** DynamoDB's calls since the last `reset`, and the units that they consumed. */
export interface CountedCalls {
  readonly calls: Record<string, number>;
  units: number;
}

interface Metered {
  readonly ConsumedCapacity?: Capacity | readonly Capacity[];
}

interface Capacity {
  readonly CapacityUnits?: number;
}

/** A client of `endpoint` that counts its calls, and asks DynamoDB for the units of each. */
export function countedDatabase(endpoint: string): {
  readonly database: Database;
  readonly counted: (work: () => Promise<unknown>) => Promise<CountedCalls>;
  /** Waits until no call is in progress, nor about to start. */
  readonly quiet: () => Promise<void>;
} {
  const credentials = { accessKeyId: "x", secretAccessKey: "x" };
  const database = createDatabase(sdk, { endpoint, region: "us-east-1", credentials });
  let count: CountedCalls = { calls: {}, units: 0 };
  let inProgress = 0;
  database.middlewareStack.add(
    (next, { commandName = "" }) =>
      async (given) => {
        const operation = commandName.replace(/Command$/, "");
        count.calls[operation] = (count.calls[operation] ?? 0) + 1;
        const input = { ...given.input, ReturnConsumedCapacity: "TOTAL" };
        inProgress += 1;
        const sent = next({ ...given, input: input as typeof given.input }); // safe: every call takes it
        const answer = await sent.finally(() => {
          inProgress -= 1;
        });
        const { ConsumedCapacity = [] } = answer.output as Metered;
        // DynamoDB charges at least half a unit; dynalite charges nothing for a Query without rows.
        for (const { CapacityUnits = 0 } of [ConsumedCapacity].flat())
          count.units += Math.max(0.5, CapacityUnits);
        return answer;
      },
    { step: "initialize" },
  );
  return {
    database,
    counted: async (work) => {
      const counted: CountedCalls = { calls: {}, units: 0 };
      count = counted;
      await work();
      count = { calls: {}, units: 0 };
      return counted;
    },
    quiet: async () => {
      for (let turns = 0; turns < 5; turns = inProgress > 0 ? 0 : turns + 1)
        await new Promise((done) => setImmediate(done));
    },
  };
}
