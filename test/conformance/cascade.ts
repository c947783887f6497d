import {
  buildServer,
  createSystemConfig,
  createTenantConfig,
  createUserConfig,
  resolveConfigOrParam,
} from "keelson";
import { expect } from "vitest";
import { declareKeys, type Fixture, files, problemsOf } from "./fixture.ts";
import type { Row } from "./row.ts";

const bounds = { min: 1, max: 9 };

/** Section 4.1, how a value is found, and the limits of section 8 that hang on it. */
export const cascadeRows: readonly Row[] = [
  {
    section: "4.1.1",
    sentence: "`ctx.config(handle)` returns the value of the first level that supplies one.",
    prove: async ({ app, newCaller, put }) => {
      const ann = newCaller();
      const { pageSize } = files.config;
      const value = async () => (await app.ctx(ann)).config(pageSize);

      expect(await value()).toBe(20);
      await put("tenant", pageSize, 30, ann);
      expect(await value()).toBe(30);
      await put("user", pageSize, 40, ann);
      expect(await value()).toBe(40);
      await app.rows.put({
        scope: "user",
        key: pageSize.id,
        value: 40,
        tenantId: ann.tenantId,
        userId: ann.id,
        deleted: true,
      });
      expect(await value()).toBe(30);
    },
  },
  {
    section: "1",
    sentence:
      "Handlers read a value with `ctx.config(handle)` without knowing which level supplied it.",
    prove: async ({ handle, newCaller, put }) => {
      const [ann, bob] = [newCaller(), newCaller()];
      await put("user", files.config.pageSize, 20, ann);
      const read = async (as: typeof ann) =>
        (await handle(async (ctx) => [await ctx.config(files.config.pageSize)], { as })).body;

      expect(await read(ann)).toEqual([20]);
      expect(await read(bob)).toEqual([20]);
    },
  },
  {
    section: "4.1.2",
    sentence: "Order: per-request override (if allowed and within bounds); …",
    prove: async ({ app, newCaller, put }) => {
      const ann = newCaller();
      await put("user", files.config.pageSize, 40, ann);
      const ctx = await app.ctx(ann);

      expect(await resolveConfigOrParam(ctx, files.config.pageSize, "50")).toBe(50);
      await expect(resolveConfigOrParam(ctx, files.config.maxUploadSizeMb, "50")).rejects.toThrow();
    },
  },
  {
    section: "4.1.2",
    sentence: "… user row (scope user); …",
    prove: async (fixture) => {
      const { key, ann } = await everyLevel(fixture, createUserConfig("number", { default: 1 }));
      expect(await fixture.read(key, ann, { [key.id]: 2 })).toEqual({
        value: 5,
        source: "user-row",
      });

      const tenantKey = await everyLevel(fixture, createTenantConfig("number", { default: 1 }));
      expect((await fixture.read(tenantKey.key, tenantKey.ann)).source).toBe("tenant-row");
      const systemKey = await everyLevel(fixture, createSystemConfig("number", { default: 1 }));
      expect((await fixture.read(systemKey.key, systemKey.ann)).source).toBe("system-row");
    },
  },
  {
    section: "4.1.2",
    sentence: "… tenant row (scope tenant or user); …",
    prove: async (fixture) => {
      for (const declaration of [
        createTenantConfig("number", { default: 1 }),
        createUserConfig("number", { default: 1 }),
      ]) {
        const { key, ann } = await everyLevel(fixture, declaration);
        const colleague = { ...ann, id: "colleague" };
        expect(await fixture.read(key, colleague, { [key.id]: 2 })).toEqual({
          value: 4,
          source: "tenant-row",
        });
      }
      const { key, ann } = await everyLevel(fixture, createSystemConfig("number", { default: 1 }));
      expect(await fixture.read(key, ann)).toEqual({ value: 3, source: "system-row" });
    },
  },
  {
    section: "4.1.2",
    sentence: "… system row (always checked); …",
    prove: async (fixture) => {
      for (const create of [createSystemConfig, createTenantConfig, createUserConfig]) {
        const { key } = await everyLevel(fixture, create("number", { default: 1 }));
        expect(await fixture.read(key, fixture.newCaller(), { [key.id]: 2 })).toEqual({
          value: 3,
          source: "system-row",
        });
        expect(await fixture.read(key, {}, { [key.id]: 2 })).toEqual({
          value: 3,
          source: "system-row",
        });
      }
    },
  },
  {
    section: "4.1.2",
    sentence: "… app-boot override (if set); …",
    prove: async ({ newCaller, newFeatureName, read }) => {
      const { limit, flag, name } = declareKeys(newFeatureName(), {
        limit: createTenantConfig("number", { default: 1 }),
        flag: createTenantConfig("boolean", { default: true }),
        name: createTenantConfig("text", { default: "a" }),
      });
      const overrides = { [limit.id]: 0, [flag.id]: false, [name.id]: "" };

      expect(await read(limit, newCaller(), overrides)).toEqual({
        value: 0,
        source: "app-override",
      });
      expect(await read(flag, newCaller(), overrides)).toEqual({
        value: false,
        source: "app-override",
      });
      expect(await read(name, newCaller(), overrides)).toEqual({
        value: "",
        source: "app-override",
      });
    },
  },
  {
    section: "4.1.2",
    sentence: "… feature default from the declaration; …",
    prove: async ({ newCaller, read }) => {
      const { maxUploadSizeMb } = declareKeys("files", {
        maxUploadSizeMb: createTenantConfig("number", { default: 20 }),
      });
      expect(await read(maxUploadSizeMb, newCaller())).toEqual({ value: 20, source: "default" });
    },
  },
  {
    section: "4.1.2",
    sentence: "… framework default (hardcoded).",
    prove: frameworkDefault,
  },
  {
    section: "4.1.3",
    sentence: "Cascade by scope: user key is user, tenant, system, default; …",
    prove: async (fixture) => {
      const { key, ann, drop } = await everyLevel(
        fixture,
        createUserConfig("number", { default: 1 }),
      );
      const found = [await fixture.read(key, ann)];
      for (const scope of ["user", "tenant", "system"] as const) {
        await drop(scope);
        found.push(await fixture.read(key, ann));
      }
      expect(found).toEqual([
        { value: 5, source: "user-row" },
        { value: 4, source: "tenant-row" },
        { value: 3, source: "system-row" },
        { value: 1, source: "default" },
      ]);
    },
  },
  {
    section: "4.1.3",
    sentence: "… tenant key is tenant, system, default.",
    prove: async (fixture) => {
      const { key, ann, drop } = await everyLevel(
        fixture,
        createTenantConfig("number", { default: 1 }),
      );
      const found = [await fixture.read(key, ann)];
      for (const scope of ["tenant", "system"] as const) {
        await drop(scope);
        found.push(await fixture.read(key, ann));
      }
      expect(found).toEqual([
        { value: 4, source: "tenant-row" },
        { value: 3, source: "system-row" },
        { value: 1, source: "default" },
      ]);
    },
  },
  {
    section: "4.1.4",
    sentence:
      "The bounds check applies wherever an external actor set the value: tenant, user, per-request.",
    prove: boundsHold,
  },
  {
    section: "8",
    sentence: "Numeric bounds on a key are enforced for tenant, user and per-request values.",
    prove: boundsHold,
  },
  {
    section: "4.1.4",
    sentence: "App-boot and system levels are operator-side and bypass the clamp; …",
    prove: async ({ newCaller, newFeatureName, put, read }) => {
      const { limit } = declareKeys(newFeatureName(), {
        limit: createTenantConfig("number", { default: 5, bounds }),
      });

      expect(await read(limit, newCaller(), { [limit.id]: 50 })).toEqual({
        value: 50,
        source: "app-override",
      });
      await put("system", limit, 500);
      expect(await read(limit, newCaller())).toEqual({ value: 500, source: "system-row" });
    },
  },
  {
    section: "4.1.4",
    sentence: "… app-boot overrides are however checked by `validateAppOverrides`.",
    prove: async () => {
      const problems = problemsOf(() =>
        buildServer({ features: [files], config: { "files:config:page-size": 101 } }),
      );
      expect(problems).toMatchObject([{ key: "files:config:page-size" }]);
      expect(
        problemsOf(() =>
          buildServer({ features: [files], config: { "files:config:page-size": 100 } }),
        ),
      ).toEqual([]);
    },
  },
  {
    section: "4.1.5",
    sentence: "A stored row takes precedence over `computed`.",
    prove: async (fixture) => {
      let evaluated = 0;
      const computed = async () => ++evaluated;
      for (const create of [createUserConfig, createTenantConfig, createSystemConfig]) {
        const { key, ann } = await everyLevel(fixture, create("number", { computed }));
        for (const owner of [ann, { ...ann, id: "colleague" }, fixture.newCaller()]) {
          expect((await fixture.read(key, owner)).source).toMatch(/-row$/);
        }
      }
      expect(evaluated).toBe(0);
    },
  },
  {
    section: "8",
    sentence:
      "Framework default for maximum upload size | 10 MB | config key `files:config:max-upload-size-mb` (the example declares tenant bounds min 1, max 10000)",
    prove: frameworkDefault,
  },
  {
    section: "8",
    sentence:
      "Signed-URL expiry example | default 900 s; bounds 60 to 604800 s (7 days) | key with `allowPerRequest: true`",
    prove: async ({ fetch, newCaller }) => {
      const as = newCaller();
      const expires = async (query: string) =>
        (await fetch(`/files/f1/download-url${query}`, { as })).body;

      expect(await expires("")).toEqual({ expiresSeconds: 900 });
      for (const [asked, given] of [
        [59, 60],
        [60, 60],
        [604_800, 604_800],
        [604_801, 604_800],
      ]) {
        expect(await expires(`?expiresSeconds=${asked}`)).toEqual({ expiresSeconds: given });
      }
    },
  },
];

