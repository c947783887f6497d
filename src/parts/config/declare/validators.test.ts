import { describe, expect, test } from "vitest";
import { BootError, type BootProblem } from "../../../base/errors/boot.ts";
import { access } from "../../../base/identity/access.ts";
import { createSystemConfig, createTenantConfig, createUserConfig } from "./declaration.ts";
import {
  type ConfigKeyRegistry,
  configKeyId,
  type KeyDeclaration,
  type RegisteredConfigKey,
} from "./key.ts";
import {
  configKeyProblems,
  validateConfigKeyAllowPerRequest,
  validateConfigKeyBounds,
  validateConfigKeyComputed,
} from "./validators.ts";

/** The factory as plain JavaScript sees it. */
const declare = createTenantConfig as unknown as (
  type: unknown,
  options?: unknown,
) => KeyDeclaration<unknown>;

function registered(name: string, { definition }: KeyDeclaration<unknown>): RegisteredConfigKey {
  return { id: configKeyId("files", name), feature: "files", name, definition };
}

function registryOf(keys: Record<string, KeyDeclaration<unknown>>): ConfigKeyRegistry {
  const list = Object.entries(keys).map(([name, declaration]) => registered(name, declaration));
  return { configKeys: new Map(list.map((key) => [key.id, key])) };
}

function rulesOf(declaration: KeyDeclaration<unknown>): string[] {
  return configKeyProblems(registered("maxSize", declaration)).map(({ rule }) => rule);
}

/** Each says something, in more than a word. */
function expectAdvice(problems: readonly BootProblem[]): void {
  for (const { message, fix } of problems) expect([message, fix]).toEqual([words, words]);
}
const words = expect.stringMatching(/\w+\W+\w+/);

function problemsOf(work: () => void) {
  try {
    work();
  } catch (error) {
    if (error instanceof BootError) return error.problems;
    throw error;
  }
  return [];
}

