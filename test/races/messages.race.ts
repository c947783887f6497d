import { buildServer } from "keelson";
import type { RaceApp } from "keelson/testing";
import { expect } from "vitest";
import { createBillingFeature } from "../../examples/files/billing.ts";
import { as, create, race } from "./race.ts";

const settle = (app: RaceApp) => app.settled();
const usedMb = async (app: RaceApp) =>
  ((await (await app.fetch("/files/quota", { as: as(app) })).json()) as { usedMb: number }).usedMb;

race("one event, delivered twice,", {
  requests: [0, 1].map(() => async (app: RaceApp) => {
    const [event] = app.events;
    return event && app.deliver(event);
  }),
  arrange: async (app) => void (await create("c")(app)),
  check: async (app) => {
    await app.settled();
    expect([app.jobs.length, app.deliveries.length, await usedMb(app)]).toEqual([1, 1, 1]);
  },
});

race("one job, delivered twice, past its lease,", {
  requests: [0, 1].map(() => async (app: RaceApp) => {
    const [job] = app.jobs;
    return job && app.deliver(job);
  }),
  expiries: 1,
  arrange: async (app) => {
    await create("c")(app);
    const [event] = app.events;
    if (event !== undefined) await app.deliver(event);
  },
  check: async (app) => {
    await app.settled();
    expect(app.deliveries).toHaveLength(1);
  },
});

race("a write and two sweeps", {
  requests: [create("k"), settle, settle],
  check: async (app) => {
    await app.settled();
    expect([app.events.length, app.deliveries.length, await usedMb(app)]).toEqual([1, 1, 1]);
  },
});

let charged: string[] = [];
const billing = buildServer({
  features: [
    createBillingFeature({
      charge: async (_plan, key) => {
        charged.push(key);
        return { id: key };
      },
    }),
  ],
});
const nextMonth = (app: RaceApp) => {
  charged = [];
  app.clock.advance(32 * 24 * 3_600_000);
};
race(
  "a schedule, its job and its step, in two processes,",
  {
    requests: [settle, settle],
    arrange: nextMonth,
    check: async (app) => {
      await app.settled();
      expect([charged.length, app.deliveries.length]).toEqual([1, 1]);
    },
  },
  billing,
);
