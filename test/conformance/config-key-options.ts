import { access, createTenantConfig, resolveConfigOrParam } from "keelson";
import { expect } from "vitest";
import { bootProblems, declareKeys, files, untyped } from "./fixture.ts";
import type { Row } from "./row.ts";

/** Section 2.1, the options of a declaration. */
export const configKeyOptionRows: readonly Row[] = [
  {
    section: "2.1",
    sentence: "`default` | value of the key's type | Feature-level default.",
    prove: async ({ newCaller, read }) => {
      expect(await read(files.config.greeting, newCaller())).toEqual({
        value: "Hello",
        source: "default",
      });
      for (const [type, wrong] of [
        ["number", "10"],
        ["boolean", 0],
        ["text", 1],
        ["number", Number.NaN],
      ] as const) {
        expect(bootProblems({ limit: untyped.tenant(type, { default: wrong }) })).toMatchObject([
          { key: "wrong:config:limit" },
        ]);
      }
      const order = untyped.tenant("select", { options: ["a", "b"], default: "c" });
      expect(bootProblems({ order })).toMatchObject([{ key: "wrong:config:order" }]);
    },
  },
  {
    section: "2.1",
    sentence: "`bounds` | `{ min: number, max: number }` | Only for `type = number`.",
    prove: async () => {
      expect(
        bootProblems({ limit: createTenantConfig("number", { bounds: { min: 1, max: 2 } }) }),
      ).toEqual([]);
      for (const bounds of [{ min: 1 }, { min: "1", max: "2" }, [1, 2], 5]) {
        expect(bootProblems({ limit: untyped.tenant("number", { bounds }) })).toMatchObject([
          { key: "wrong:config:limit" },
        ]);
      }
    },
  },
  {
    section: "2.1",
    sentence: "Boot validation rejects it on other types, …",
    prove: async () => {
      const bounds = { min: 0, max: 1 };
      expect(bootProblems({ flag: untyped.tenant("boolean", { bounds }) })).toMatchObject([
        { key: "wrong:config:flag" },
      ]);
      expect(bootProblems({ name: untyped.tenant("text", { bounds }) })).toMatchObject([
        { key: "wrong:config:name" },
      ]);
      const order = untyped.tenant("select", { options: ["a"], bounds });
      expect(bootProblems({ order })).toMatchObject([{ key: "wrong:config:order" }]);
    },
  },
  {
    section: "2.1",
    sentence: "… rejects min > max, …",
    prove: async () => {
      const limit = createTenantConfig("number", { bounds: { min: 2, max: 1 } });
      expect(bootProblems({ limit })).toMatchObject([
        { key: "wrong:config:limit", message: expect.stringMatching(/min 2.*max 1/) },
      ]);
      expect(
        bootProblems({ limit: createTenantConfig("number", { bounds: { min: 2, max: 2 } }) }),
      ).toEqual([]);
    },
  },
  {
    section: "2.1",
    sentence: "… and rejects a default below min or above max.",
    prove: async () => {
      const bounds = { min: 1, max: 9 };
      for (const outside of [0, 0.999, 9.001, 10]) {
        const limit = createTenantConfig("number", { default: outside, bounds });
        expect(bootProblems({ limit })).toMatchObject([
          { key: "wrong:config:limit", message: expect.stringContaining(String(outside)) },
        ]);
      }
      for (const inside of [1, 5, 9]) {
        expect(
          bootProblems({ limit: createTenantConfig("number", { default: inside, bounds }) }),
        ).toEqual([]);
      }
    },
  },
  {
    section: "2.1",
    sentence:
      "`computed` | `async (ctx) => value` | Derives the value from business logic, for example a subscription plan read through `ctx.query(<query name>, {})`.",
    prove: async ({ handle, newCaller }) => {
      const quota = (tenantId: string) =>
        handle(async (ctx) => ({ quota: await ctx.config(files.config.storageQuotaMb) }), {
          as: { ...newCaller(), tenantId },
        });

      expect((await quota("rich")).body).toEqual({ quota: 5_000 });
      expect((await quota("poor")).body).toEqual({ quota: 100 });
    },
  },
  {
    section: "2.1",
    sentence: "… A stored row wins over computed.",
    prove: async ({ handle, newCaller, put }) => {
      const ann = newCaller();
      await put("tenant", files.config.storageQuotaMb, 77, ann);
      const { body, logs } = await handle(
        async (ctx) => ({ quota: await ctx.config(files.config.storageQuotaMb) }),
        { as: ann },
      );

      expect(body).toEqual({ quota: 77 });
      expect(logs).not.toContainEqual(expect.objectContaining({ msg: "plan.read" }));
    },
  },
  {
    section: "2.1",
    sentence: "… Cannot be combined with `encrypted: true` … (boot rejects both).",
    prove: async () => {
      const secret = untyped.tenant("text", { encrypted: true, computed: async () => "s" });
      expect(bootProblems({ secret })).toMatchObject([{ key: "wrong:config:secret" }]);
    },
  },
  {
    section: "2.1",
    sentence: "… or with an app-boot override …",
    prove: async () => {
      const limit = createTenantConfig("number", { computed: async () => 1 });
      expect(bootProblems({ limit })).toEqual([]);
      expect(bootProblems({ limit }, { "wrong:config:limit": 2 })).toMatchObject([
        { key: "wrong:config:limit" },
      ]);
    },
  },
  {
    section: "2.1",
    sentence:
      "`read`, `write` | access rules, e.g. `access.admin`, `access.systemAdmin` | Per-key role control, declared as `access: { read, write }` (shown in an example as direct `read`/`write`).",
    prove: async () => {
      const rules = { read: access.admin, write: access.systemAdmin };
      for (const options of [{ access: rules }, rules]) {
        const limit = untyped.tenant("number", options);
        expect(bootProblems({ limit })).toEqual([]);
        expect(limit.definition).toMatchObject(rules);
      }
      expect(bootProblems({ limit: untyped.tenant("number", { read: "admin" }) })).toMatchObject([
        { key: "wrong:config:limit" },
      ]);
      expect(
        bootProblems({ limit: untyped.tenant("number", { access: rules, ...rules }) }).length,
      ).toBeGreaterThan(0);
    },
  },
  {
    section: "2.1",
    sentence: "`allowPerRequest` | boolean | Default deny.",
    prove: async ({ app, newCaller }) => {
      const ctx = await app.ctx(newCaller());
      expect(files.config.maxUploadSizeMb.definition.allowPerRequest).toBe(false);
      await expect(resolveConfigOrParam(ctx, files.config.maxUploadSizeMb, "5")).rejects.toThrow(
        /max-upload-size-mb/,
      );
      expect(
        bootProblems({ flag: untyped.tenant("boolean", { allowPerRequest: "yes" }) }),
      ).toMatchObject([{ key: "wrong:config:flag" }]);
    },
  },
  {
    section: "2.1",
    sentence: "… Must be `true` for a request parameter to override the key.",
    prove: async ({ app, newCaller }) => {
      const ctx = await app.ctx(newCaller());
      const { limit } = declareKeys("files", {
        limit: createTenantConfig("number", { bounds: { min: 1, max: 9 }, allowPerRequest: false }),
      });
      await expect(resolveConfigOrParam(ctx, limit, "5")).rejects.toThrow(/allowPerRequest/);
      expect(await resolveConfigOrParam(ctx, files.config.pageSize, "50")).toBe(50);
    },
  },
  {
    section: "2.1",
    sentence: "… Boot fails if `true` on a `text` key …",
    prove: async () => {
      const name = untyped.tenant("text", { default: "", allowPerRequest: true });
      expect(bootProblems({ name })).toMatchObject([{ key: "wrong:config:name" }]);
    },
  },
  {
    section: "2.1",
    sentence: "… or on an `encrypted: true` key.",
    prove: async () => {
      const flag = untyped.tenant("boolean", { encrypted: true, allowPerRequest: true });
      expect(bootProblems({ flag })).toMatchObject([{ key: "wrong:config:flag" }]);
    },
  },
  {
    section: "2.1",
    sentence: "`options` | whitelist of allowed values | For `select` keys.",
    prove: async ({ newCaller, put, read }) => {
      const ann = newCaller();
      await put("user", files.config.listOrder, "oldest", ann);
      expect(await read(files.config.listOrder, ann)).toEqual({
        value: "newest",
        source: "default",
      });

      expect(bootProblems({ order: untyped.tenant("select", {}) })).toMatchObject([
        { key: "wrong:config:order" },
      ]);
      expect(bootProblems({ limit: untyped.tenant("number", { options: ["1"] }) })).toMatchObject([
        { key: "wrong:config:limit" },
      ]);
    },
  },
  {
    section: "2.1",
    sentence: "`encrypted` | boolean | Marks secret values.",
    prove: async ({ app, newCaller, newFeatureName, put, read }) => {
      const secret = untyped.tenant("number", { encrypted: true, default: "hunter2" });
      const [problem] = bootProblems({ secret });
      expect(problem?.key).toBe("wrong:config:secret");
      expect(JSON.stringify(problem)).not.toContain("hunter2");

      const { key } = declareKeys(newFeatureName(), {
        key: createTenantConfig("text", { encrypted: true }),
      });
      const ann = newCaller();
      await put("tenant", key, "hunter2", ann);
      expect(await read(key, ann)).toEqual({ value: undefined, source: "missing" });
      expect(JSON.stringify(app.logs)).not.toContain("hunter2");
    },
  },
];
