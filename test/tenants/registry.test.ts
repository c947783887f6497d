import { buildServer, ConflictError, defineFeature, NotFoundError, ValidationError } from "keelson";
import { startTestApp, type TestApp } from "keelson/testing";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

const feature = defineFeature("notes", () => ({}));
const server = buildServer({ features: [feature], tenants: true });
let app: TestApp;
beforeAll(async () => {
  app = await startTestApp(server);
});
afterAll(() => app.close());

const { tenants } = server;
const fieldsOf = (asked: Promise<unknown>) =>
  asked.then(
    () => "nothing is wrong",
    (error: ValidationError) =>
      error instanceof ValidationError ? error.fields.map(({ field }) => field) : error,
  );
const isoTime = /^\d{4}-\d\d-\d\dT[\d:.]+Z$/;
const text = (length: number) => "x".repeat(length);

describe("server.tenants", () => {
  test("creates a tenant, which get and list return", async () => {
    const created = await tenants.create({
      ...{ id: "acme", name: "Acme Ltd" },
      timeZone: "Europe/Berlin",
    });
    expect(created).toEqual({
      ...{ id: "acme", name: "Acme Ltd", timeZone: "Europe/Berlin", status: "active" },
      createdAt: expect.stringMatching(isoTime),
    });
    const plain = await tenants.create({ id: "bob#/ö" });
    expect(plain).toMatchObject({ timeZone: "UTC", status: "active" });
    expect("name" in plain).toBe(false);
    expect(await tenants.get("acme")).toEqual(created);
    expect(await tenants.list()).toEqual({ items: [created, plain] });
  });

  test("keeps one name of each time zone, however it is spelled", async () => {
    const spelled = ["europe/berlin", "EUROPE/BERLIN", "Europe/Berlin"];
    for (const [index, timeZone] of spelled.entries()) {
      const created = await tenants.create({ id: `spelled-${index}`, timeZone });
      expect(created.timeZone).toBe("Europe/Berlin");
    }
    expect((await tenants.create({ id: "spelled-utc", timeZone: "etc/utc" })).timeZone).toBe("UTC");
    expect((await tenants.get("spelled-0")).timeZone).toBe("Europe/Berlin");
  });

  test("refuses an ID that is registered, and changes nothing", async () => {
    await tenants.create({ id: "twice", name: "first" });
    const again = tenants.create({ id: "twice", name: "second" });
    await expect(again).rejects.toThrow(ConflictError);
    await expect(again).rejects.toMatchObject({
      ...{ code: "tenant_exists", status: 409 },
      message: "Conflict: the tenant twice is registered already",
    });
    expect((await tenants.get("twice")).name).toBe("first");
  });

  test("creates a tenant once, however many ask for it at the same time", async () => {
    const asked = Array.from({ length: 8 }, () => tenants.create({ id: "raced" }));
    const kinds = (await Promise.allSettled(asked)).map(({ status }) => status);
    expect(kinds.filter((kind) => kind === "fulfilled")).toHaveLength(1);
  });

  test("suspends and resumes, and a repeat keeps the time of the suspension", async () => {
    await tenants.create({ id: "paused" });
    const first = await tenants.suspend("paused", { reason: "unpaid" });
    const at = expect.stringMatching(isoTime);
    expect(first).toMatchObject({ status: "suspended", suspended: { at, reason: "unpaid" } });
    await app.clock.advance(1_000);
    const again = await tenants.suspend("paused", { reason: "left" });
    expect(again.suspended).toEqual({ at: first.suspended?.at, reason: "left" });
    expect(await tenants.get("paused")).toEqual(again);
    expect((await tenants.list()).items).toContainEqual(again);
    const resumed = await tenants.resume("paused");
    expect(resumed).toMatchObject({ status: "active" });
    expect("suspended" in resumed).toBe(false);
    expect(await tenants.resume("paused")).toEqual(resumed);
    expect(app.logs.filter(({ tenantId }) => tenantId === "paused")).toMatchObject([
      { msg: "tenant.created", level: "info" },
      { msg: "tenant.suspended", reason: "unpaid" },
      { msg: "tenant.suspended", reason: "left" },
      { msg: "tenant.resumed" },
      { msg: "tenant.resumed" },
    ]);
  });

  test("answers for a tenant that is not registered with a 404", async () => {
    for (const asked of [
      tenants.get("nobody"),
      tenants.suspend("nobody", { reason: "unpaid" }),
      tenants.resume("nobody"),
    ]) {
      await expect(asked).rejects.toThrow(NotFoundError);
      await expect(asked).rejects.toThrow("tenant nobody not found");
    }
  });

  test("lists page by page, sorted by time zone and ID", async () => {
    const all = (await tenants.list()).items.map(({ id }) => id);
    const paged: string[] = [];
    let cursor: string | undefined;
    do {
      const page = await tenants.list({ limit: 2, ...(cursor !== undefined && { cursor }) });
      expect(page.items.length).toBeLessThanOrEqual(2);
      paged.push(...page.items.map(({ id }) => id));
      ({ cursor } = page);
    } while (cursor !== undefined);
    expect(paged).toEqual(all);
    expect(all).toEqual([
      ...["acme", "spelled-0", "spelled-1", "spelled-2"],
      ...["bob#/ö", "paused", "raced", "spelled-utc", "twice"],
    ]);
  });

  // Safe casts: plain JavaScript passes anything.
  const { create, suspend, list } = tenants as unknown as Record<
    string,
    (...given: unknown[]) => Promise<unknown>
  >;
  test.each([
    [["id"], () => create?.({})],
    [["id", "name", "timeZone"], () => create?.({ id: "", name: 7, timeZone: "Moon/Base" })],
    [["timeZone"], () => create?.({ id: "a", timeZone: "+02:00" })],
    [["id"], () => create?.({ id: text(257) })],
    [["plan"], () => create?.({ id: "a", plan: "free" })],
    [[""], () => create?.("acme")],
    [["id"], () => tenants.get("a\nb")],
    [["id"], () => tenants.resume("")],
    [["id"], () => tenants.suspend(7 as never, { reason: "unpaid" })],
    [["reason"], () => suspend?.("acme", {})],
    [["reason"], () => suspend?.("acme", { reason: " " })],
    [["reason"], () => suspend?.("acme", { reason: text(501) })],
    [[""], () => suspend?.("acme")],
    [["limit"], () => list?.({ limit: 0 })],
    [["limit", "cursor"], () => list?.({ limit: 1_001, cursor: "x" })],
    [["cursor"], () => list?.({ cursor: Buffer.from('["UTC"]').toString("base64url") })],
    [["cursor"], () => list?.({ cursor: text(5_000) })],
    [["cursor"], () => list?.({ cursor: 7 })],
  ])("names the wrong fields %j", async (fields, ask) => {
    expect(await fieldsOf(ask() ?? Promise.resolve())).toEqual(fields);
  });

  test("throws an error that is no conflict", async () => {
    app.faults.before("TransactWriteItems", 1).fail("ResourceNotFoundException");
    await expect(tenants.create({ id: "failed" })).rejects.toThrow("ResourceNotFoundException");
  });
});

test("server.tenants says how to turn it on", async () => {
  const plain = buildServer({ features: [feature] });
  const other = await startTestApp(plain);
  try {
    await expect(plain.tenants.get("acme")).rejects.toThrow(
      "the server registers no tenants; pass tenants: true to buildServer",
    );
  } finally {
    await other.close();
  }
});

test("server.tenants refuses while the server closes", async () => {
  const closing = buildServer({ features: [feature], tenants: true });
  const other = await startTestApp(closing);
  const begun = Promise.withResolvers<void>();
  const held = Promise.withResolvers<void>();
  const run = closing.run({ reason: "a test" }, async () => {
    begun.resolve();
    await held.promise;
  });
  await begun.promise;
  const closed = closing.close();
  await expect(closing.tenants.list()).rejects.toThrow("the server is closing");
  held.resolve();
  await Promise.all([run, closed]);
  await other.close();
});
