import { access, buildServer, defineFeature, reply } from "keelson";
import { type Caller, startTestApp, type TestApp } from "keelson/testing";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";

const day = 86_400;
let runs = 0;

const payments = defineFeature("payments", (r) => {
  const table = r.table("payments", { partitionKey: "pk", tenant: false });
  const route = (name: string) => ({ route: `POST /${name}`, access: access.authenticated });
  r.write("payment.make", {
    ...route("payments"),
    once: { required: true, keepSeconds: day },
    handler: async () => reply({ run: ++runs }, { status: 201 }),
  });
  r.write("payment.commit", {
    ...route("committed"),
    once: { required: true, keepSeconds: day },
    handler: async (ctx) => {
      runs += 1;
      const Item = { pk: `${ctx.user.tenantId} ${runs}` };
      return ctx.commit([{ Put: { TableName: table.name, Item } }], {
        run: runs,
        text: "x".repeat(500_000),
      });
    },
  });
  r.write("payment.ask", {
    ...route("asked"),
    once: { required: true },
    handler: async () => ({ run: ++runs }),
  });
  r.write("payment.large", {
    ...route("large"),
    once: { required: true, keepSeconds: 7 * day },
    replay: "encrypted",
    // Not to be compressed below what fits into one record.
    handler: async () => ({
      run: ++runs,
      text: Buffer.from(crypto.getRandomValues(new Uint8Array(50_000))).toString("hex"),
    }),
  });
});

const server = buildServer({ features: [payments], keyRing: { parameter: "/payments/key-ring" } });
let app: TestApp;
let callers = 0;

beforeAll(async () => {
  app = await startTestApp(server, { environment: "development" });
});
afterAll(() => app.close());
beforeEach(() => {
  runs = 0;
});

const newCaller = (): Caller => ({ id: `u${++callers}`, tenantId: "acme" });

const send = async (path: string, as: Caller, headers: Record<string, string>) => {
  const response = await app.fetch(path, { method: "POST", as, headers });
  const { status } = response;
  return {
    status,
    isReplayed: response.headers.has("idempotent-replayed"),
    body: await response.json(),
  };
};

test("a write without an Idempotency-Key is a 400, even with a request ID", async () => {
  const [ann, refused] = [
    newCaller(),
    { status: 400, body: { error: "idempotency_key_required" } },
  ];

  expect(await send("/asked", ann, {})).toMatchObject(refused);
  expect(await send("/payments", ann, { "x-request-id": "r1" })).toMatchObject(refused);
  await expect(
    app.call("payments.payment.make", {}, { as: ann, requestId: "r1" }),
  ).rejects.toMatchObject({ status: 400 });
  expect(runs).toBe(0);
  expect(await app.call("payments.payment.make", {}, { as: ann, idempotencyKey: "k1" })).toEqual({
    run: 1,
  });
});

test("problem+json links to the page of the error", async () => {
  const response = await app.fetch("/asked", {
    method: "POST",
    as: newCaller(),
    headers: { accept: "application/problem+json" },
  });

  expect(await response.json()).toMatchObject({
    type: expect.stringMatching(/\/docs\/errors\.md#idempotency_key_required$/),
    title: "Idempotency key required",
    status: 400,
  });
});

test.each(["/payments", "/committed", "/large"])(
  "a retry of %s gets the answer for as long as the key lasts",
  async (path) => {
    const [ann, headers] = [newCaller(), { "idempotency-key": "k1" }];
    const first = await send(path, ann, headers);

    app.clock.advance((day - 60) * 1000);
    expect(await send(path, ann, headers)).toEqual({ ...first, isReplayed: true });
    expect(runs).toBe(1);

    app.clock.advance((6 * day + 120) * 1000);
    expect(await send(path, ann, headers)).toMatchObject({ isReplayed: false, body: { run: 2 } });
  },
);

test("the answer comes from the store: another process gives it as well", async () => {
  const [ann, headers] = [newCaller(), { "idempotency-key": "k1" }];
  const first = await send("/payments", ann, headers);
  app.clock.advance((day - 60) * 1000);
  app.faults.before("PutItem", 1).crash();
  await expect(send("/payments", newCaller(), { "idempotency-key": "other" })).rejects.toThrow();

  expect(await send("/payments", ann, headers)).toEqual({ ...first, isReplayed: true });
});

test("a required key lasts five minutes by default", async () => {
  const [ann, headers] = [newCaller(), { "idempotency-key": "k1" }];
  await send("/asked", ann, headers);
  app.clock.advance(290_000);
  expect(await send("/asked", ann, headers)).toMatchObject({ isReplayed: true });
  app.clock.advance(20_000);
  expect(await send("/asked", ann, headers)).toMatchObject({ isReplayed: false });
});
