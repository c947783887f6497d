import { describe, expect, test } from "vitest";
import {
  createSystemConfig,
  createTenantConfig,
  createUserConfig,
} from "../declare/declaration.ts";
import type { ConfigKeyDefinition } from "../declare/key.ts";
import {
  cascade,
  cascadeFromComputed,
  frameworkDefault,
  type Levels,
  LockedValueError,
  type Misfit,
} from "./cascade.ts";

const limit = createUserConfig("number", { default: 10, bounds: { min: 1, max: 100 } }).definition;

/** Runs the cascade on what is given of the levels. */
function run(definition: ConfigKeyDefinition, levels: Partial<Levels>) {
  const misfits: Misfit[] = [];
  const outcome = cascade(
    definition,
    { rows: [], override: undefined, frameworkDefault: undefined, ...levels },
    (misfit) => misfits.push(misfit),
  );
  return { outcome, misfits };
}

function row(source: Levels["rows"][number]["source"], value: unknown): Levels["rows"][number] {
  return { source, row: { value } };
}

describe("the order of levels", () => {
  test("prefers the narrowest row to everything below", () => {
    const rows = [row("user-row", 1), row("tenant-row", 2), row("system-row", 3)];
    expect(run(limit, { rows, override: 4 }).outcome).toEqual({ value: 1, source: "user-row" });
    expect(run(limit, { rows: rows.slice(1), override: 4 }).outcome).toEqual({
      value: 2,
      source: "tenant-row",
    });
    expect(run(limit, { rows: rows.slice(2), override: 4 }).outcome).toEqual({
      value: 3,
      source: "system-row",
    });
    expect(run(limit, { override: 4 }).outcome).toEqual({ value: 4, source: "app-override" });
  });

  test("prefers a row to computed, and computed to the default", () => {
    const { definition } = createTenantConfig("number", { default: 1, computed: () => 2 });
    expect(run(definition, { rows: [row("system-row", 3)] }).outcome).toEqual({
      value: 3,
      source: "system-row",
    });
    expect(run(definition, {}).outcome).toBe("ask-computed");
    const levels = { frameworkDefault: 4 };
    expect(cascadeFromComputed(definition, 2, levels, () => {})).toEqual({
      value: 2,
      source: "computed",
    });
    expect(cascadeFromComputed(definition, undefined, levels, () => {})).toEqual({
      value: 1,
      source: "default",
    });
  });

  test("falls back to the default without a misfit when computed returns undefined", () => {
    const misfits: Misfit[] = [];
    cascadeFromComputed(limit, undefined, { frameworkDefault: undefined }, (misfit) =>
      misfits.push(misfit),
    );
    expect(misfits).toEqual([]);
  });

  test("prefers the feature's default to the framework's, and reports a missing value without both", () => {
    const bare = createTenantConfig("number", {}).definition;
    expect(run(limit, { frameworkDefault: 5 }).outcome).toEqual({ value: 10, source: "default" });
    expect(run(bare, { frameworkDefault: 5 }).outcome).toEqual({ value: 5, source: "default" });
    expect(run(bare, {}).outcome).toEqual({ value: undefined, source: "missing" });
  });

  test.each([
    [createSystemConfig("boolean", { default: true }), false],
    [createTenantConfig("number", { default: 5 }), 0],
    [createTenantConfig("number", { default: 5 }), -0],
    [createTenantConfig("text", { default: "x" }), ""],
    [createTenantConfig("select", { options: ["", "a"], default: "a" }), ""],
  ])("%o: accepts %j at every level", ({ definition }, value) => {
    expect(run(definition, { rows: [row("system-row", value)] }).outcome).toEqual({
      value,
      source: "system-row",
    });
    expect(run(definition, { override: value }).outcome).toEqual({ value, source: "app-override" });
    expect(
      cascadeFromComputed(definition, value, { frameworkDefault: undefined }, () => {}),
    ).toEqual({
      value,
      source: "computed",
    });
    expect(run({ ...definition, default: value }, {}).outcome).toEqual({
      value,
      source: "default",
    });
  });
});

describe("secrets that cannot be decrypted", () => {
  const secret = createTenantConfig("text", { encrypted: true, default: "x" }).definition;
  const locked = {
    source: "tenant-row",
    row: { locked: "it was sealed with another key", ringKey: "2026" },
  } as const;

  test("fail the read with 503 instead of falling back, and tell only the operator the reason and the key", () => {
    let thrown: unknown;
    try {
      run(secret, { rows: [locked, row("system-row", "y")], override: "z" });
    } catch (error) {
      thrown = error;
    }
    expect(thrown).toBeInstanceOf(LockedValueError);
    expect(thrown).toMatchObject({
      name: "LockedValueError",
      code: "config_unavailable",
      status: 503,
      message: "Configuration cannot be read at the moment",
      cause: new Error(
        "the tenant-row of an encrypted key cannot be opened: it was sealed with another key",
      ),
      ringKey: "2026",
    });
  });

  test("do not fail a read that a narrower row decides", () => {
    const { outcome } = run(secret, { rows: [row("user-row", "y"), locked] });
    expect(outcome).toEqual({ value: "y", source: "user-row" });
  });
});

