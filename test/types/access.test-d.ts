import {
  type AccessRule,
  type AuthenticatedUser,
  access,
  defineFeature,
  type FeatureBuilder,
  type PipelineContext,
  type QueryContext,
  type TenantUser,
  type User,
} from "keelson";
import { describe, expectTypeOf, test } from "vitest";

const { everyone, authenticated, tenant, admin, systemAdmin, roles, anyOf, allOf } = access;
type Rule<Caller extends User> = AccessRule<Caller>;

describe("a rule", () => {
  test("has the type of the callers that it admits", () => {
    expectTypeOf(everyone).toEqualTypeOf<Rule<User>>();
    expectTypeOf(authenticated).toEqualTypeOf<Rule<AuthenticatedUser>>();
    expectTypeOf(tenant).toEqualTypeOf<Rule<TenantUser>>();
    expectTypeOf(admin).toEqualTypeOf<Rule<AuthenticatedUser>>();
    expectTypeOf(systemAdmin).toEqualTypeOf<Rule<AuthenticatedUser>>();
    expectTypeOf(roles("editor", "owner")).toEqualTypeOf<Rule<AuthenticatedUser>>();
  });

  test("that combines rules with anyOf admits only signed-in callers if every rule requires it", () => {
    expectTypeOf(anyOf(admin, roles("editor"))).toEqualTypeOf<Rule<AuthenticatedUser>>();
    expectTypeOf(anyOf(admin, everyone)).toEqualTypeOf<Rule<User>>();
    expectTypeOf(anyOf(...([admin] as AccessRule<AuthenticatedUser>[]))).toEqualTypeOf<
      Rule<AuthenticatedUser>
    >();
    expectTypeOf(anyOf(...([admin] as AccessRule[]))).toEqualTypeOf<Rule<User>>();
  });

  test("that combines rules with allOf admits only signed-in callers if one rule requires it", () => {
    expectTypeOf(allOf(everyone, admin)).toEqualTypeOf<Rule<AuthenticatedUser>>();
    expectTypeOf(allOf(everyone, anyOf(everyone, admin), authenticated)).toEqualTypeOf<
      Rule<AuthenticatedUser>
    >();
    expectTypeOf(allOf(tenant, admin)).toEqualTypeOf<Rule<AuthenticatedUser>>();
    expectTypeOf(allOf(everyone)).toEqualTypeOf<Rule<User>>();
    expectTypeOf(allOf(everyone, anyOf(everyone, admin))).toEqualTypeOf<Rule<User>>();
    expectTypeOf(allOf(everyone, ...([] as AccessRule<AuthenticatedUser>[]))).toEqualTypeOf<
      Rule<User>
    >();
    expectTypeOf(allOf({} as AccessRule | AccessRule<AuthenticatedUser>)).toEqualTypeOf<
      Rule<User>
    >();
  });
});

describe("a rule that requires only a tenant", () => {
  test("promises a tenant, and no user", () => {
    expectTypeOf(anyOf(tenant, admin)).toEqualTypeOf<Rule<TenantUser>>();
    expectTypeOf(anyOf(tenant, everyone)).toEqualTypeOf<Rule<User>>();
    expectTypeOf(allOf(everyone, tenant)).toEqualTypeOf<Rule<TenantUser>>();
    expectTypeOf(allOf(tenant, everyone)).toEqualTypeOf<Rule<TenantUser>>();
    expectTypeOf(allOf(tenant, ...([] as AccessRule<AuthenticatedUser>[]))).toEqualTypeOf<
      Rule<TenantUser>
    >();
  });
});

describe("ctx.user", () => {
  const r = {} as FeatureBuilder;
  const of = <Caller extends User>(caller: Caller) => ({ caller });

  test("has an ID and a tenant behind every rule that asks for them", () => {
    r.query("a.a", {
      route: "GET /a",
      access: authenticated,
      handler: ({ user }) => of<AuthenticatedUser>(user),
    });
    r.query("a.b", {
      route: "GET /b",
      access: tenant,
      handler: ({ user }) => [user.id?.length, user.tenantId.length],
    });
    r.query("a.c", {
      route: "GET /c",
      access: roles("editor"),
      handler: ({ user }) => user.id.length,
    });
    r.query("a.d", {
      route: "GET /d",
      access: anyOf(admin, roles("a")),
      handler: (ctx) => ctx.user.tenantId.length,
    });
    r.query("a.e", {
      route: "GET /e",
      access: allOf(everyone, admin),
      handler: (ctx) => ctx.user.tenantId.length,
    });
    r.write("a.f", {
      route: "POST /f",
      access: systemAdmin,
      handler: (ctx) => ctx.user.tenantId.length,
    });
    r.write("a.g", {
      route: "POST /g",
      access: admin,
      body: "text",
      handler: (ctx) => ctx.user.tenantId.length,
    });
    r.query("a.h", {
      route: "GET /h",
      access: authenticated,
      handler: async (ctx) => {
        expectTypeOf(ctx).toEqualTypeOf<QueryContext<AuthenticatedUser>>();
        expectTypeOf(ctx).toExtend<QueryContext>();
      },
    });
    r.write("a.i", {
      route: "POST /i",
      access: authenticated,
      handler: async (ctx) => {
        expectTypeOf(ctx).toEqualTypeOf<PipelineContext<AuthenticatedUser>>();
        expectTypeOf(ctx).toExtend<PipelineContext>();
        expectTypeOf(ctx).toExtend<QueryContext<AuthenticatedUser>>();
      },
    });
  });

  test("may have neither for everyone, without a route, and where the rule is not known", () => {
    const nobody = async (ctx: QueryContext) =>
      void expectTypeOf(ctx.user.id).toEqualTypeOf<string | undefined>();
    r.query("b.a", { route: "GET /a", access: authenticated, handler: nobody });
    // @ts-expect-error anonymous callers
    r.query("b.b", { route: "GET /b", access: everyone, handler: (ctx) => ctx.user.id.length });
    r.write("b.c", {
      route: "POST /c",
      access: anyOf(everyone, admin),
      // @ts-expect-error anonymous callers
      handler: (ctx) => ctx.user.tenantId.length,
    });
    // @ts-expect-error a run of the system for a tenant has no user
    r.query("b.h", { route: "GET /h", access: tenant, handler: (ctx) => ctx.user.id.length });
    // @ts-expect-error anybody may query it
    r.query("b.d", { handler: (ctx) => ctx.user.tenantId.length });
    r.query("b.e", {
      route: "GET /e",
      access: admin as AccessRule,
      // @ts-expect-error any rule
      handler: (ctx) => ctx.user.id.length,
    });
    r.query("b.f", {
      route: "GET /f",
      access: everyone,
      // @ts-expect-error a helper that needs more than the rule gives
      handler: async (_: QueryContext<AuthenticatedUser>) => 1,
    });
    // @ts-expect-error the same without a route
    r.query("b.g", { handler: async (_: QueryContext<AuthenticatedUser>) => 1 });
  });

  test("may have neither in consumers, jobs and channels", () => {
    defineFeature("typed-access", (builder) => {
      const schema = {} as never;
      // @ts-expect-error a job without a user
      builder.job("a.a", { input: schema, handler: async (ctx) => ctx.user.id.length });
      // @ts-expect-error a delivery without a tenant
      builder.channel("typed-a", { input: schema, send: async (ctx) => ctx.user.tenantId.length });
      builder.on("typed-parcel.lost", {
        name: "a",
        // @ts-expect-error an event without a tenant
        handler: async (ctx) => ctx.user.tenantId.length,
      });
    });
  });
});
