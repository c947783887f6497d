import {
  buildServer,
  type ConfigSource,
  createRegistry,
  createTenantConfig,
  createUserConfig,
  defineFeature,
  resolveConfigOrParam,
  validateAppOverrides,
  validateConfigKeyAllowPerRequest,
  validateConfigKeyBounds,
  validateConfigKeyComputed,
} from "keelson";
import { startTestApp } from "keelson/testing";
import { expect, vi } from "vitest";
import { declareKeys, files, plans, problemsOf, untyped } from "./fixture.ts";
import type { Row } from "./row.ts";

const registryOf = (keys: Parameters<typeof declareKeys>[1]) =>
  createRegistry([defineFeature("some", (r) => void r.config({ keys }))]);

/** Section 2.2, the resolver and the validators. */
export const resolverRows: readonly Row[] = [
  {
    section: "2.2",
    sentence: "`ctx.config(handle)` | handle → awaited | the resolved value, typed",
    prove: async ({ handle, newCaller, put }) => {
      const ann = newCaller();
      await put("tenant", files.config.maxUploadSizeMb, 77, ann);
      const { body } = await handle(
        async (ctx) => {
          const size: number = await ctx.config(files.config.maxUploadSizeMb);
          const order: "newest" | "name" = await ctx.config(files.config.listOrder);
          return { size, order };
        },
        { as: ann },
      );

      expect(body).toEqual({ size: 77, order: "newest" });
    },
  },
  {
    section: "2.2",
    sentence: "`createConfigResolver({ appOverrides })` | options object | resolver",
    prove: async ({ newCaller, newFeatureName, read }) => {
      const { limit } = declareKeys(newFeatureName(), {
        limit: createTenantConfig("number", { default: 1 }),
      });

      expect(await read(limit, newCaller(), { [limit.id]: 5 })).toEqual({
        value: 5,
        source: "app-override",
      });
      expect(await read(limit, newCaller())).toEqual({ value: 1, source: "default" });
    },
  },
  {
    section: "2.2",
    sentence:
      "`validateAppOverrides(registry, overrides)` | synchronous | throws on unknown keys, …",
    prove: async () => {
      const registry = registryOf({ limit: createTenantConfig("number", {}) });

      expect(validateAppOverrides(registry, { "some:config:limit": 1 })).toBeUndefined();
      expect(() => validateAppOverrides(registry, { "some:config:limits": 1 })).toThrow(
        /some:config:limits/,
      );
    },
  },
  {
    section: "2.2",
    sentence: "… type mismatches, …",
    prove: async () => {
      const registry = registryOf({
        limit: createTenantConfig("number", {}),
        flag: createTenantConfig("boolean", {}),
        name: createTenantConfig("text", {}),
        order: createTenantConfig("select", { options: ["a", "b"] }),
      });
      const overrides = {
        "some:config:limit": "1",
        "some:config:flag": "true",
        "some:config:name": 1,
        "some:config:order": "c",
      };
      const problems = problemsOf(() => validateAppOverrides(registry, overrides));

      expect(problems.map(({ key }) => key)).toEqual(Object.keys(overrides));
    },
  },
  {
    section: "2.2",
    sentence: "… bounds violations, …",
    prove: async () => {
      const registry = registryOf({
        limit: createTenantConfig("number", { bounds: { min: 1, max: 9 } }),
      });

      expect(validateAppOverrides(registry, { "some:config:limit": 9 })).toBeUndefined();
      for (const outside of [0, 10]) {
        expect(() => validateAppOverrides(registry, { "some:config:limit": outside })).toThrow(
          /some:config:limit/,
        );
      }
    },
  },
  {
    section: "2.2",
    sentence: "… and collision with a `computed` key",
    prove: async () => {
      const registry = registryOf({
        limit: createTenantConfig("number", { computed: async () => 1 }),
      });

      expect(() => validateAppOverrides(registry, { "some:config:limit": 1 })).toThrow(
        /some:config:limit/,
      );
    },
  },
  {
    section: "2.2",
    sentence:
      "`resolver.getWithSource(<key id>, <key definition>, <tenant id>, <user id>, <db>)` | async | `{ value, source }`",
    prove: async ({ newCaller, put, read }) => {
      const ann = newCaller();
      await put("user", files.config.pageSize, 30, ann);

      expect(await read(files.config.pageSize, ann)).toEqual({ value: 30, source: "user-row" });
      expect(await read(files.config.pageSize, newCaller())).toEqual({
        value: 20,
        source: "default",
      });
      await sourcesOfOverrides();
    },
  },
  {
    section: "2.2",
    sentence:
      "`resolveConfigOrParam(ctx, handle, paramValue, options?)` | async, for routes | value guaranteed inside the declared bounds",
    prove: async ({ app, newCaller, put }) => {
      const { pageSize } = files.config;
      const ann = newCaller();
      const ctx = await app.ctx(ann);
      for (const parameter of [
        "-1e9",
        "4",
        "5",
        "50",
        "100",
        "101",
        "1e300",
        "NaN",
        "Infinity",
        "0x10",
        "",
        " ",
        "many",
        undefined,
        null,
        {},
        ["7", "8"],
      ]) {
        const value = await resolveConfigOrParam(ctx, pageSize, parameter);
        expect(value).toBeGreaterThanOrEqual(5);
        expect(value).toBeLessThanOrEqual(100);
      }
      await put("system", pageSize, 4_000);
      try {
        expect(await (await app.ctx(newCaller())).config(pageSize)).toBe(4_000);
        expect(await resolveConfigOrParam(await app.ctx(newCaller()), pageSize, undefined)).toBe(
          100,
        );
      } finally {
        await app.rows.put({ scope: "system", key: pageSize.id, value: 4_000, deleted: true });
      }
    },
  },
  {
    section: "2.2",
    sentence:
      "`options.onClamp` | callback receiving `{ key, original, clamped, max }` | fired only when a number was actually clamped",
    prove: async ({ app, newCaller }) => {
      const ctx = await app.ctx(newCaller());
      const onClamp = vi.fn();
      for (const inside of ["5", "50", "100", "many", undefined]) {
        await resolveConfigOrParam(ctx, files.config.pageSize, inside, { onClamp });
      }
      expect(onClamp).not.toHaveBeenCalled();

      await resolveConfigOrParam(ctx, files.config.pageSize, "500", { onClamp });
      await resolveConfigOrParam(ctx, files.config.pageSize, "1", { onClamp });
      expect(onClamp.mock.calls).toEqual([
        [{ key: "files:config:page-size", original: 500, clamped: 100, max: 100 }],
        [{ key: "files:config:page-size", original: 1, clamped: 5, max: 100 }],
      ]);
    },
  },
  {
    section: "2.2",
    sentence:
      "`source` is one of: `user-row`, `tenant-row`, `system-row`, `app-override`, `computed`, `default`, `missing`.",
    prove: everySource,
  },
  {
    section: "3.3",
    sentence: "The source is one of the seven values in 2.2.",
    prove: everySource,
  },
  {
    section: "2.2",
    sentence:
      "Boot validators: `validateConfigKeyBounds` (min > max, default outside bounds, bounds on a non-number), …",
    prove: async () => {
      const bounds = { min: 2, max: 1 };
      for (const wrong of [
        untyped.tenant("number", { bounds }),
        untyped.tenant("number", { default: 3, bounds: { min: 1, max: 2 } }),
        untyped.tenant("text", { bounds: { min: 1, max: 2 } }),
      ]) {
        expect(() => validateConfigKeyBounds(registryOf({ wrong }))).toThrow(/some:config:wrong/);
      }
      const right = createTenantConfig("number", { default: 1, bounds: { min: 1, max: 2 } });
      expect(validateConfigKeyBounds(registryOf({ right }))).toBeUndefined();
    },
  },
  {
    section: "2.2",
    sentence: "… `validateConfigKeyComputed` (encrypted plus computed), …",
    prove: async () => {
      const wrong = untyped.tenant("text", { encrypted: true, computed: async () => "" });
      const right = createTenantConfig("text", { computed: async () => "" });

      expect(() => validateConfigKeyComputed(registryOf({ wrong }))).toThrow(/some:config:wrong/);
      expect(validateConfigKeyComputed(registryOf({ right }))).toBeUndefined();
    },
  },
  {
    section: "2.2",
    sentence: "… `validateConfigKeyAllowPerRequest` (allowPerRequest with text or encrypted).",
    prove: async () => {
      const text = untyped.tenant("text", { allowPerRequest: true });
      const secret = untyped.tenant("boolean", { encrypted: true, allowPerRequest: true });
      const right = createTenantConfig("boolean", { allowPerRequest: true });

      for (const wrong of [text, secret]) {
        expect(() => validateConfigKeyAllowPerRequest(registryOf({ wrong }))).toThrow(
          /some:config:wrong/,
        );
      }
      expect(validateConfigKeyAllowPerRequest(registryOf({ right }))).toBeUndefined();
    },
  },
  {
    section: "7.4",
    sentence: "… `validateAppOverrides` throws synchronously.",
    prove: async () => {
      const registry = registryOf({ limit: createTenantConfig("number", {}) });
      expect(() => void validateAppOverrides(registry, { "some:config:limit": "x" })).toThrow(
        /some:config:limit/,
      );
    },
  },
  {
    section: "7.4",
    sentence: "… boot fails on invalid declarations (2.1, 2.2); …",
    prove: async () => {
      const wrong = defineFeature("some", (r) => {
        r.config({
          keys: {
            order: createTenantConfig("number", { bounds: { min: 2, max: 1 } }),
            secret: untyped.user("text", { encrypted: true, computed: async () => "" }),
            name: untyped.system("text", { allowPerRequest: true }),
          },
        });
      });
      const keys = problemsOf(() => buildServer({ features: [wrong] })).map(({ key }) => key);
      expect(keys).toEqual(["some:config:order", "some:config:secret", "some:config:name"]);
    },
  },
];