/** A key with a row at every level: 3 for the system, 4 for the tenant, 5 for the user. */
async function everyLevel(
  { app, newCaller, newFeatureName, put }: Fixture,
  declaration: ReturnType<typeof createUserConfig<"number", never, number, number>>,
) {
  const ann = newCaller();
  const { key } = declareKeys(newFeatureName(), { key: declaration });
  await Promise.all([put("system", key, 3), put("tenant", key, 4, ann), put("user", key, 5, ann)]);
  return {
    key,
    ann,
    drop: (scope: "user" | "tenant" | "system") =>
      app.rows.put({
        scope,
        key: key.id,
        value: 0,
        tenantId: ann.tenantId,
        userId: ann.id,
        version: 2,
        deleted: true,
      }),
  };
}

async function boundsHold({ app, newCaller, put }: Fixture): Promise<void> {
  const { pageSize } = files.config;
  const [ann, bob] = [newCaller(), newCaller()];
  await put("tenant", pageSize, 1_000, ann);
  await put("user", pageSize, -1_000, bob);

  expect(await (await app.ctx(ann)).config(pageSize)).toBe(100);
  expect(await (await app.ctx(bob)).config(pageSize)).toBe(5);
  expect(await resolveConfigOrParam(await app.ctx(newCaller()), pageSize, "1000")).toBe(100);
}

async function frameworkDefault({ app, newCaller, put, read }: Fixture): Promise<void> {
  const { maxUploadSizeMb } = declareKeys("files", {
    maxUploadSizeMb: createTenantConfig("number", { bounds: { min: 1, max: 10_000 } }),
  });
  const ann = newCaller();

  expect(await read(maxUploadSizeMb, ann)).toEqual({ value: 10, source: "default" });
  await put("tenant", maxUploadSizeMb, 20_000, ann);
  expect(await (await app.ctx(ann)).config(maxUploadSizeMb)).toBe(10_000);
}
