import type { RaceApp } from "keelson/testing";
import { expect } from "vitest";
import { server } from "../../examples/files/server.ts";
import { serverInternals } from "../../src/app/server/server.ts";
import { tenantSources } from "../../src/app/tenants/tenant-source.ts";
import { eraseTenant } from "../../src/app/tenants/walk.ts";
import { dynamoTenantRows } from "../../src/aws/stores/tenant-rows.ts";
import { as, create, filesOf, race } from "./race.ts";

const statuses = (results: readonly PromiseSettledResult<unknown>[]) =>
  results
    .map((result) => (result.status === "fulfilled" ? (result.value as Response).status : 0))
    .sort();
const limit = `/config/${encodeURIComponent("files:config:max-upload-size-mb")}`;
const set = (value: number) => (app: RaceApp) =>
  app.fetch(limit, {
    ...{ method: "PUT", body: { value }, as: as(app) },
    headers: { "idempotency-key": `set-${value}` },
  });
const erase = async (app: RaceApp) => {
  const ctx = await app.ctx(as(app));
  const rows = dynamoTenantRows(ctx.acrossTenants("a race"), { wait: async () => {} });
  const found = tenantSources(serverInternals(server), app.tenantId, {});
  return eraseTenant({ ...found, rows, keep: async () => {}, begun: undefined, isDryRun: false });
};

race("two writes", {
  requests: [create("k", "a.txt"), create("l", "b.txt")],
  check: async (app, results) => {
    expect(statuses(results)).toEqual([201, 201]);
    expect((await filesOf(app)).map(({ name }) => name).sort()).toEqual(["a.txt", "b.txt"]);
  },
});

race("one file, deleted twice,", {
  requests: ["k", "l"].map((key) => async (app: RaceApp) => {
    const [file] = await filesOf(app);
    const path = `/files/${file?.id ?? "gone"}`;
    return app.fetch(path, { method: "DELETE", as: as(app), headers: { "idempotency-key": key } });
  }),
  arrange: async (app) => void (await create("c")(app)),
  check: async (app, results) => {
    expect(statuses(results)).toEqual([204, 404]);
    expect(await filesOf(app)).toEqual([]);
  },
});

race("one setting, written twice,", {
  requests: [set(20), set(30)],
  check: async (app, results) => {
    const done = statuses(results).filter((status) => status === 200).length;
    const answer = await app.fetch(`${limit}/history`, { as: as(app) });
    const { items } = (await answer.json()) as { items: { version: number }[] };
    expect(items.map(({ version }) => version)).toEqual([2, 1].slice(2 - done));
    expect(statuses(results).every((status) => status === 200 || status === 409)).toBe(true);
  },
});

race("a tenant that is erased during a write", {
  requests: [erase, create("k")],
  arrange: async (app) => void (await create("c", "old.txt")(app)),
  check: async (app, results) => {
    const [, written] = results;
    const names = (await filesOf(app)).map(({ name }) => name);
    expect(names).not.toContain("old.txt");
    expect(written?.status).toBe("fulfilled");
    await erase(app);
    expect([(await erase(app)).state.found, await filesOf(app)]).toEqual([0, []]);
  },
});
