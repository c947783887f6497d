import { describe, expectTypeOf, test } from "vitest";
import type { PipelineContext } from "../../src/app/handlers/pipeline-context.ts";
import { access } from "../../src/base/identity/access.ts";
import {
  createSystemConfig,
  createTenantConfig,
  createUserConfig,
} from "../../src/parts/config/declare/declaration.ts";
import type {
  ComputedContext,
  ConfigKeyHandle,
  KeyDeclaration,
} from "../../src/parts/config/declare/key.ts";
import type { ConfigWriteResult } from "../../src/parts/config/operate/change.ts";
import { setConfig } from "../../src/parts/config/operate/change.ts";
import {
  type ClampData,
  resolveConfigOrParam,
} from "../../src/parts/config/read/request-parameter.ts";

describe("the type of a declared value", () => {
  test("a key with a default has the type of its values", () => {
    expectTypeOf(createTenantConfig("number", { default: 10 })).toEqualTypeOf<
      KeyDeclaration<number>
    >();
    expectTypeOf(createSystemConfig("boolean", { default: false })).toEqualTypeOf<
      KeyDeclaration<boolean>
    >();
    expectTypeOf(createUserConfig("text", { default: "" })).toEqualTypeOf<KeyDeclaration<string>>();
  });

  test("a select key has the union of its options", () => {
    const order = createUserConfig("select", {
      options: ["newest", "name"],
      default: "newest",
      allowPerRequest: true,
    });
    expectTypeOf(order).toEqualTypeOf<KeyDeclaration<"newest" | "name">>();
    const options = ["a", "b"] as const;
    expectTypeOf(createTenantConfig("select", { options, default: "a" })).toEqualTypeOf<
      KeyDeclaration<"a" | "b">
    >();
  });

  test("a computed key has the type of its values", () => {
    expectTypeOf(createTenantConfig("number", { computed: async () => 5000 })).toEqualTypeOf<
      KeyDeclaration<number>
    >();
    expectTypeOf(createTenantConfig("number", { computed: () => 5000, default: 1 })).toEqualTypeOf<
      KeyDeclaration<number>
    >();
    const level = createTenantConfig("select", {
      options: ["low", "high"],
      computed: async () => "high",
    });
    expectTypeOf(level).toEqualTypeOf<KeyDeclaration<"low" | "high">>();
  });

  test("a computed function gets of the ctx of the request what reads", () => {
    createTenantConfig("number", {
      computed: async (ctx) => {
        expectTypeOf(ctx).toEqualTypeOf<ComputedContext>();
        expectTypeOf<PipelineContext>().toExtend<typeof ctx>();
        type Effects = "commit" | "publish" | "enqueue" | "cancelJob" | "step" | "delivery";
        type Other = "acrossTenants" | "events" | "metrics" | "rateLimit";
        type Reading = Omit<PipelineContext, Other | Effects>;
        expectTypeOf(ctx).toExtend<Reading>();
        return ctx.user.roles.length;
      },
    });
  });

  test("a key without default and computed may be undefined", () => {
    expectTypeOf(createTenantConfig("number", {})).toEqualTypeOf<
      KeyDeclaration<number | undefined>
    >();
    expectTypeOf(createSystemConfig("boolean", {})).toEqualTypeOf<
      KeyDeclaration<boolean | undefined>
    >();
    expectTypeOf(createUserConfig("select", { options: ["a", "b"] })).toEqualTypeOf<
      KeyDeclaration<"a" | "b" | undefined>
    >();
    expectTypeOf(createTenantConfig("text", { encrypted: true })).toEqualTypeOf<
      KeyDeclaration<string | undefined>
    >();
  });
});

describe("correct declarations", () => {
  test("every option of a type is accepted", () => {
    createTenantConfig("number", {
      default: 900,
      bounds: { min: 60, max: 604_800 },
      allowPerRequest: true,
    });
    createTenantConfig("number", { default: 900, bounds: { min: 60, max: 604_800 } });
    createTenantConfig("number", { default: 900, allowPerRequest: false });
    createUserConfig("boolean", { default: true, allowPerRequest: true });
    createTenantConfig("text", { encrypted: true, read: access.admin, write: access.admin });
    createTenantConfig("text", { encrypted: true, default: "none" });
    createTenantConfig("number", {
      default: 1,
      access: { read: access.admin, write: access.systemAdmin },
    });
    createTenantConfig("number", { default: 1, access: { write: access.roles("editor") } });
  });
});

