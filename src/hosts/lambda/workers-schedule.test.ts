// own process: it fakes timers
import { afterEach, expect, test, vi } from "vitest";
import { defineFeature } from "../../app/features/feature.ts";
import type { ScheduleOptions } from "../../app/schedules/schedule.ts";
import { buildServer } from "../../app/server/server.ts";
import { lambdaContext, startTestApp } from "../../tools/testing/index.ts";
import { lambdaSchedule } from "./workers.ts";

const hour = 3_600_000;
let runs: string[] = [];
let handler: ScheduleOptions["handler"] = () => undefined;
const build = () =>
  buildServer({
    features: [
      defineFeature("reports", (r) => {
        r.schedule("report.make", {
          cron: "0 * * * *",
          handler: (ctx, fire) => {
            runs.push(fire.at.toISOString().slice(11, 16));
            return handler(ctx, fire);
          },
        });
        r.schedule("report.never", { cron: "0 3 29 2 *", handler: () => void runs.push("never") });
      }),
    ],
    log: { level: "error" },
  });

afterEach(() => {
  vi.unstubAllEnvs();
  vi.useRealTimers();
  vi.restoreAllMocks();
  runs = [];
  handler = () => undefined;
});

test("a rule's function fires each due schedule once, however often it is called, and counts failures", async () => {
  vi.spyOn(process.stdout, "write").mockReturnValue(true);
  const app = await startTestApp(build());
  try {
    for (const [name, value] of Object.entries(app.env)) vi.stubEnv(name, value);
    const nextMs = Math.ceil((Date.now() + 60_000) / hour) * hour;
    const at = (atMs: number) => vi.useFakeTimers({ toFake: ["Date"], now: atMs });
    const [schedule, other] = [lambdaSchedule(build()), lambdaSchedule(build())];

    at(nextMs - 30_000);
    expect(await schedule({}, lambdaContext())).toEqual({ fired: 0, failed: 0 });
    at(nextMs + 30_000);
    const both = await Promise.all([schedule({}, lambdaContext()), other({}, lambdaContext())]);
    expect(both.map(({ fired }) => fired).sort()).toEqual([0, 1]);
    expect(await schedule()).toEqual({ fired: 0, failed: 0 });
    expect(runs).toEqual([new Date(nextMs).toISOString().slice(11, 16)]);

    at(nextMs + hour + 30_000);
    handler = () => {
      throw new Error("broken");
    };
    expect(await schedule({}, lambdaContext())).toEqual({ fired: 0, failed: 1 });
    handler = () => undefined;
    at(nextMs + hour + 90_000);
    expect(await other({}, lambdaContext())).toEqual({ fired: 1, failed: 0 });
    expect(runs).toHaveLength(3);
  } finally {
    await app.close();
  }
});
