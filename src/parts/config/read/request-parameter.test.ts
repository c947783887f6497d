import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { createTenantConfig, createUserConfig } from "../declare/declaration.ts";
import type { ConfigKeyHandle, KeyDeclaration } from "../declare/key.ts";
import { type ClampData, resolveConfigOrParam } from "./request-parameter.ts";

const expiry = handle(
  createTenantConfig("number", {
    default: 900,
    bounds: { min: 60, max: 604_800 },
    allowPerRequest: true,
  }),
);
const flag = handle(createUserConfig("boolean", { default: true, allowPerRequest: true }));
const order = handle(
  createUserConfig("select", {
    options: ["newest", "name", "1"],
    default: "newest",
    allowPerRequest: true,
  }),
);

function handle<Value>({ definition }: KeyDeclaration<Value>): ConfigKeyHandle<Value> {
  return { id: "files:config:key", definition };
}

/** A ctx whose configuration has one value; `reads` counts how often it was asked. */
function configured(value: unknown) {
  const ctx = {
    reads: 0,
    config: async <Value>(_: ConfigKeyHandle<Value>) => {
      ctx.reads += 1;
      return value as Value;
    },
  };
  return ctx;
}

async function resolveNumber(param: unknown, level: unknown = 900) {
  const clamps: ClampData[] = [];
  const value = await resolveConfigOrParam(configured(level), expiry, param, {
    onClamp: (data) => clamps.push(data),
  });
  return { value, clamps };
}

describe("a number parameter", () => {
  test.each<[unknown, number]>([
    ["120", 120],
    [" 120 ", 120],
    ["+120", 120],
    ["120.5", 120.5],
    ["120.", 120],
    ["000120", 120],
    ["1.2e+2", 120],
    ["12000e-2", 120],
    [120, 120],
    ["60", 60],
    ["604800", 604_800],
  ])("%j within the bounds is used unchanged", async (param, expected) => {
    expect(await resolveNumber(param)).toEqual({ value: expected, clamps: [] });
  });

  test.each<[unknown, number, number]>([
    ["604801", 604_801, 604_800],
    ["59", 59, 60],
    ["-1", -1, 60],
    ["-0", -0, 60],
    [".5", 0.5, 60],
    [".25", 0.25, 60],
    [1e9, 1e9, 604_800],
    ["1e9", 1e9, 604_800],
    ["1e10", 1e10, 604_800],
    ["9".repeat(300), Number("9".repeat(300)), 604_800],
  ])(
    "%j outside the bounds is clamped and reported to onClamp",
    async (param, original, clamped) => {
      expect(await resolveNumber(param)).toEqual({
        value: clamped,
        clamps: [{ key: "files:config:key", original, clamped, max: 604_800 }],
      });
    },
  );

  test.each<[unknown]>([
    [undefined],
    [null],
    [""],
    ["  "],
    ["abc"],
    ["12abc"],
    ["1e999"],
    ["0x10"],
    ["1,000"],
    ["1_000"],
    ["."],
    ["NaN"],
    ["Infinity"],
    ["9".repeat(400)],
    [Number.NaN],
    [Number.POSITIVE_INFINITY],
    [true],
    [[120]],
    [{}],
    [120n],
  ])("%o falls back to the configured value without onClamp", async (param) => {
    expect(await resolveNumber(param)).toEqual({ value: 900, clamps: [] });
  });

  test("outside the bounds is clamped without onClamp as well", async () => {
    expect(await resolveConfigOrParam(configured(900), expiry, "1")).toBe(60);
  });

  test("falls back to the configured value, which is silently clamped", async () => {
    expect(await resolveNumber(undefined, 5)).toEqual({ value: 60, clamps: [] });
    expect(await resolveNumber("abc", 1e9)).toEqual({ value: 604_800, clamps: [] });
  });

  test("always gives a number within the bounds", async () => {
    const anyNumber = fc.double({ noNaN: true });
    await fc.assert(
      fc.asyncProperty(
        fc.oneof(fc.anything(), anyNumber, anyNumber.map(String)),
        anyNumber,
        async (param, level) => {
          const { value, clamps } = await resolveNumber(param, level);
          expect(value).toBeGreaterThanOrEqual(60);
          expect(value).toBeLessThanOrEqual(604_800);
          for (const { original, clamped } of clamps) expect(original).not.toBe(clamped);
        },
      ),
    );
  });

  test("rejects hostile text in linear time", async () => {
    expect((await resolveNumber(`${"1".repeat(1_000_000)}x`)).value).toBe(900);
  });
});

