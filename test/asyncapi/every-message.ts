import * as z from "zod";
import { buildServer, defineFeature } from "../../src/index.ts";

const node = z.object({
  name: z.string().min(1),
  get children() {
    return z.array(node).meta({ description: "Below it." });
  },
});
const paid = z.discriminatedUnion("by", [
  z.strictObject({ by: z.literal("card"), cents: z.int().positive() }),
  z.object({ by: z.literal("bill"), to: z.email() }),
]);
const handler = async () => {};

/** Messages of each kind, with schemas of each kind. */
const shop = defineFeature("shop", (r) => {
  r.event(
    "item.sold",
    z.object({
      id: z.uuid(),
      at: z.iso.datetime(),
      note: z.string().nullable().optional(),
    }) as never,
  );
  r.event("item.paid", paid as never, { keepDays: 30 });
  r.event(
    "item.sorted",
    z.union([
      z.strictObject({ tree: node }),
      z.object({ pair: z.tuple([z.string(), z.number()]) }),
    ]) as never,
    {
      keep: true,
    },
  );
  r.on("item.sold" as never, { name: "pack", handler });
  r.on("item.paid" as never, { name: "thank", handler });
  r.job("item.ship", {
    input: z.object({ id: z.string(), tags: z.record(z.string(), z.number()) }),
    handler,
  });
  r.job("item.sort", { input: node, dedupScope: "user", handler });
  r.job("item.count", {
    input: z.object({ page: z.number().default(1), rest: z.tuple([z.string()]).rest(z.int()) }),
    handler,
  });
  r.channel("mail" as never, { input: z.looseObject({ to: z.email() }) as never, send: handler });
  r.receive("item.stored", {
    source: "aws.s3",
    detailType: "Object Created",
    input: z.object({ object: z.looseObject({ key: z.string(), tree: node }) }),
    handler,
  });
  r.projection("item.totals", { version: 1, on: { "item.paid": async () => [] } as never });
  r.schedule("item.nightly", { cron: "0 3 * * *", handler });
});

export const server = buildServer({ features: [shop] });
