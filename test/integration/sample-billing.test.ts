import { buildServer } from "keelson";
import { startTestApp } from "keelson/testing";
import { expect, test } from "vitest";
import { createBillingFeature } from "../../examples/files/billing.ts";
import { nextMonth, Provider } from "../fixtures/billing.ts";

test("each month every paying customer is charged once, and nobody on the free plan", async () => {
  const provider = new Provider();
  const app = await startTestApp(buildServer({ features: [createBillingFeature(provider)] }));
  try {
    await app.settled();
    expect(provider.calls).toBe(0);
    const months: string[] = [];
    for (let count = 0; count < 2; count += 1) {
      months.push(await nextMonth(app));
      await app.settled();
      await app.settled();
    }
    expect([...provider.charges.values()]).toEqual(
      months.map((month) => ({ tenantId: "acme", month, cents: 4_900 })),
    );
    expect(provider.calls).toBe(2);
    expect(app.deliveries).toEqual(
      [...provider.charges.keys()].map((key, index) =>
        expect.objectContaining({
          message: { text: "the plan was charged", charge: `charge-${key}`, month: months[index] },
          tenantId: "acme",
        }),
      ),
    );
  } finally {
    await app.close();
  }
});