describe("a boolean parameter", () => {
  test.each<[unknown, boolean]>([
    ["true", true],
    ["1", true],
    [true, true],
    ["false", false],
    ["0", false],
    ["TRUE", false],
    ["yes", false],
    ["", false],
    [" true", false],
    [1, false],
    [["true"], false],
    [false, false],
  ])("%j gives %s", async (param, expected) => {
    expect(await resolveConfigOrParam(configured(!expected), flag, param)).toBe(expected);
  });

  test.each([undefined, null])("%o falls back to the configured value", async (param) => {
    expect(await resolveConfigOrParam(configured(true), flag, param)).toBe(true);
    expect(await resolveConfigOrParam(configured(false), flag, param)).toBe(false);
  });
});

describe("a select parameter", () => {
  test("accepts a declared option", async () => {
    const ctx = configured("newest");
    expect(await resolveConfigOrParam(ctx, order, "name")).toBe("name");
    expect(ctx.reads).toBe(0);
  });

  test.each([undefined, null, "", " ", "oldest", "NAME", "toString", 1, ["name"]])(
    "%o falls back to the configured value",
    async (param) => {
      expect(await resolveConfigOrParam(configured("newest"), order, param)).toBe("newest");
    },
  );

  test("is ignored when the key declares no options, as is possible in plain JavaScript", async () => {
    const { options: _none, ...definition } = order.definition;
    expect(await resolveConfigOrParam(configured("newest"), { ...order, definition }, "name")).toBe(
      "newest",
    );
  });
});

describe("keys that requests may not override", () => {
  const bounds = { min: 1, max: 10 };
  const closed = handle(createTenantConfig("number", { default: 5, bounds }));
  const select = handle(createTenantConfig("select", { options: ["a", "b"], default: "a" }));
  const text = handle(createTenantConfig("text", { default: "x" }));
  const secret = handle(createTenantConfig("boolean", { encrypted: true }));
  // As plain JavaScript might build them, past the validators.
  const openText = { ...text, definition: { ...text.definition, allowPerRequest: true } };
  const openSecret = { ...secret, definition: { ...secret.definition, allowPerRequest: true } };
  const unbounded = handle(createTenantConfig("number", { default: 5 }));
  const openUnbounded = {
    ...unbounded,
    definition: { ...unbounded.definition, allowPerRequest: true },
  };

  test.each<[string, ConfigKeyHandle<unknown>, RegExp]>([
    [
      "without allowPerRequest",
      closed,
      /^files:config:key: a request cannot override this key; declare it with allowPerRequest/,
    ],
    ["a text", text, /can never override a text key/],
    ["a text with allowPerRequest", openText, /can never override a text key/],
    ["a secret", secret, /can never override an encrypted key/],
    ["a secret with allowPerRequest", openSecret, /can never override an encrypted key/],
    ["a number without bounds", openUnbounded, /a number without bounds/],
  ])("%s: a parameter throws an error that names the key and the fix", async (_, key, message) => {
    await expect(resolveConfigOrParam(configured(5), key, "7")).rejects.toThrow(message);
  });

  test("never show the parameter's value in the error", async () => {
    await expect(resolveConfigOrParam(configured(5), secret, "hunter2")).rejects.not.toThrow(
      /hunter2/,
    );
  });

  test("give the configured value without a parameter", async () => {
    expect(await resolveConfigOrParam(configured(5), closed, undefined)).toBe(5);
    expect(await resolveConfigOrParam(configured(5), closed, "")).toBe(5);
    expect(await resolveConfigOrParam(configured(50), closed, null)).toBe(10);
    expect(await resolveConfigOrParam(configured("a"), select, " ")).toBe("a");
    expect(await resolveConfigOrParam(configured("y"), text, undefined)).toBe("y");
    expect(await resolveConfigOrParam(configured(true), secret, null)).toBe(true);
    expect(await resolveConfigOrParam(configured(undefined), closed, undefined)).toBeUndefined();
    expect(await resolveConfigOrParam(configured(500), unbounded, undefined)).toBe(500);
  });
});
