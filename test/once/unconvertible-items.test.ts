import { access, buildServer, defineFeature, type PipelineContext } from "keelson";
import { startTestApp, type TestApp } from "keelson/testing";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";

type Deed = (ctx: PipelineContext) => Promise<unknown>;
let deed: Deed;
let runs = 0;

const orders = defineFeature("orders", (r) => {
  const table = r.table("orders", { partitionKey: "pk", tenant: false });
  r.write("order.make", {
    route: "POST /orders",
    access: access.authenticated,
    handler: async (ctx) => {
      runs += 1;
      return deed(ctx);
    },
  });
  return { table };
});

let app: TestApp;
let keys = 0;
beforeAll(async () => {
  app = await startTestApp(buildServer({ features: [orders] }));
});
afterAll(() => app.close());
beforeEach(() => {
  runs = 0;
});

const send = (key: string) =>
  app.fetch("/orders", {
    method: "POST",
    as: { id: "ann", tenantId: "acme" },
    headers: { "idempotency-key": key },
  });
const put = (value?: unknown) => ({
  Put: { TableName: orders.table.name, Item: { pk: `order ${keys}`, value } },
});
const containingItself: Record<string, unknown> = {};
containingItself["self"] = containingItself;
const mapInItself = new Map<string, unknown>();
mapInItself.set("self", mapInItself);
const nested = (levels: number): unknown => (levels === 0 ? "" : [nested(levels - 1)]);
/** Commits that were sent, and reads of claims, which follow an attempt with an unknown outcome. */
const sent = ({ TransactWriteItems = 0, GetItem = 0 } = app.calls) => [TransactWriteItems, GetItem];

test.each([
  ["a Date", new Date(0), "cannot convert an item: Unsupported type passed"],
  ["NaN", Number.NaN, "Special numeric value NaN"],
  ["1e300", 1e300, "greater than Number.MAX_SAFE_INTEGER"],
  ["an empty Set", new Set(), "non-empty set"],
  ["an object that contains itself", containingItself, "32 levels, or contains itself"],
  ["a Map that contains itself", mapInItself, "cannot convert an item: Maximum call stack"],
  ["1,500 levels", nested(1_500), "32 levels"],
  ["a member __proto__", JSON.parse('{"a":[{"__proto__":5}]}'), 'loses a member named "__proto__"'],
])(
  "a commit that cannot be sent because of %s is not sent, and releases the claim",
  async (_name, value, reason) => {
    const [commits = 0, reads] = sent();
    const key = `k${++keys}`;
    deed = (ctx) => ctx.commit([put(value)], { made: "first" });
    const refused = await send(key);
    expect(refused.status).toBe(500);
    expect([runs, sent()]).toEqual([1, [commits, reads]]);
    expect(app.logs.filter(({ msg }) => msg === "once.commit_uncertain")).toEqual([]);

    // The claim is released, so the retry runs immediately. A handler that catches the error may commit.
    deed = async (ctx) => {
      const failed = ctx.commit([put(value)], { made: "second" });
      await expect(failed).rejects.toThrow(TypeError);
      await expect(failed).rejects.toThrow(reason);
      return ctx.commit([put("ok")], { made: "third" });
    };
    const answer = await send(key);
    expect([answer.status, await answer.json()]).toEqual([200, { made: "third" }]);
    expect([runs, sent()]).toEqual([2, [commits + 1, reads]]);
  },
);

test.each([
  ["1e-200", () => put(1e-200), "refuses the items: Number underflow"],
  ["39 digits", () => put(10n ** 38n + 1n), "refuses the items: Attempting to store more than 38"],
  [
    "a set of 1 and 1n",
    () => put(new Set([1, 1n])),
    "refuses the items: Input collection contains",
  ],
  [
    "an empty string as a key",
    () => ({ Put: { TableName: orders.table.name, Item: { pk: "" } } }),
    "item 0: ValidationError One or more parameter values",
  ],
])(
  "a commit that DynamoDB refuses because of %s is sent once, and releases the claim",
  async (_name, item, reason) => {
    const [commits = 0, reads] = sent();
    const key = `k${++keys}`;
    deed = (ctx) => ctx.commit([item()], { made: "first" });
    expect((await send(key)).status).toBe(500);
    expect([runs, sent()]).toEqual([1, [commits + 1, reads]]);
    deed = async (ctx) => {
      const failed = ctx.commit([item()], { made: "second" });
      await expect(failed).rejects.toThrow(TypeError);
      await expect(failed).rejects.toThrow(reason);
      return ctx.commit([put("ok")], { made: "third" });
    };
    const answer = await send(key);
    expect([answer.status, await answer.json()]).toEqual([200, { made: "third" }]);
    expect([runs, sent()]).toEqual([2, [commits + 3, reads]]);
  },
);

test("an attribute __proto__, which the SDK would drop, is refused; 32 levels are stored", async () => {
  deed = (ctx) =>
    ctx.commit([{ Put: { TableName: orders.table.name, Item: { pk: "p", ["__proto__"]: 5 } } }], 1);
  expect((await send(`k${++keys}`)).status).toBe(500);
  deed = (ctx) => ctx.commit([put(nested(32))], 1);
  expect((await send(`k${++keys}`)).status).toBe(200);
});
