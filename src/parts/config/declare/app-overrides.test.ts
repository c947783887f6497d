import { describe, expect, test } from "vitest";
import { BootError } from "../../../base/errors/boot.ts";
import { type AppOverrides, appOverrideProblems, validateAppOverrides } from "./app-overrides.ts";
import { createSystemConfig, createTenantConfig, createUserConfig } from "./declaration.ts";
import type { ConfigKeyDefinition, ConfigKeyRegistry, KeyDeclaration } from "./key.ts";

const registry = registryOf({
  "files:config:max-upload-size-mb": createTenantConfig("number", {
    default: 10,
    bounds: { min: 1, max: 100 },
  }),
  "files:config:list-order": createUserConfig("select", { options: ["newest", "name"] }),
  "files:config:maintenance-mode": createSystemConfig("boolean", { default: false }),
  "files:config:greeting": createTenantConfig("text", {}),
  "files:config:storage-quota-mb": createTenantConfig("number", { computed: () => 1 }),
  "files:config:pin": createTenantConfig("number", { encrypted: true, bounds: { min: 1, max: 9 } }),
});

function registryOf(keys: Record<string, KeyDeclaration<unknown>>): ConfigKeyRegistry {
  const entries = Object.entries(keys).map(
    ([id, { definition }]) => [id, { id, feature: "files", name: "any", definition }] as const,
  );
  return { configKeys: new Map(entries) };
}

describe("validateAppOverrides", () => {
  test.each<[AppOverrides]>([
    [{}],
    [
      {
        "files:config:max-upload-size-mb": 1,
        "files:config:list-order": "name",
        "files:config:maintenance-mode": false,
      },
    ],
    [{ "files:config:max-upload-size-mb": 100, "files:config:greeting": "" }],
    [{ "files:config:pin": 5 }],
    [Object.assign(Object.create(null), { "files:config:greeting": "hello" })],
  ])("accepts %o", (overrides) => {
    expect(() => validateAppOverrides(registry, overrides)).not.toThrow();
  });

  test.each<[AppOverrides, string]>([
    [{ "files:config:nothing-of-the-kind": 1 }, "override-unknown"],
    [JSON.parse('{"__proto__":1}'), "override-unknown"],
    [{ constructor: 1 }, "override-unknown"],
    [{ toString: 1 }, "override-unknown"],
    [{ "": 1 }, "override-unknown"],
    [{ "files:config:max-upload-size-mb": "50" }, "override-type"],
    [{ "files:config:max-upload-size-mb": Number.NaN }, "override-type"],
    [{ "files:config:max-upload-size-mb": undefined }, "override-type"],
    [{ "files:config:maintenance-mode": "true" }, "override-type"],
    [{ "files:config:greeting": null }, "override-type"],
    [{ "files:config:list-order": "oldest" }, "override-type"],
    [{ "files:config:max-upload-size-mb": 0 }, "override-bounds"],
    [{ "files:config:max-upload-size-mb": 101 }, "override-bounds"],
    [{ "files:config:storage-quota-mb": 5 }, "override-computed"],
  ])("refuses %o: %s", (overrides, rule) => {
    expect(appOverrideProblems(registry, overrides).map((problem) => problem.rule)).toEqual([rule]);
  });

  test.each([
    undefined,
    null,
    5,
    "x",
    [],
    new Map([["files:config:greeting", "x"]]),
    { __proto__: { a: 1 } },
  ])("refuses %o, which is not a plain object", (overrides) => {
    const problems = appOverrideProblems(registry, overrides as unknown as AppOverrides);
    expect(problems.map(({ rule }) => rule)).toEqual(["override-object"]);
  });

  test("throws one BootError with every problem, synchronously", () => {
    const overrides = {
      "files:config:max-upload-size": 5,
      "files:config:max-upload-size-mb": 500,
      "files:config:greeting": 1,
    };
    expect(() => validateAppOverrides(registry, overrides)).toThrow(BootError);
    expect(appOverrideProblems(registry, overrides)).toEqual([
      {
        feature: "",
        key: "files:config:max-upload-size",
        rule: "override-unknown",
        message: "the override is for a key that no feature declares",
        fix: "did you mean files:config:max-upload-size-mb?",
      },
      {
        feature: "files",
        key: "files:config:max-upload-size-mb",
        rule: "override-bounds",
        message: "override 500 is above bounds.max 100",
        fix: "change the override or the bounds",
      },
      {
        feature: "files",
        key: "files:config:greeting",
        rule: "override-type",
        message: "override 1 is not a string",
        fix: "pass a text value",
      },
    ]);
  });

  test("never shows the value of a secret", () => {
    const shown = ["hunter2", 1234].map(
      (pin) => appOverrideProblems(registry, { "files:config:pin": pin })[0]?.message,
    );
    expect(shown).toEqual([
      "override (not shown) is not a finite number",
      "override (not shown) is above bounds.max 9",
    ]);
  });

  test("quotes and truncates a key that is not an identifier", () => {
    const keys = ["a\nforged: line", "x".repeat(100_000)].map(
      (id) => appOverrideProblems(registry, { [id]: 1 })[0]?.key ?? "",
    );
    expect(keys[0]).toBe('"a\\nforged: line"');
    expect(keys[1]?.length).toBeLessThan(100);
  });

  test("leaves invalid declarations to the validators", () => {
    const definition = undefined as unknown as ConfigKeyDefinition;
    const broken = {
      configKeys: new Map([
        ["files:config:x", { id: "files:config:x", feature: "files", name: "x", definition }],
      ]),
    };
    expect(appOverrideProblems(broken, { "files:config:x": 1 })).toEqual([]);
  });
});
