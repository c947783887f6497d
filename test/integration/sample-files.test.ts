import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { server } from "../../examples/files/server.ts";
import { startTestApp, type TestApp } from "../../src/tools/testing/index.ts";

let app: TestApp;
beforeAll(async () => {
  app = await startTestApp(server);
});
afterAll(() => app.close());

let count = 0;
let ann = { id: "ann", tenantId: "" };
beforeEach(() => {
  count += 1;
  ann = { id: "ann", tenantId: `tenant-${count}` };
});

interface File {
  readonly id: string;
  readonly name: string;
}
interface Page {
  readonly items: readonly File[];
  readonly cursor?: string;
}
const create = (name: string, sizeMb = 1) =>
  app.call("files.file.create", { name, sizeMb }, { as: ann }) as Promise<File>;
const list = (input: object = {}, as = ann) =>
  app.call("files.file.list", input, { as }) as Promise<Page>;
const used = async () => {
  const quota = await app.call("files.file.quota", {}, { as: ann });
  const { usedMb, totalMb } = quota as { usedMb: number; totalMb: number };
  return [usedMb, totalMb] as const;
};

async function pages(input: object): Promise<string[][]> {
  const found: string[][] = [];
  let cursor: string | undefined;
  do {
    const page: Page = await list({ ...input, ...(cursor === undefined ? {} : { cursor }) });
    found.push(page.items.map(({ name }) => name));
    cursor = page.cursor;
  } while (cursor !== undefined);
  return found;
}

test("files are listed in pages, newest first or by name", async () => {
  for (const name of ["c", "a", "e", "b", "d"]) {
    await create(name);
    const createdMs = Date.now();
    await expect.poll(() => Date.now(), { interval: 1 }).toBeGreaterThan(createdMs); // IDs tell milliseconds apart
  }
  expect(await pages({ limit: 2 })).toEqual([["d", "b"], ["e", "a"], ["c"]]);
  expect(await pages({ limit: "3", order: "name" })).toEqual([
    ["a", "b", "c"],
    ["d", "e"],
  ]);
  expect(await pages({})).toEqual([["d", "b", "e", "a", "c"]]);
});

test("a cursor works only for the list of its caller, and an invalid one is refused", async () => {
  for (const name of ["a", "b"]) await create(name);
  const { cursor } = await list({ limit: 1 });
  await expect(list({ cursor }, { id: "eve", tenantId: "evil" })).rejects.toMatchObject({
    code: "validation_error",
  });
  for (const wrong of ["", "!", "YQ==", Buffer.from("x".repeat(1_025)).toString("base64url")]) {
    await expect(list({ cursor: wrong })).rejects.toMatchObject({ code: "validation_error" });
  }
  await expect(list({ limit: 101 })).rejects.toMatchObject({ code: "validation_error" });
});

test("a file above the plan's quota is refused with 402, and fits after another is deleted", async () => {
  const eve = { id: "eve", tenantId: "free" };
  const key = "files:config:max-upload-size-mb";
  await app.rows.put({ scope: "tenant", tenantId: eve.tenantId, key, value: 100 });
  const add = (name: string, sizeMb: number) =>
    app.fetch("/files", { body: { name, sizeMb }, as: eve });
  const { id } = (await (await add("a", 60)).json()) as File;
  const refused = await add("b", 40.5);
  expect([refused.status, await refused.json()]).toMatchObject([
    402,
    { error: "quota_exceeded", details: { quota: "files.storage", used: 60, limit: 100 } },
  ]);
  await app.call("files.file.delete", { id }, { as: eve });
  expect((await add("b", 40.5)).status).toBe(201);
});

test("the quota counts the files' size, and reads one row however many there are", async () => {
  expect(await used()).toEqual([0, 0]);
  const { id } = await create("a", 2.5);
  await create("b", 4);
  expect((await used())[0]).toBe(7); // before the projection
  await app.settled();
  expect(await used()).toEqual([7, 6.5]);
  await app.call("files.file.delete", { id }, { as: ann });
  await expect(app.call("files.file.delete", { id }, { as: ann })).rejects.toMatchObject({
    code: "not_found",
  });
  await app.settled();
  expect(await used()).toEqual([4, 4]);
  expect((await list()).items.map(({ name }) => name)).toEqual(["b"]);
  expect((await list({ order: "name" })).items.map(({ name }) => name)).toEqual(["b"]);
  const queries = async () => {
    const before = app.calls["Query"] ?? 0;
    await used();
    return (app.calls["Query"] ?? 0) - before;
  };
  await expect.poll(queries).toBe(0); // a configuration that is over 5 s old is queried again
});

test("the plan of a tenant limits its requests for download URLs", async () => {
  const statuses = async (tenantId: string, times: number) => {
    const asked = Array.from({ length: times }, () =>
      app.fetch("/files/7/download-url", { as: { id: "ann", tenantId } }),
    );
    const answers = await Promise.all(asked);
    return answers.map(({ status }) => status).filter((status) => status === 429).length;
  };
  app.clock.advance(60_000 - (app.clock.now() % 60_000));
  expect([await statuses(ann.tenantId, 62), await statuses("acme", 62)]).toEqual([2, 0]);
});

/** Moves to noon on the next Sunday in UTC. In Tokyo and in Lima it is then Sunday too. */
function toSunday(): void {
  const now = new Date(app.clock.now());
  const days = 7 - now.getUTCDay();
  const ms = Date.UTC(now.getUTCFullYear(), now.getUTCMonth(), now.getUTCDate() + days, 12);
  app.clock.advance(ms - app.clock.now());
}

test("a tenant whose storage is almost full is reminded, in the morning of its own time zone", async () => {
  toSunday();
  await app.settled();
  const zones = { "full-in-tokyo": "Asia/Tokyo", "full-in-lima": "America/Lima", empty: "UTC" };
  for (const [id, timeZone] of Object.entries(zones)) {
    await server.tenants.create({ id, timeZone });
    if (id === "empty") continue;
    const [as, key] = [{ id: "ann", tenantId: id }, "files:config:max-upload-size-mb"];
    await app.rows.put({ scope: "tenant", tenantId: id, key, value: 100 });
    await app.call("files.file.create", { name: "a", sizeMb: 90 }, { as });
  }
  const text = "the storage is almost full";
  const reminders = () => app.deliveries.filter(({ message }) => Object(message).text === text);
  const reminded = (tenantId: string) => ({
    tenantId,
    message: { text, usedMb: 90, quotaMb: 100 },
  });
  app.clock.advance(21 * 3_600_000); // Monday: 18:00 in Tokyo, 4:00 in Lima
  await app.settled();
  expect(reminders()).toMatchObject([reminded("full-in-tokyo")]);
  app.clock.advance(5 * 3_600_000);
  await app.settled();
  expect(reminders()).toMatchObject([reminded("full-in-tokyo"), reminded("full-in-lima")]);
});

test("a suspended tenant gets a 403, until it is resumed", async () => {
  await server.tenants.create({ id: ann.tenantId });
  await server.tenants.suspend(ann.tenantId, { reason: "unpaid" });
  const asked = async () => (await app.fetch("/files", { as: ann })).status;
  expect(await asked()).toBe(403);
  await server.tenants.resume(ann.tenantId);
  expect(await asked()).toBe(200);
});