describe("configKeyProblems", () => {
  test.each<[string, KeyDeclaration<unknown>]>([
    [
      "a number with everything",
      createTenantConfig("number", {
        default: 1,
        bounds: { min: 1, max: 1 },
        allowPerRequest: true,
      }),
    ],
    [
      "a default on a bound",
      createTenantConfig("number", { default: 9, bounds: { min: 0, max: 9 } }),
    ],
    [
      "a boolean from a request",
      createUserConfig("boolean", { default: false, allowPerRequest: true }),
    ],
    [
      "a select",
      createUserConfig("select", { options: ["a", "b"], default: "a", allowPerRequest: true }),
    ],
    ["an empty text", createSystemConfig("text", { default: "" })],
    ["a secret with a default", createTenantConfig("text", { encrypted: true, default: "x" })],
    [
      "a computed key with bounds",
      createTenantConfig("number", { computed: () => 1, bounds: { min: 0, max: 1 } }),
    ],
    [
      "access rules",
      createTenantConfig("number", {
        access: { read: access.admin, write: access.roles("editor") },
      }),
    ],
    [
      "explicit switches",
      createTenantConfig("number", { allowPerRequest: false, encrypted: false }),
    ],
    [
      "options that are undefined",
      declare("number", { default: undefined, bounds: undefined, access: undefined }),
    ],
  ])("finds nothing wrong with %s", (_, declaration) => {
    expect(rulesOf(declaration)).toEqual([]);
  });

  test.each<[string, KeyDeclaration<unknown>, string[]]>([
    ["an unknown type", declare("integer", { default: 1 }), ["key-type"]],
    [
      "an unknown type with the options of others",
      declare("integer", { default: {}, bounds: 1, options: 1 }),
      ["key-type"],
    ],
    ["options that are none", declare("number", null), ["key-options"]],
    ["options that are a list", declare("number", [1]), ["key-options"]],
    ["an unknown option", declare("number", { bound: { min: 0, max: 1 } }), ["unknown-option"]],
    [
      "the option __proto__",
      declare("number", JSON.parse('{"__proto__":{"encrypted":true}}')),
      ["unknown-option"],
    ],
    ["allowPerRequest as a text", declare("boolean", { allowPerRequest: "true" }), ["option-type"]],
    ["encrypted as a number", declare("boolean", { encrypted: 1 }), ["option-type"]],
    ["a select without options", declare("select", {}), ["select-options"]],
    ["a select with an empty list", declare("select", { options: [] }), ["select-options"]],
    ["a select with numbers", declare("select", { options: [1] }), ["select-options"]],
    [
      "a select with a text and a number",
      declare("select", { options: ["a", 1] }),
      ["select-options"],
    ],
    [
      "a select with an option twice",
      declare("select", { options: ["a", "a"] }),
      ["select-options"],
    ],
    ["options on a number", declare("number", { options: ["1"] }), ["options-type"]],
    ["bounds on a boolean", declare("boolean", { bounds: { min: 0, max: 1 } }), ["bounds-type"]],
    ["bounds on a text", declare("text", { bounds: { min: 0, max: 1 } }), ["bounds-type"]],
    [
      "bounds on a select",
      declare("select", { options: ["a"], bounds: { min: 0, max: 1 } }),
      ["bounds-type"],
    ],
    ["bounds that are null", declare("number", { bounds: null }), ["bounds-shape"]],
    ["bounds without max", declare("number", { bounds: { min: 1 } }), ["bounds-shape"]],
    ["bounds without min", declare("number", { bounds: { max: 1 } }), ["bounds-shape"]],
    [
      "bounds with NaN",
      declare("number", { bounds: { min: Number.NaN, max: 1 } }),
      ["bounds-shape"],
    ],
    [
      "bounds without end",
      declare("number", { bounds: { min: 1, max: Number.POSITIVE_INFINITY } }),
      ["bounds-shape"],
    ],
    [
      "bounds with a third member",
      declare("number", { bounds: { min: 1, max: 2, step: 1 } }),
      ["bounds-shape"],
    ],
    [
      "min above max",
      declare("number", { bounds: { min: 2, max: 1 }, default: 5 }),
      ["bounds-order"],
    ],
    [
      "a default below min",
      declare("number", { bounds: { min: 1, max: 2 }, default: 0 }),
      ["default-bounds"],
    ],
    [
      "a default above max",
      declare("number", { bounds: { min: 1, max: 2 }, default: 3 }),
      ["default-bounds"],
    ],
    ["a text as the default of a number", declare("number", { default: "1" }), ["default-type"]],
    [
      "NaN as the default of a number",
      declare("number", { default: Number.NaN }),
      ["default-type"],
    ],
    ["a number as the default of a boolean", declare("boolean", { default: 0 }), ["default-type"]],
    ["null as a default", declare("text", { default: null }), ["default-type"]],
    [
      "a default that is none of the options",
      declare("select", { options: ["a"], default: "b" }),
      ["default-type"],
    ],
    ["computed that is a value", declare("number", { computed: 5 }), ["computed-function"]],
    [
      "computed and encrypted",
      declare("text", { computed: () => "x", encrypted: true }),
      ["computed-encrypted"],
    ],
    ["allowPerRequest on a text", declare("text", { allowPerRequest: true }), ["per-request-text"]],
    [
      "allowPerRequest on a secret",
      declare("boolean", { allowPerRequest: true, encrypted: true }),
      ["per-request-encrypted"],
    ],
    [
      "allowPerRequest without bounds",
      declare("number", { allowPerRequest: true }),
      ["per-request-bounds"],
    ],
    ["access that is a text", declare("number", { access: "admin" }), ["access-rule"]],
    ["access that is null", declare("number", { access: null }), ["access-rule"]],
    ["read that is a text", declare("number", { read: "admin" }), ["access-rule"]],
    [
      "write under access that is null",
      declare("number", { access: { write: null } }),
      ["access-rule"],
    ],
    [
      "a third rule under access",
      declare("number", { access: { delete: access.admin } }),
      ["unknown-option"],
    ],
    [
      "access stated twice",
      declare("number", { access: { read: access.admin }, read: access.admin }),
      ["access-twice"],
    ],
    [
      "write beside access",
      declare("number", { access: {}, write: access.admin }),
      ["access-twice"],
    ],
    [
      "everything at once",
      declare("text", {
        default: 1,
        bounds: 1,
        computed: 1,
        allowPerRequest: true,
        encrypted: true,
        options: 1,
        read: 1,
        x: 1,
      }),
      [
        "unknown-option",
        "options-type",
        "bounds-type",
        "default-type",
        "computed-function",
        "computed-encrypted",
        "per-request-text",
        "per-request-encrypted",
        "access-rule",
      ],
    ],
  ])("reports %s with the problem and a fix", (_, declaration, rules) => {
    const problems = configKeyProblems(registered("maxSize", declaration));
    expect(problems.map(({ rule }) => rule)).toEqual(rules);
    expectAdvice(problems);
  });

  test("reports a name without a kebab-case form and a name that is too long", () => {
    const of = (name: string) => configKeyProblems(registered(name, declare("number", {})));
    expect(of("max_size").map(({ rule }) => rule)).toEqual(["key-name"]);
    const longest = "a".repeat(256 - configKeyId("files", "").length);
    expect(of(longest)).toEqual([]);
    expect(of(`${longest}a`).map(({ rule }) => rule)).toEqual(["key-length"]);
    expectAdvice([...of("max_size"), ...of(`${longest}a`)]);
  });

  test("lists the valid options for an unknown one", () => {
    const [problem] = configKeyProblems(registered("maxSize", declare("number", { bound: 1 })));
    expect(problem).toMatchObject({
      message: 'unknown option "bound"',
      fix: expect.stringContaining("default, bounds, computed"),
    });
  });

  test.each([undefined, null, 5, "x", {}, { scope: "tenant", type: "number" }])(
    "reports %o in place of a declaration",
    (definition) => {
      const key = {
        ...registered("maxSize", declare("number", {})),
        definition,
      } as unknown as RegisteredConfigKey;
      expect(configKeyProblems(key).map(({ rule }) => rule)).toEqual(["not-a-declaration"]);
      expectAdvice(configKeyProblems(key));
    },
  );

  test("names feature, key, problem and fix", () => {
    const declaration = createTenantConfig("number", { default: 0, bounds: { min: 1, max: 5 } });
    expect(configKeyProblems(registered("maxUploadSizeMb", declaration))).toEqual([
      {
        feature: "files",
        key: "files:config:max-upload-size-mb",
        rule: "default-bounds",
        message: "default 0 is below bounds.min 1",
        fix: "raise the default or lower the bound",
      },
    ]);
  });

  test("suggests a fix for a default outside the bounds on either side", () => {
    const fixOf = (value: number) =>
      configKeyProblems(
        registered("size", declare("number", { default: value, bounds: { min: 1, max: 5 } })),
      )[0]?.fix;
    expect([fixOf(0), fixOf(6)]).toEqual([
      "raise the default or lower the bound",
      "lower the default or raise the bound",
    ]);
  });

  test("never shows the default of a secret", () => {
    const [problem] = configKeyProblems(
      registered("secret", declare("number", { encrypted: true, default: "hunter2" })),
    );
    expect(problem?.message).toBe("default (not shown) is not a finite number");
  });
});