describe("wrong declarations do not compile", () => {
  test("a default of another type", () => {
    // @ts-expect-error a text for a number
    createTenantConfig("number", { default: "10" });
    // @ts-expect-error a number for a boolean
    createSystemConfig("boolean", { default: 0 });
    // @ts-expect-error a number for a text
    createUserConfig("text", { default: 1 });
    // @ts-expect-error none of the options
    createUserConfig("select", { options: ["newest", "name"], default: "oldest" });
    // @ts-expect-error null is no value
    createTenantConfig("number", { default: null });
  });

  test("bounds on a type other than number, or only one of them", () => {
    // @ts-expect-error a boolean has no bounds
    createTenantConfig("boolean", { default: true, bounds: { min: 0, max: 1 } });
    // @ts-expect-error a text has no bounds
    createTenantConfig("text", { default: "", bounds: { min: 0, max: 1 } });
    // @ts-expect-error a select has no bounds
    createTenantConfig("select", { options: ["a"], bounds: { min: 0, max: 1 } });
    // @ts-expect-error max is missing
    createTenantConfig("number", { default: 1, bounds: { min: 0 } });
  });

  test("allowPerRequest on a number without bounds, on type text, on a secret", () => {
    // @ts-expect-error nothing to clamp into
    createTenantConfig("number", { default: 1, allowPerRequest: true });
    // @ts-expect-error a text never comes with a request
    createTenantConfig("text", { default: "", allowPerRequest: true });
    // @ts-expect-error a secret never comes with a request
    createTenantConfig("boolean", { encrypted: true, allowPerRequest: true });
    createTenantConfig("number", {
      encrypted: true,
      bounds: { min: 1, max: 2 },
      // @ts-expect-error a secret never comes with a request
      allowPerRequest: true,
    });
  });

  test("a select without options, options on anything else", () => {
    // @ts-expect-error options are missing
    createTenantConfig("select", {});
    // @ts-expect-error options are missing
    createTenantConfig("select", { default: "a" });
    // @ts-expect-error options are texts
    createTenantConfig("select", { options: [1, 2] });
    // @ts-expect-error a number has no options
    createTenantConfig("number", { default: 1, options: ["1"] });
    // @ts-expect-error a text has no options
    createTenantConfig("text", { default: "a", options: ["a"] });
  });

  test("a computed secret, a computed value of another type", () => {
    // @ts-expect-error a secret is not computed
    createTenantConfig("text", { encrypted: true, computed: async () => "secret" });
    // @ts-expect-error a text for a number
    createTenantConfig("number", { computed: async () => "10" });
    // @ts-expect-error a text for a number, without a promise
    createTenantConfig("number", { computed: () => "10" });
    // @ts-expect-error none of the options
    createTenantConfig("select", { options: ["low", "high"], computed: async () => "middle" });
    // @ts-expect-error a value, not a function
    createTenantConfig("number", { computed: 10 });
  });

  test("access both directly and under `access`, and values that are not rules", () => {
    // @ts-expect-error stated twice
    createTenantConfig("number", {
      default: 1,
      access: { read: access.admin },
      read: access.admin,
    });
    // @ts-expect-error stated twice
    createTenantConfig("number", {
      default: 1,
      access: { read: access.admin },
      write: access.admin,
    });
    // @ts-expect-error a name is no rule
    createTenantConfig("number", { default: 1, read: "admin" });
  });

  test("unknown types, unknown options, a select without options", () => {
    // @ts-expect-error no such type
    createTenantConfig("integer", { default: 1 });
    // @ts-expect-error no such option
    createTenantConfig("number", { default: 1, bound: { min: 0, max: 1 } });
    // @ts-expect-error a select key needs its options
    createTenantConfig("select");
  });
});

describe("handles", () => {
  const ctx = {} as PipelineContext;
  const limit = {} as ConfigKeyHandle<number>;
  const order = {} as ConfigKeyHandle<"newest" | "name">;
  const optional = {} as ConfigKeyHandle<number | undefined>;

  test("a handle of one type is not a handle of another", () => {
    expectTypeOf(limit).not.toExtend<ConfigKeyHandle<string>>();
    expectTypeOf(order).not.toExtend<ConfigKeyHandle<"newest">>();
    expectTypeOf(optional).not.toExtend<ConfigKeyHandle<number>>();
    expectTypeOf(limit).toExtend<ConfigKeyHandle<unknown>>();
  });

  test("ctx.config and resolveConfigOrParam give the handle's type", () => {
    expectTypeOf(() => ctx.config(limit)).returns.resolves.toEqualTypeOf<number>();
    expectTypeOf(() => ctx.config(order)).returns.resolves.toEqualTypeOf<"newest" | "name">();
    expectTypeOf(() => ctx.config(optional)).returns.resolves.toEqualTypeOf<number | undefined>();
    expectTypeOf(() =>
      resolveConfigOrParam(ctx, limit, "1"),
    ).returns.resolves.toEqualTypeOf<number>();
    expectTypeOf(() => resolveConfigOrParam(ctx, order, undefined)).returns.resolves.toEqualTypeOf<
      "newest" | "name"
    >();
  });

  test("setConfig takes a value of the handle's type, and nothing else", () => {
    setConfig(ctx, limit, 5, { scope: "system", expectedVersion: 0 });
    setConfig(ctx, order, "name");
    // @ts-expect-error: a string is not a number
    setConfig(ctx, limit, "5");
    // @ts-expect-error: no option of the key
    setConfig(ctx, order, "oldest");
    // @ts-expect-error: resetConfig takes a value away
    setConfig(ctx, optional, undefined);
    // @ts-expect-error: no level
    setConfig(ctx, limit, 5, { scope: "planet" });
    expectTypeOf(() =>
      setConfig(ctx, limit, 5),
    ).returns.resolves.toEqualTypeOf<ConfigWriteResult>();
  });

  test("onClamp gets the data of a log line", () => {
    const onClamp = (data: ClampData) => ctx.log.warn("config.per_request_clamped", data);
    expectTypeOf(() =>
      resolveConfigOrParam(ctx, limit, "1", { onClamp }),
    ).returns.resolves.toBeNumber();
    expectTypeOf<ClampData>().toEqualTypeOf<{
      readonly key: string;
      readonly original: number;
      readonly clamped: number;
      readonly max: number;
    }>();
  });
});
