import type { Database } from "../../base/types/database.ts";
import { type EqualJobStore, markKeptMs, mergeMs } from "../../parts/messages/equal-jobs.ts";
import { marshalled } from "./claim-store.ts";
import { tableOf } from "./table.ts";

const mayMark = "attribute_not_exists(pk) OR jobId = :job OR enqueuedMs <= :before";

/** Rows in the table of claims. TTL deletes them late, so the condition compares the times. */
export function dynamoEqualJobs(database: Database, tableName: string): EqualJobStore {
  const table = tableOf(database, tableName);
  return {
    mark: async ({ partition: pk, sort: sk, tenantId }, { jobId, enqueuedMs }) => {
      const expiration = Math.ceil((enqueuedMs + markKeptMs) / 1000);
      const item = marshalled({ pk, sk, tenantId, jobId, enqueuedMs, expiration });
      const condition = {
        ConditionExpression: mayMark,
        ExpressionAttributeValues: marshalled({ ":job": jobId, ":before": enqueuedMs - mergeMs }),
      };
      for (;;) {
        if (await table.put(item, condition)) return undefined;
        const found = await table.get({ pk, sk });
        // A mark that TTL has deleted since leaves the place free.
        if (found !== undefined)
          return { jobId: String(found["jobId"]), enqueuedMs: Number(found["enqueuedMs"]) };
      }
    },
    unmark: async ({ partition: pk, sort: sk }, jobId) => {
      await table.remove(marshalled({ pk, sk }), {
        ConditionExpression: "jobId = :job",
        ExpressionAttributeValues: marshalled({ ":job": jobId }),
      });
    },
  };
}
