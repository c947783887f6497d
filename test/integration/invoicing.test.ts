// The invoicing product's own code and the same with keelson's, held to the same promises.
import { createHmac } from "node:crypto";
import { PutCommand, ScanCommand } from "@aws-sdk/lib-dynamodb";
import { access, buildServer, defineFeature, type Server } from "keelson";
import { startTestApp, type TestApp } from "keelson/testing";
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { createInvoicesFeature as invoicesAfter } from "../../examples/invoicing/after/invoices.ts";
import { authOf } from "../../examples/invoicing/after/keys.ts";
import { createPaymentsFeature as paymentsAfter } from "../../examples/invoicing/after/payments.ts";
import { createInvoicesFeature as invoicesBefore } from "../../examples/invoicing/before/invoices.ts";
import { createKeysFeature } from "../../examples/invoicing/before/keys.ts";
import { createPaymentsFeature as paymentsBefore } from "../../examples/invoicing/before/payments.ts";

const secret = "s".repeat(32);
beforeEach(() => vi.stubEnv("KEELSON_AUTH_SECRET", secret));
afterEach(() => vi.unstubAllEnvs());

async function started(server: Server): Promise<TestApp> {
  const app = await startTestApp(server);
  onTestFinished(() => app.close());
  return app;
}

const invoices = defineFeature("invoices", (r) => {
  r.query("invoice.list", {
    route: "GET /invoices",
    access: access.roles("biller"),
    handler: async ({ user: { tenantId } }) => ({ tenantId }),
  });
});
const ann = { id: "ann", tenantId: "acme", roles: ["admin", "biller"] };
const bob = { id: "bob", tenantId: "globex", roles: ["admin", "biller"] };

interface Keys {
  readonly path: string;
  /** Headers of a call with a key; `undefined` if the key is refused before. */
  headers(app: TestApp, key: string): Promise<Record<string, string> | undefined>;
}
const before: Keys = {
  path: "/keys",
  headers: async (app, key) => {
    const answer = await app.fetch("/token", { body: { key } });
    if (answer.status === 401) return undefined;
    const { token } = (await answer.json()) as { readonly token: string }; // safe: the route answers so
    return { authorization: `Bearer ${token}` };
  },
};
const after: Keys = {
  path: "/api-keys",
  headers: async (_app, key) => ({ authorization: `Bearer ${key}` }),
};

describe.each([
  [
    "by hand",
    before,
    () => buildServer({ features: [invoices, createKeysFeature(secret)], auth: { secret } }),
  ],
  ["with apiKeys", after, () => buildServer({ features: [invoices], auth: authOf(secret) })],
])("keys %s", (_, { path, headers }, build) => {
  test("let a program call as its tenant until they are revoked, and cannot exceed the roles of their creator", async () => {
    const app = await started(build());
    const create = async (roles: readonly string[]) =>
      app.fetch(path, { body: { name: "export", roles }, as: ann });
    const call = async (key: string) => {
      const sent = await headers(app, key);
      if (sent === undefined) return [401];
      const answer = await app.fetch("/invoices", { headers: sent });
      return [answer.status, Object(await answer.json()).tenantId];
    };
    const created = await create(["biller"]);
    expect(created.status).toBe(201);
    const { id, key } = (await created.json()) as { readonly id: string; readonly key: string }; // safe: both answer so

    expect(await call(key)).toEqual([200, "acme"]);
    expect((await call(`${key.slice(0, -1)}~`))[0]).toBe(401);
    expect((await create(["owner"])).status).toBe(403);
    const list = async (as: typeof ann) => (await app.fetch(path, { as })).text();
    expect(await list(ann)).toContain(id);
    expect(await list(ann)).not.toContain(key);
    expect(await list(bob)).not.toContain(id);
    const revoke = async (as: typeof ann) =>
      (await app.fetch(`${path}/${id}`, { method: "DELETE", as })).status;
    expect(await revoke(bob)).toBe(404);
    expect(await revoke(ann)).toBe(204);
    expect((await call(key))[0]).toBe(401);
  });
});

