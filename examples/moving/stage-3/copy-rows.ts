import { PutCommand, paginateScan } from "@aws-sdk/lib-dynamodb";
import { orders } from "./orders.ts";
import { server } from "./server.ts";

/**
 * Copies the rows of the former table behind the wall. Run it again whenever you like: it never overwrites a row, and
 * deletes nothing.
 */
export async function copyRows(): Promise<{ readonly copied: number; readonly existing: number }> {
  return server.run({ reason: "copy the former orders" }, async (ctx) => {
    const counts = { copied: 0, existing: 0 };
    const client = ctx.acrossTenants("copy the former orders");
    for await (const { Items = [] } of paginateScan(
      { client },
      { TableName: orders.former.name },
    )) {
      for (const { pk, sk: _, ...order } of Items) {
        const user = { tenantId: String(pk).slice("TENANT#".length) };
        const Item = { ...orders.table.key({ user }, "orders", String(order["id"])), ...order };
        const ConditionExpression = "attribute_not_exists(pk)";
        const put = new PutCommand({ TableName: orders.table.name, Item, ConditionExpression });
        const isNew = await client.send(put).then(
          () => true,
          (error: unknown) => {
            if (Object(error).name !== "ConditionalCheckFailedException") throw error;
            return false;
          },
        );
        counts[isNew ? "copied" : "existing"] += 1;
      }
    }
    return counts;
  });
}

if (import.meta.main) console.log(await copyRows().finally(() => server.close()));
