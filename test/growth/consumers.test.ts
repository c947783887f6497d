// How the work on one event grows with the number of its consumers.
import { afterEach, expect, test } from "vitest";
import { z } from "zod";
import { buildServer, defineFeature } from "../../src/index.ts";
import { startTestApp, type TestApp } from "../../src/tools/testing/index.ts";

declare module "../../src/index.ts" {
  interface Events {
    "grown.stored": Record<string, never>;
  }
}

let app: TestApp | undefined;
afterEach(() => app?.close());

test.each([60, 150])(
  "%i consumers of one event run at most 50 at a time, each once",
  async (count) => {
    let [running, most] = [0, 0];
    const ran: number[] = [];
    const feature = defineFeature("grown", (r) => {
      r.event("grown.stored", z.object({}));
      for (let n = 0; n < count; n += 1)
        r.on("grown.stored", {
          name: `c${n}`,
          handler: async () => {
            running += 1;
            most = Math.max(most, running);
            for (let turn = 0; turn < 20; turn += 1)
              await new Promise((done) => setImmediate(done));
            running -= 1;
            ran.push(n);
          },
        });
    });
    app = await startTestApp(buildServer({ features: [feature] }));
    const event = { kind: "shared", type: "grown.stored", eventId: "e-1", payload: {} } as const;
    const ids = { causedBy: "c-1", origRequestId: "o-1", tenantId: "acme" };

    expect(await app.deliver({ ...event, ...ids })).toBe("processed");
    expect(ran.toSorted((one, other) => one - other)).toEqual(
      Array.from({ length: count }, (_, n) => n),
    );
    expect(most).toBeGreaterThan(1);
    expect(most).toBeLessThanOrEqual(50);
  },
);