describe.each([
  ["by hand", paymentsBefore],
  ["with r.webhook", paymentsAfter],
])("payments %s", (_, createPaymentsFeature) => {
  test("are booked once for the tenant of a signed event, and forged or old ones never", async () => {
    const app = await started(
      buildServer({ features: [createPaymentsFeature("whsec_1")], auth: { secret } }),
    );
    const report = async (event: object, { by = "whsec_1", ageSeconds = 0 } = {}) => {
      const body = JSON.stringify(event);
      const time = Math.floor(Date.now() / 1_000) - ageSeconds;
      const mac = createHmac("sha256", by).update(`${time}.${body}`).digest("hex");
      const headers = {
        "content-type": "application/json",
        "stripe-signature": `t=${time},v1=${"0".repeat(64)},v1=${mac}`,
      };
      return (await app.fetch("/hooks/stripe", { method: "POST", body, headers })).status;
    };
    const paid = { id: "evt_1", account: "acme", cents: 500 };

    expect([await report(paid), await report(paid)]).toEqual([204, 204]);
    expect(await report({ id: "evt_2", cents: 1 })).toBe(204);
    expect(await report({ ...paid, id: "evt_3" }, { by: "whsec_2" })).toBe(401);
    expect(await report({ ...paid, id: "evt_4" }, { ageSeconds: 301 })).toBe(401);
    const list = async (as: typeof ann) => (await app.fetch("/payments", { as })).json();
    expect(await list(ann)).toEqual([{ id: "evt_1", cents: 500 }]);
    expect(await list(bob)).toEqual([]);
  });
});

interface Tenant {
  readonly id: string;
  readonly timeZone: string;
  readonly isActive: boolean;
}
const root = { id: "root", tenantId: "ops", roles: ["systemAdmin"] };

describe.each([
  [
    "by hand",
    () => buildServer({ features: [invoicesBefore()], auth: { secret } }),
    async (_server: Server, app: TestApp, tenant: Tenant) => {
      const createdAt = new Date(app.clock.now()).toISOString();
      const database = (await app.ctx(root)).acrossTenants("a test");
      const Item = { ...tenant, createdAt };
      await database.send(new PutCommand({ TableName: "keelson-tenants", Item }));
    },
  ],
  [
    "with for: tenants",
    () => buildServer({ features: [invoicesAfter()], auth: { secret }, tenants: true }),
    async ({ tenants }: Server, _app: TestApp, { id, timeZone, isActive }: Tenant) => {
      await tenants.create({ id, timeZone });
      if (!isActive) await tenants.suspend(id, { reason: "a test" });
    },
  ],
])("invoices %s", (_, build, register) => {
  test("are created once a month for each active tenant, at six o'clock where it is", async () => {
    const server = build();
    const app = await started(server);
    const now = new Date(app.clock.now());
    const middle = Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1, 15);
    app.clock.advance(middle - now.getTime()); // the day of the run does not matter
    await app.settled(); // a schedule counts from its first check
    for (const [id, timeZone, isActive] of [
      ["acme", "America/New_York", true],
      ["globex", "Asia/Kolkata", true],
      ["gone", "UTC", false],
    ] as const)
      await register(server, app, { id, timeZone, isActive });
    const first = Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 2, 1);
    app.clock.advance(first - 86_400_000 / 2 - app.clock.now());
    await app.settled();
    for (let half = 0; half < 60; half += 1) {
      app.clock.advance(30 * 60_000);
      await app.settled();
    }

    const database = (await app.ctx(root)).acrossTenants("a test");
    const { Items = [] } = await database.send(new ScanCommand({ TableName: "keelson-invoices" }));
    const timeIn = (timeZone: string, dueAt: string) =>
      new Intl.DateTimeFormat("en-GB", {
        ...{ timeZone, day: "numeric", hour: "2-digit", minute: "2-digit" },
      }).format(new Date(dueAt));
    const found = Items.map(({ dueAt }) => String(dueAt)).toSorted();
    expect(found.map((key) => key.split("/")[0])).toEqual([
      expect.stringContaining("acme"),
      expect.stringContaining("globex"),
    ]);
    const times = found.map((key) => key.slice(key.search(/\d{4}-/)));
    expect(timeIn("America/New_York", times[0] ?? "")).toBe("1, 06:00");
    expect(timeIn("Asia/Kolkata", times[1] ?? "")).toBe("1, 06:00");
  });
});
