import { GetCommand } from "@aws-sdk/lib-dynamodb";
import { expect, test, vi } from "vitest";
import { crashEverywhere } from "../../tools/testing/index.ts";
import { defineFeature } from "../features/feature.ts";
import { buildServer } from "../server/server.ts";

/** Makes pages of two tenants, so that five are three pages. */
vi.mock("../../aws/stores/tenant-store.ts", async (importOriginal) => {
  const original = await importOriginal<typeof import("../../aws/stores/tenant-store.ts")>();
  const dynamoTenants: typeof original.dynamoTenants = (...given) => {
    const store = original.dynamoTenants(...given);
    return { ...store, page: (_limit, ...rest) => store.page(2, ...rest) };
  };
  return { ...original, dynamoTenants };
});

const ids = ["a", "b", "c", "d", "e"];

test("each tenant's commit happens once, wherever the process crashes", async () => {
  const server = buildServer({
    tenants: true,
    features: [
      defineFeature("invoices", (r) => {
        const table = r.table("sent", { partitionKey: "pk", tenant: false });
        r.schedule("invoice.send", {
          ...{ cron: "0 3 * * *", for: "tenants" },
          handler: (ctx) =>
            ctx.commit(
              [
                {
                  Update: {
                    TableName: table.name,
                    Key: { pk: String(ctx.user.tenantId) },
                    UpdateExpression: "ADD amount :one",
                    ExpressionAttributeValues: { ":one": 1 },
                  },
                },
              ],
              undefined,
            ),
        });
      }),
    ],
  });
  const cuts = await crashEverywhere(server, {
    arrange: async (app) => {
      const night = new Date(app.clock.now() + 86_400_000);
      night.setUTCHours(2, 59, 0, 0);
      app.clock.advance(night.getTime() - app.clock.now());
      await app.settled();
      for (const id of ids) await server.tenants.create({ id });
      app.clock.advance(60_000);
    },
    act: (app) => app.settled(),
    check: async (app) => {
      for (const id of ids) {
        const { db } = await app.ctx({ id: "ann", tenantId: id });
        const name = app.env["KEELSON_TABLE_SENT"] ?? "keelson-sent";
        const { Item } = await db.send(
          new GetCommand({ TableName: name, Key: { pk: id }, ConsistentRead: true }),
        );
        expect(Item).toEqual({ pk: id, amount: 1 });
      }
    },
  });
  const calls = (operation: string) => cuts.filter((cut) => cut.operation === operation).length / 2;
  expect(calls("SendMessage")).toBe(ids.length);
  expect(calls("TransactWriteItems")).toBe(1 + ids.length);
});
