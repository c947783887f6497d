// own process: it fakes timers
import { afterEach, expect, test, vi } from "vitest";
import { z } from "zod";
import { defineFeature } from "../../app/features/feature.ts";
import { buildServer } from "../../app/server/server.ts";
import { startTestApp } from "../../tools/testing/index.ts";
import { lambdaSweep } from "./workers.ts";

declare module "../../base/types/names.ts" {
  interface Events {
    "crumb.left": Record<string, never>;
  }
}

const crumbs = defineFeature("crumbs", (r) => {
  r.event("crumb.left", z.object({}));
  r.write("crumb.leave", { handler: async (ctx) => ctx.publish("crumb.left", {}) });
});
const build = () => buildServer({ features: [crumbs], log: { level: "error" } });

afterEach(() => {
  vi.unstubAllEnvs();
  vi.useRealTimers();
});

test("A schedule's function dispatches rows left in the outbox, once they are no longer on their way", async () => {
  const app = await startTestApp(build());
  try {
    app.faults.before("PutEvents", 1).fail("InternalException");
    await app.call("crumbs.crumb.leave");
    for (const [name, value] of Object.entries(app.env)) vi.stubEnv(name, value);
    const sweep = lambdaSweep(build());
    expect(await sweep()).toEqual({ dispatched: 0, left: 0, setAside: 0 });
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 11_000 });
    const context = { getRemainingTimeInMillis: () => 60_000 };
    expect(await sweep({}, context)).toEqual({ dispatched: 1, left: 0, setAside: 0 });
    expect(await sweep()).toEqual({ dispatched: 0, left: 0, setAside: 0 });
  } finally {
    await app.close();
  }
});
