import { describe, expect, test } from "vitest";
import { access } from "../../../base/identity/access.ts";
import { createSystemConfig, createTenantConfig, createUserConfig } from "./declaration.ts";

describe("the factories", () => {
  test("set the scope and the default access of their keys", () => {
    expect(createSystemConfig("boolean", { default: false }).definition).toMatchObject({
      scope: "system",
      type: "boolean",
      default: false,
      read: access.authenticated,
      write: access.systemAdmin,
      allowPerRequest: false,
      encrypted: false,
    });
    expect(createTenantConfig("number", {}).definition).toMatchObject({
      scope: "tenant",
      read: access.authenticated,
      write: access.admin,
    });
    expect(createUserConfig("text", {}).definition).toMatchObject({
      scope: "user",
      read: access.authenticated,
      write: access.authenticated,
    });
  });

  test("add no members for options that are not given", () => {
    const { definition } = createTenantConfig("number", {});
    for (const name of ["default", "bounds", "options", "computed"])
      expect(definition).not.toHaveProperty(name);
  });

  test("keep the declared options", () => {
    const computed = async () => 5;
    const { definition } = createTenantConfig("number", {
      default: 3,
      bounds: { min: 1, max: 9 },
      computed,
      allowPerRequest: true,
    });
    expect(definition).toMatchObject({
      default: 3,
      bounds: { min: 1, max: 9 },
      computed,
      allowPerRequest: true,
    });
    expect(createTenantConfig("text", { encrypted: true }).definition.encrypted).toBe(true);
    expect(createTenantConfig("text", { encrypted: false }).definition.encrypted).toBe(false);
    expect(createTenantConfig("select", { options: ["a", "b"] }).definition.options).toEqual([
      "a",
      "b",
    ]);
  });

  test("take access rules directly or under `access`", () => {
    const rules = { read: access.admin, write: access.systemAdmin };
    expect(createTenantConfig("number", rules).definition).toMatchObject(rules);
    expect(createTenantConfig("number", { access: rules }).definition).toMatchObject(rules);
    expect(
      createTenantConfig("number", { access: { read: access.everyone } }).definition,
    ).toMatchObject({
      read: access.everyone,
      write: access.admin,
    });
  });

  test("freeze the declaration, so that later changes to the options do not affect it", () => {
    const options = { bounds: { min: 1, max: 2 }, default: 1 };
    const declaration = createTenantConfig("number", options);
    options.bounds.max = 1000;
    options.default = 500;
    expect(declaration.definition).toMatchObject({ bounds: { min: 1, max: 2 }, default: 1 });
    for (const part of [
      declaration,
      declaration.definition,
      declaration.definition.bounds,
      declaration.definition.declared,
    ]) {
      expect(Object.isFrozen(part)).toBe(true);
    }
  });

  test.each([
    undefined,
    null,
    "text",
    1,
    [],
    () => 1,
    { bounds: null, options: 5, computed: 5, access: null },
  ])("accept %o as options without throwing", (options) => {
    const create = createTenantConfig as (type: unknown, options: unknown) => unknown;
    expect(() => create("number", options)).not.toThrow();
    expect(() => create(options, options)).not.toThrow();
  });

  test("read a flag that is not a boolean as its safe value", () => {
    const create = createTenantConfig as unknown as (
      type: string,
      options: object,
    ) => ReturnType<typeof createTenantConfig>;
    const { definition } = create("number", { encrypted: "no", allowPerRequest: "yes" });
    expect(definition).toMatchObject({ encrypted: true, allowPerRequest: false });
  });
});
