import {
  access,
  buildServer,
  type ConfigKeyHandle,
  createSystemConfig,
  createTenantConfig,
  createUserConfig,
  defineFeature,
} from "keelson";
import { expect } from "vitest";
import { bootProblems, declareKeys, files, untyped } from "./fixture.ts";
import type { Row } from "./row.ts";

/** Section 2.1, how configuration keys are declared. */
export const configKeyRows: readonly Row[] = [
  {
    section: "2.1",
    sentence: "Keys are declared inside `r.config({ keys: { <keyName>: <declaration> } })`.",
    prove: async ({ handle }) => {
      expect(Object.keys(files.config)).toContain("greeting");
      expect(
        (await handle((ctx) => ctx.config(files.config.greeting).then((value) => [value]))).body,
      ).toEqual(["Hello"]);
    },
  },
  {
    section: "2.1",
    sentence: "A declaration is created by one of three factories.",
    prove: async () => {
      const made = [
        createSystemConfig("number", {}),
        createTenantConfig("number", {}),
        createUserConfig("number", {}),
      ];
      expect(bootProblems({ ...made })).not.toContainEqual(
        expect.objectContaining({ rule: "not-a-declaration" }),
      );
      expect(bootProblems({ byHand: { type: "number", default: 1 } })).toMatchObject([
        { key: "wrong:config:by-hand" },
      ]);
    },
  },
  {
    section: "2.1",
    sentence:
      "Each takes the value type as its first argument and an options object as its second.",
    prove: async () => {
      for (const factory of Object.values(untyped)) {
        expect(bootProblems({ limit: factory("number", { default: 1 }) })).toEqual([]);
        expect(bootProblems({ limit: factory({ default: 1 }, "number") }).length).toBeGreaterThan(
          0,
        );
        expect(bootProblems({ limit: factory("number", undefined) })).toEqual([]); // none is required
        expect(bootProblems({ limit: factory("number", null) })).toMatchObject([
          { key: "wrong:config:limit" },
        ]);
      }
    },
  },
  {
    section: "2.1",
    sentence: "`createSystemConfig(type, options)` | system | operations team, all tenants at once",
    prove: async ({ newCaller, newFeatureName, put, read }) => {
      const { limit } = declareKeys(newFeatureName(), {
        limit: createSystemConfig("number", { default: 1 }),
      });
      await put("system", limit, 7);

      expect(limit.definition).toMatchObject({ scope: "system", write: access.systemAdmin });
      for (const caller of [newCaller(), newCaller(), {}]) {
        expect(await read(limit, caller)).toEqual({ value: 7, source: "system-row" });
      }
    },
  },
  {
    section: "2.1",
    sentence: "`createTenantConfig(type, options)` | tenant | tenant administrator",
    prove: async ({ newCaller, newFeatureName, put, read }) => {
      const { limit } = declareKeys(newFeatureName(), {
        limit: createTenantConfig("number", { default: 1 }),
      });
      const [ann, other] = [newCaller(), newCaller()];
      await put("tenant", limit, 7, ann);

      expect(limit.definition).toMatchObject({ scope: "tenant", write: access.admin });
      expect(await read(limit, ann)).toEqual({ value: 7, source: "tenant-row" });
      expect(await read(limit, { ...ann, id: "colleague" })).toEqual({
        value: 7,
        source: "tenant-row",
      });
      expect(await read(limit, other)).toEqual({ value: 1, source: "default" });
    },
  },
  {
    section: "2.1",
    sentence: "`createUserConfig(type, options)` | user | the end user, personal preference only",
    prove: async ({ newCaller, newFeatureName, put, read }) => {
      const { limit } = declareKeys(newFeatureName(), {
        limit: createUserConfig("number", { default: 1 }),
      });
      const ann = newCaller();
      await put("user", limit, 7, ann);

      expect(limit.definition).toMatchObject({ scope: "user", write: access.authenticated });
      expect(await read(limit, ann)).toEqual({ value: 7, source: "user-row" });
      expect(await read(limit, { ...ann, id: "colleague" })).toEqual({
        value: 1,
        source: "default",
      });
      expect(await read(limit, { ...ann, tenantId: "elsewhere" })).toEqual({
        value: 1,
        source: "default",
      });
    },
  },
  {
    section: "2.1",
    sentence: "Value types: `number`, `boolean`, `select`, `text`.",
    prove: async ({ handle }) => {
      const { pageSize, showHidden, listOrder, greeting } = files.config;
      const { body } = await handle((ctx) =>
        Promise.all(
          [pageSize, showHidden, listOrder, greeting].map((key) => ctx.config<unknown>(key)),
        ),
      );

      expect(body).toEqual([20, true, "newest", "Hello"]);
      expect(bootProblems({ when: untyped.tenant("date", {}) })).toMatchObject([
        { key: "wrong:config:when" },
      ]);
    },
  },
  {
    section: "2.1",
    sentence: "A key may also be flagged `encrypted: true`.",
    prove: async () => {
      const secret = createTenantConfig("text", { encrypted: true });
      expect(bootProblems({ secret })).toEqual([]);
      expect(secret.definition.encrypted).toBe(true);
    },
  },
  {
    section: "2.1",
    sentence: "Key identifiers have the shape `<feature>:config:<kebab-case-name>`.",
    prove: async () => {
      expect(files.config.signedUrlExpirySeconds.id).toBe("files:config:signed-url-expiry-seconds");
      expect(files.config.greeting.id).toBe("files:config:greeting");
      expect(bootProblems({ größe: createTenantConfig("number", {}) }).length).toBeGreaterThan(0);
    },
  },
  {
    section: "2.1",
    sentence: "The typed handle returned by a declaration is `ConfigKeyHandle<T>`.",
    prove: async ({ app, newCaller }) => {
      const handle: ConfigKeyHandle<"newest" | "name"> = files.config.listOrder;
      // @ts-expect-error the handle of a select key is no handle of a number
      const wrong: ConfigKeyHandle<number> = handle;
      const value: "newest" | "name" = await (await app.ctx(newCaller())).config(handle);

      expect(wrong).toMatchObject({
        id: "files:config:list-order",
        definition: { type: "select" },
      });
      expect(value).toBe("newest");
    },
  },
  {
    section: "1",
    sentence: "Every configurable variable is declared exactly once, in one place.",
    prove: async () => {
      const twice = defineFeature("twice", (r) => {
        r.config({ keys: { limit: createTenantConfig("number", { default: 1 }) } });
        r.config({ keys: { limit: createTenantConfig("number", { default: 2 }) } });
      });
      expect(() => buildServer({ features: [twice] })).toThrow(/twice:config:limit/);
    },
  },
  {
    section: "1",
    sentence:
      "The declaration fixes the level at which it may be set, its defaults, its bounds and its resolution cascade.",
    prove: async () => {
      const { pageSize } = files.config;
      expect(pageSize.definition).toMatchObject({
        scope: "user",
        default: 20,
        bounds: { min: 5, max: 100 },
      });
      expect(
        Object.isFrozen(pageSize) &&
          Object.isFrozen(pageSize.definition) &&
          Object.isFrozen(pageSize.definition.bounds),
      ).toBe(true);
    },
  },
];
