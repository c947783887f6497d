import { buildServer } from "keelson";
import { startTestApp } from "keelson/testing";
import { signedHeaders, stripe } from "keelson/webhooks";
import { expect, test } from "vitest";
import { createBillingFeature } from "../../examples/files/billing.ts";
import { server } from "../../examples/files/server.ts";
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

test("a payment that the provider reports twice is delivered once, and a forged one never", async () => {
  const billing = createBillingFeature(new Provider());
  const app = await startTestApp(buildServer({ features: [billing] }));
  try {
    const secret = "whsec_test";
    const stored = await app.fetch("/config/billing:config:payment-secret", {
      method: "PUT",
      body: { value: secret },
      as: { id: "op", tenantId: "operators", roles: ["systemAdmin"] },
    });
    expect(stored.status).toBeLessThan(300);
    const report = async (event: object, signedWith = secret) => {
      const body = JSON.stringify(event);
      const timestampSeconds = Math.floor(app.clock.now() / 1000);
      const signed = await signedHeaders(stripe({ secret: signedWith }), body, {
        timestampSeconds,
      });
      const headers = { "content-type": "application/json", ...signed };
      return (await app.fetch("/hooks/payments", { method: "POST", body, headers })).status;
    };
    const paid = { id: "evt_1", type: "invoice.paid", account: "acme" };

    expect([await report(paid), await report(paid)]).toEqual([204, 204]);
    expect(await report({ id: "evt_2", type: "balance.available" })).toBe(204);
    expect(await report({ ...paid, id: "evt_3" }, "whsec_other")).toBe(401);
    await app.settled();
    expect(app.deliveries).toEqual([
      expect.objectContaining({
        message: { text: "the provider reported a payment", event: "evt_1", type: "invoice.paid" },
        tenantId: "acme",
      }),
    ]);
  } finally {
    await app.close();
  }
});

test("a tenant's script calls the sample with an API key, until the key is revoked", async () => {
  const app = await startTestApp(server);
  try {
    const as = { id: "ann", tenantId: "acme", roles: ["admin", "editor"] };
    const body = { name: "scanner", roles: ["editor"] };
    const created = await app.fetch("/api-keys", { method: "POST", body, as });
    // Safe cast: the answer to a new key has these.
    const { id, key } = (await created.json()) as { readonly id: string; readonly key: string };
    const listed = async () =>
      (await app.fetch("/files", { headers: { authorization: `Bearer ${key}` } })).status;

    expect([created.status, await listed()]).toEqual([201, 200]);
    expect((await app.fetch(`/api-keys/${id}`, { method: "DELETE", as })).status).toBe(204);
    expect(await listed()).toBe(401);
  } finally {
    await app.close();
  }
});
