import { describe, expect, test } from "vitest";
import { z } from "zod";
import type { BootError } from "../../base/errors/boot.ts";
import { startTestApp } from "../../tools/testing/index.ts";
import { defineFeature } from "../features/feature.ts";
import type { TenantOf } from "../handlers/table.ts";
import { buildServer } from "../server/server.ts";
import type { Projection } from "./projection.ts";

const schema = z.object({});
const run = async () => [];
const other = async () => [];

/** What a server says of a projection that is declared so, as plain JavaScript might. */
function problemsOf(name: unknown, options: unknown): string[] {
  const feature = defineFeature("shelf", (r) => {
    r.event("item.kept", schema, { keep: true });
    r.event("item.lost", schema);
    r.projection(name as never, options as never);
  });
  try {
    buildServer({ features: [feature] });
  } catch (error) {
    // Safe: buildServer throws nothing else.
    return (error as BootError).problems.map(
      ({ key, rule, message }) => `${key}: ${rule}: ${message}`,
    );
  }
  return [];
}

describe("r.projection", () => {
  test("registers a projection, and a consumer for each of its events", () => {
    const feature = defineFeature("shelf", (r) => {
      r.event("item.kept", schema, { keep: true });
      r.projection("item.count", { version: 2, on: { "item.kept": run } as never });
    });
    const { registry } = buildServer({ features: [feature] });
    expect(registry.projections.get("item.count")).toMatchObject({
      feature: "shelf",
      name: "item.count",
      version: 2,
    });
    expect([...registry.consumers.values()]).toMatchObject([
      { name: "item.count:item.kept", type: "item.kept" },
    ]);
  });

  test("takes pairs of events, by their handles or types, and their functions", () => {
    const feature = defineFeature("shelf", (r) => {
      const kept = r.event("item.kept", schema, { keep: true });
      r.event("item.held", schema, { keepDays: 3 });
      r.projection("item.count", {
        version: 2,
        on: [
          [kept, run],
          ["item.held" as never, other],
        ],
      });
    });
    const { registry } = buildServer({ features: [feature] });
    const declared = registry.projections.get("item.count");
    expect(declared).toMatchObject({ feature: "shelf", name: "item.count", version: 2 });
    expect([...(declared?.on ?? [])]).toEqual([
      ["item.kept", run],
      ["item.held", other],
    ]);
    expect([...registry.consumers.values()]).toMatchObject([
      { name: "item.count:item.kept", type: "item.kept" },
      { name: "item.count:item.held", type: "item.held" },
    ]);
  });

  test("applies the function of each pair to its event, with what the event's schema gives", async () => {
    const rows = defineFeature("rows", (r) => {
      const table = r.table("rows", { partitionKey: "pk", sortKey: "sk", tenant: true });
      const n = z.object({ n: z.number().default(1) });
      const [up, down] = [
        r.event("count.up", n, { keep: true }),
        r.event("count.down", n, { keep: true }),
      ];
      const counts: Projection = r.projection("count.all", {
        version: 1,
        on: [
          [
            up,
            async (ctx, { eventId, payload }) => [
              { Put: { TableName: table.name, Item: await item(ctx, eventId, payload.n) } },
            ],
          ],
          [
            down,
            async (ctx, { eventId, payload }) => [
              { Put: { TableName: table.name, Item: await item(ctx, eventId, -payload.n) } },
            ],
          ],
        ],
      });
      const item = async (ctx: TenantOf, id: string, n: number) => ({
        ...table.key(ctx, await counts.key(ctx, "all"), id),
        n,
      });
      const read = r.query("count.read", {
        handler: async (ctx) => {
          const partition = await counts.key(ctx, "all");
          const { items } = await table.page(ctx, { partition, limit: 10 });
          return items.map(({ n }) => Number(n)).toSorted((a, b) => a - b);
        },
      });
      return { up, down, read };
    });
    const app = await startTestApp(buildServer({ features: [rows] }));
    try {
      const as = { id: "ann", tenantId: "acme" };
      const ctx = await app.ctx(as);
      await ctx.publish(rows.up, {});
      await ctx.publish(rows.up, { n: 5 });
      await ctx.publish(rows.down, { n: 2 });
      await app.settled();
      expect(await app.call(rows.read, {}, { as })).toEqual([-2, 1, 5]);
    } finally {
      await app.close();
    }
  });

  test.each<[unknown, unknown, ...string[]]>([
    [
      "item.count",
      { version: 1, on: [] },
      "projection item.count: projection-events: `on` names no event",
    ],
    [
      "item.count",
      {
        version: 1,
        on: [
          ["item.kept", run],
          [{ kind: "event", name: "item.kept" }, run],
        ],
      },
      "item.count:item.kept: duplicate-consumer: this consumer is declared twice",
    ],
    [
      "item.count",
      { version: 1, on: [["item.kept"]] },
      'projection item.count: handler: `on` of "item.kept" is not a function',
    ],
    [
      "item.count",
      { version: 1, on: [["item.kept", "x"]] },
      'projection item.count: handler: `on` of "item.kept" is not a function',
    ],
    [
      "item.count",
      { version: 1, on: ["item.kept"] },
      'projection item.count: handler: `on` of "item.kept" is not a function',
    ],
    [
      "item.count",
      { version: 1, on: [{ kind: "event", name: "item.kept" }] },
      'projection item.count: handler: `on` of "item.kept" is not a function',
    ],
    [
      "item.count",
      { version: 1, on: [[{ kind: "event", name: "item.lost" }, run]] },
      'item.count:item.lost: event-not-kept: it projects "item.lost", which is not kept, so it could not be rebuilt',
    ],
    [
      "item.count",
      { version: 1, on: [[{ kind: "event", name: "item.gone" }, run]] },
      'item.count:item.gone: event-undeclared: it consumes "item.gone", which no feature of this server declares',
    ],
    [
      "item.count",
      { version: 1, on: [[null, run]] },
      'item.count:null: event-undeclared: it consumes "null", which no feature of this server declares',
    ],
    [
      "count",
      { version: 1, on: { "item.kept": run } },
      'projection count: projection-name: name "count" is not <entity>.<name>',
    ],
    [
      7,
      { version: 1, on: { "item.kept": run } },
      "projection 7: projection-name: name 7 is not <entity>.<name>",
    ],
    [
      "item.count",
      { version: 0, on: { "item.kept": run } },
      "projection item.count: projection-version: `version` is 0",
    ],
    [
      "item.count",
      { version: "1", on: { "item.kept": run } },
      'projection item.count: projection-version: `version` is "1"',
    ],
    [
      "item.count",
      { version: 1, on: {} },
      "projection item.count: projection-events: `on` names no event",
    ],
    [
      "item.count",
      { version: 1, on: null },
      "projection item.count: projection-events: `on` names no event",
    ],
    [
      "item.count",
      { version: 1, on: { "item.kept": "x" } },
      'projection item.count: handler: `on` of "item.kept" is not a function',
    ],
    [
      "item.count",
      { version: 1, on: { "item.kept": run }, to: 1 },
      'projection item.count: unknown-option: unknown option "to"',
    ],
    [
      "item.count",
      undefined,
      "projection item.count: projection-version: `version` is undefined",
      "projection item.count: projection-events: `on` names no event",
    ],
    [
      "item.count",
      { version: 1, on: { "item.lost": run } },
      'item.count:item.lost: event-not-kept: it projects "item.lost", which is not kept, so it could not be rebuilt',
    ],
    [
      "item.count",
      { version: 1, on: { "item.gone": run } },
      'item.count:item.gone: event-undeclared: it consumes "item.gone", which no feature of this server declares',
    ],
  ])("%j with %j fails the boot", (name, options, ...problems) => {
    expect(problemsOf(name, options).sort()).toEqual(problems.sort());
  });

  test("declared twice fails the boot", () => {
    const declare = (name: string) =>
      defineFeature(name, (r) => {
        if (name === "one") r.event("item.kept", schema, { keep: true });
        r.projection("item.count", { version: 1, on: { "item.kept": run } as never });
      });
    expect(() => buildServer({ features: [declare("one"), declare("two")] })).toThrow(
      "this projection is declared twice",
    );
  });

  test("refuses a key part that is not a string", async () => {
    const made: { usage?: Projection } = {};
    const feature = defineFeature("shelf", (r) => {
      r.event("item.kept", schema, { keep: true });
      made.usage = r.projection("item.count", { version: 1, on: { "item.kept": run } as never });
      r.query("item.key", {
        handler: async (ctx) => ({ key: await made.usage?.key(ctx, "a/b~c", 7 as never) }),
      });
    });
    const app = await startTestApp(buildServer({ features: [feature] }));
    const as = { id: "ann", tenantId: "acme" };
    await expect(app.call("shelf.item.key", {}, { as })).rejects.toThrow(
      'projection "item.count": part 7 of a key is not a string',
    );
    await app.close();
  });

  test("knows its version only while a handler runs", async () => {
    const made: { usage?: Projection } = {};
    defineFeature("shelf", (r) => {
      made.usage = r.projection("item.count", { version: 1, on: { "item.kept": run } as never });
    });
    await expect(made.usage?.key({ user: { tenantId: "acme" } }, "a")).rejects.toThrow(
      'projection "item.count": its version is known only while a handler runs; make keys inside the handler',
    );
  });
});
