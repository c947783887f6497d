import { expect, test } from "vitest";
import { z } from "zod";
import { access, buildServer, defineFeature } from "../../src/index.ts";
import { crashEverywhere } from "../../src/tools/testing/index.ts";

declare module "../../src/base/types/names.ts" {
  interface Events {
    "leaf.written": { n: number };
  }
}

const book = defineFeature("book", (r) => {
  const table = r.table("leaves", { partitionKey: "pk", tenant: false });
  r.event("leaf.written", z.object({ n: z.number() }), { keep: true });
  r.write("leaf.write", {
    route: "POST /leaves",
    access: access.tenant,
    input: z.object({ n: z.number() }),
    handler: async (ctx, { n }) => {
      await ctx.publish("leaf.written", { n });
      return ctx.commit([{ Put: { TableName: table.name, Item: { pk: String(n) } } }], { n });
    },
  });
});
const ann = { id: "ann", tenantId: "acme" };

test("wherever the process crashes, an event is both published and kept, or neither", async () => {
  const cuts = await crashEverywhere(buildServer({ features: [book] }), {
    act: (cut) =>
      cut.fetch("/leaves", { body: { n: 7 }, as: ann, headers: { "idempotency-key": "k" } }),
    check: async (cut, answer) => {
      expect((answer as Response).status).toBe(200);
      await cut.settled();
      const ctx = await cut.ctx(ann);
      const kept: string[] = [];
      for await (const { eventId } of ctx.events("leaf.written")) kept.push(eventId);
      expect(kept).toEqual(
        cut.events.filter(({ type }) => type === "leaf.written").map(({ eventId }) => eventId),
      );
      expect(kept).toHaveLength(1);
    },
  });
  expect(cuts.length).toBeGreaterThan(6);
});
