// Without `for: "tenants"`: a schedule finds out each hour whose time has come, and enqueues a job for each tenant.
import { ScanCommand } from "@aws-sdk/lib-dynamodb";
import { defineFeature } from "keelson";
import * as z from "zod";

const tenant = z.object({
  id: z.string(),
  timeZone: z.string(),
  isActive: z.boolean(),
  createdAt: z.string(),
});

/** Whether it is six o'clock of the first day of a month there. */
function isDue(at: Date, timeZone: string): boolean {
  const format = new Intl.DateTimeFormat("en", {
    ...{ timeZone, day: "numeric", hour: "numeric", minute: "numeric" },
    hourCycle: "h23",
  });
  const parts = Object.fromEntries(
    format.formatToParts(at).map(({ type, value }) => [type, value]),
  );
  return parts["day"] === "1" && Number(parts["hour"]) === 6 && Number(parts["minute"]) === 0;
}

export const createInvoicesFeature = () =>
  defineFeature("invoices", (r) => {
    const tenants = r.table("tenants", { partitionKey: "id", tenant: false });
    const invoices = r.table("invoices", { partitionKey: "dueAt", tenant: true });
    const create = r.job("invoice.create", {
      input: z.object({ dueAt: z.string() }),
      dedupKey: ({ dueAt }) => dueAt,
      handler: async (ctx, { dueAt }) => {
        const Item = { ...invoices.key(ctx, dueAt), state: "open" };
        await ctx.commit([{ Put: { TableName: invoices.name, Item } }], undefined);
      },
    });
    r.schedule("invoice.start", {
      cron: "0,30 * * * *", // some zones are half an hour off
      handler: async (ctx, { at }) => {
        const database = ctx.acrossTenants("invoices of all tenants are due at different hours");
        let ExclusiveStartKey: Record<string, unknown> | undefined;
        do {
          const page = await database.send(
            new ScanCommand({ TableName: tenants.name, ConsistentRead: true, ExclusiveStartKey }),
          );
          for (const item of page.Items ?? []) {
            const { id: tenantId, timeZone, isActive, createdAt } = tenant.parse(item);
            if (!isActive || Date.parse(createdAt) >= at.getTime() || !isDue(at, timeZone))
              continue;
            const job = { dueAt: at.toISOString() };
            await ctx.enqueue(create, job, { tenantId, afterCommit: false });
          }
          ExclusiveStartKey = page.LastEvaluatedKey;
        } while (ExclusiveStartKey !== undefined);
      },
    });
  });