describe("the boot validators", () => {
  const wrong = registryOf({
    order: declare("number", { bounds: { min: 2, max: 1 } }),
    outside: declare("number", { bounds: { min: 1, max: 2 }, default: 3 }),
    boundedText: declare("text", { bounds: { min: 1, max: 2 } }),
    computedSecret: declare("text", { encrypted: true, computed: () => "x" }),
    textFromRequest: declare("text", { allowPerRequest: true }),
    secretFromRequest: declare("boolean", { encrypted: true, allowPerRequest: true }),
    unboundedFromRequest: declare("number", { allowPerRequest: true }),
    fine: createTenantConfig("number", { default: 1 }),
  });

  test.each([
    [validateConfigKeyBounds, ["order", "outside", "bounded-text"]],
    [validateConfigKeyComputed, ["computed-secret"]],
    [
      validateConfigKeyAllowPerRequest,
      ["text-from-request", "secret-from-request", "unbounded-from-request"],
    ],
  ])("%o throws one BootError with the problems of all keys", (validate, names) => {
    expect(problemsOf(() => validate(wrong)).map(({ key }) => key)).toEqual(
      names.map((name) => `files:config:${name}`),
    );
  });

  test("accept valid keys", () => {
    const sound = registryOf({
      fine: createTenantConfig("number", { default: 1, bounds: { min: 0, max: 2 } }),
    });
    for (const validate of [
      validateConfigKeyBounds,
      validateConfigKeyComputed,
      validateConfigKeyAllowPerRequest,
    ]) {
      expect(() => validate(sound)).not.toThrow();
    }
  });
});