async function everySource({
  newCaller,
  newFeatureName,
  put,
  read,
}: Parameters<Row["prove"]>[0]): Promise<void> {
  const ann = newCaller();
  const keys = declareKeys(newFeatureName(), {
    plain: createUserConfig("number", { default: 1 }),
    derived: createUserConfig("number", { computed: async () => 2 }),
    nothing: createUserConfig("number", {}),
  });
  const found: ConfigSource[] = [
    (await read(keys.nothing, ann)).source,
    (await read(keys.plain, ann)).source,
    (await read(keys.derived, ann)).source,
    (await read(keys.plain, ann, { [keys.plain.id]: 3 })).source,
  ];
  for (const scope of ["system", "tenant", "user"] as const) {
    await put(scope, keys.plain, 4, scope === "system" ? {} : ann);
    found.push((await read(keys.plain, ann, { [keys.plain.id]: 3 })).source);
  }
  expect(found).toEqual([
    "missing",
    "default",
    "computed",
    "app-override",
    "system-row",
    "tenant-row",
    "user-row",
  ]);
}

/** The resolver of a server knows what was set at deploy time, in the code and in SSM. */
async function sourcesOfOverrides(): Promise<void> {
  const { greeting, maxUploadSizeMb, pageSize } = files.config;
  const server = buildServer({
    features: [plans, files],
    config: { [greeting.id]: "Hi" },
    ssm: { path: "/conformance" },
  });
  const { resolver } = server;
  const app = await startTestApp(server, {
    parameters: { "/conformance/files/max-upload-size-mb": "50" },
  });
  try {
    const { db } = await app.ctx({ id: "support", tenantId: "operators" });
    const source = ({ id, definition }: typeof greeting | typeof pageSize) =>
      resolver.getWithSource(id, definition, "t", "u", db);
    expect(await source(greeting)).toEqual({ value: "Hi", source: "app-override" });
    expect(await source(maxUploadSizeMb)).toEqual({ value: 50, source: "app-override" });
    expect(await source(pageSize)).toEqual({ value: 20, source: "default" });
    expect([resolver.override(maxUploadSizeMb.id), resolver.override(pageSize.id)]).toEqual([
      50,
      undefined,
    ]);
  } finally {
    await app.close();
  }
}
