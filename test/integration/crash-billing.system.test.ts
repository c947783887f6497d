import { buildServer } from "keelson";
import { crashEverywhere } from "keelson/testing";
import { expect, test } from "vitest";
import { createBillingFeature } from "../../examples/files/billing.ts";
import type { ChargePlan } from "../../examples/files/payments.ts";
import { nextMonth, Provider } from "../fixtures/billing.ts";

test("wherever a process crashes between the 1st of a month and the message about the charge, a customer is charged once", async () => {
  let provider = new Provider();
  let [calledAgain, month] = [0, ""];
  const charge: ChargePlan = (one, key) => provider.charge(one, key);
  const cuts = await crashEverywhere(
    buildServer({ features: [createBillingFeature({ charge })] }),
    {
      arrange: async (app) => {
        provider = new Provider();
        month = await nextMonth(app);
      },
      act: (app) => app.settled(),
      check: async (app) => {
        expect([...provider.charges.values()]).toEqual([{ tenantId: "acme", month, cents: 4_900 }]);
        if (provider.calls > 1) calledAgain += 1;
        const [key] = provider.charges.keys();
        const message = { text: "the plan was charged", charge: `charge-${key}`, month };
        expect(app.deliveries).toEqual([expect.objectContaining({ message })]);
      },
    },
  );
  expect(cuts.map(({ moment, operation }) => `${moment} ${operation}`)).toEqual(
    expect.arrayContaining(["before SendMessage", "after SendMessage", "after TransactWriteItems"]),
  );
  expect(calledAgain).toBeGreaterThan(0);
});