describe("values that do not fit", () => {
  test.each([undefined, null, "5", Number.NaN, Number.POSITIVE_INFINITY, 5n, {}, [5], true])(
    "%o for a number key falls through to the next level with one misfit",
    (value) => {
      const { outcome, misfits } = run(limit, {
        rows: [row("user-row", value), row("tenant-row", 2)],
      });
      expect(outcome).toEqual({ value: 2, source: "tenant-row" });
      expect(misfits.map(({ source }) => source)).toEqual(["user-row"]);
    },
  );

  test("a number out of bounds is clamped in user and tenant rows, and used unchanged in system rows", () => {
    const from = (source: "user-row" | "tenant-row" | "system-row", value: number) =>
      run(limit, { rows: [row(source, value)] });
    expect(from("user-row", 500)).toEqual({
      outcome: { value: 100, source: "user-row" },
      misfits: [{ source: "user-row", reason: "500 is above bounds.max 100; it is clamped" }],
    });
    expect(from("tenant-row", 0).outcome).toEqual({ value: 1, source: "tenant-row" });
    expect(from("system-row", 500)).toEqual({
      outcome: { value: 500, source: "system-row" },
      misfits: [
        { source: "system-row", reason: "500 is above bounds.max 100; it is used unchanged" },
      ],
    });
    expect(run(limit, { override: 500 })).toEqual({
      outcome: { value: 500, source: "app-override" },
      misfits: [],
    });
  });

  test("a computed number is clamped, except for a system key", () => {
    const bounds = { min: 1, max: 100 };
    const computed = () => 500;
    const of = ({ definition }: { definition: ConfigKeyDefinition }) =>
      cascadeFromComputed(definition, 500, { frameworkDefault: undefined }, () => {}).value;
    expect(of(createUserConfig("number", { bounds, computed }))).toBe(100);
    expect(of(createTenantConfig("number", { bounds, computed }))).toBe(100);
    expect(of(createSystemConfig("number", { bounds, computed }))).toBe(500);
  });

  test("a removed option and a computed value of the wrong type fall through to the next level", () => {
    const { definition } = createTenantConfig("select", { options: ["a", "b"], default: "a" });
    const gone = run(definition, { rows: [row("tenant-row", "c")] });
    expect(gone.outcome).toEqual({ value: "a", source: "default" });
    expect(gone.misfits).toEqual([
      {
        source: "tenant-row",
        reason: '"c" is not one of the options ["a", "b"]; the next level decides',
      },
    ]);
    const misfits: Misfit[] = [];
    const computed = cascadeFromComputed(definition, 5, { frameworkDefault: undefined }, (misfit) =>
      misfits.push(misfit),
    );
    expect(computed).toEqual({ value: "a", source: "default" });
    expect(misfits).toHaveLength(1);
  });

  test("an override that skipped validateAppOverrides falls through as well", () => {
    expect(run(limit, { override: "5" })).toMatchObject({
      outcome: { value: 10, source: "default" },
      misfits: [{ source: "app-override" }],
    });
  });

  test("a misfit reason never shows the value of a secret", () => {
    const { definition } = createTenantConfig("number", {
      encrypted: true,
      bounds: { min: 1, max: 9 },
    });
    const { misfits } = run(definition, {
      rows: [row("tenant-row", "hunter2"), row("system-row", 1234)],
    });
    expect(misfits).toHaveLength(2);
    expect(JSON.stringify(misfits)).not.toMatch(/hunter2|1234/);
  });
});

const uploadSize = "files:config:max-upload-size-mb";

test("the maximum upload size defaults to 10 MB", () => {
  expect(frameworkDefault(uploadSize, createTenantConfig("number", {}).definition)).toBe(10);
});

test("the framework default is clamped to the declared bounds", () => {
  const within = (min: number, max: number) =>
    frameworkDefault(uploadSize, createTenantConfig("number", { bounds: { min, max } }).definition);
  expect([within(1, 100), within(20, 100), within(1, 5)]).toEqual([10, 20, 5]);
});

test("the framework default does not apply to a key of another type or to another key", () => {
  expect(frameworkDefault(uploadSize, createTenantConfig("text", {}).definition)).toBeUndefined();
  expect(
    frameworkDefault("files:config:other", createTenantConfig("number", {}).definition),
  ).toBeUndefined();
  const bounds = { min: 1, max: 9 };
  expect(
    frameworkDefault("files:config:other", createTenantConfig("number", { bounds }).definition),
  ).toBeUndefined();
  expect(
    frameworkDefault("__proto__", createTenantConfig("number", {}).definition),
  ).toBeUndefined();
});
