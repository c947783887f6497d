import { buildServer } from "keelson";
import type { RaceApp } from "keelson/testing";
import { expect } from "vitest";
import { uploads, world } from "../received/fixture.ts";
import { race } from "./race.ts";

const stored = (app: RaceApp) => ({
  ...{ source: "aws.s3", "detail-type": "Object Created" },
  ...{ id: "17793124-05d4-b198-2fde-ededa63b103b", time: "2026-11-12T00:00:00Z" },
  detail: { bucket: "uploads", key: `${app.tenantId}/a.pdf` },
});
world.handle = async (ctx, event) => {
  if (ctx.user.tenantId === undefined) return;
  await ctx.enqueue(uploads.scan, { key: event.id });
  const Item = uploads.table.key(ctx, "stored", event.id);
  await ctx.commit([{ Put: { TableName: uploads.table.name, Item } }], undefined);
};

race(
  "an event of others, delivered twice, past its lease,",
  {
    requests: [0, 1].map(() => (app: RaceApp) => app.deliver(stored(app))),
    expiries: 1,
    check: async (app) => {
      await app.settled();
      const scans = app.jobs.filter(({ tenantId }) => tenantId === app.tenantId);
      expect(scans).toHaveLength(1);
      expect(await app.deliver(stored(app))).toBe("skipped");
    },
  },
  buildServer({ features: [uploads] }),
);
