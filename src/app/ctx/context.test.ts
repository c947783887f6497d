import { afterAll, beforeAll, expect, test } from "vitest";
import { z } from "zod";
import { FrameworkError, PipelineError } from "../../base/errors/errors.ts";
import { type AccessRule, access } from "../../base/identity/access.ts";
import { buildServer, createTenantConfig, defineFeature } from "../../index.ts";
import { startTestApp, type TestApp } from "../../tools/testing/index.ts";
import type { QueryContext } from "../handlers/pipeline-context.ts";

const nothing = z.object({});
const caller = z.object({ id: z.string().optional(), tenantId: z.string().optional() });

declare module "../../base/types/names.ts" {
  interface Queries {
    "guarded.caller.open": Query<typeof nothing, typeof caller>;
    "guarded.caller.everyone": Query<typeof nothing, typeof caller>;
    "guarded.caller.authenticated": Query<typeof nothing, typeof caller>;
    "guarded.caller.tenant": Query<typeof nothing, typeof caller>;
    "guarded.caller.editor": Query<typeof nothing, typeof caller>;
    "guarded.caller.combined": Query<typeof nothing, typeof caller>;
  }
  interface Jobs {
    "guarded.caller.ask": Record<never, never>;
  }
}

const names = ["open", "everyone", "authenticated", "tenant", "editor", "combined"] as const;
type Answers = Record<(typeof names)[number], unknown>;

/** What a ctx gets of each of the queries: who its handler saw, or how it was refused. */
async function ask(ctx: QueryContext): Promise<Answers> {
  const asked = names.map(async (name) => {
    try {
      return [name, await ctx.query(`guarded.caller.${name}`, {})];
    } catch (error) {
      if (!(error instanceof PipelineError)) throw error;
      return [name, [error.status, error.code, error.message]];
    }
  });
  return Object.fromEntries(await Promise.all(asked));
}

let heard: Answers | undefined;

const guarded = defineFeature("guarded", (r) => {
  const seen = async ({ user: { id, tenantId } }: QueryContext) => ({
    ...(id === undefined ? {} : { id }),
    ...(tenantId === undefined ? {} : { tenantId }),
  });
  const query = (name: string, rule: AccessRule) =>
    r.query(`caller.${name}`, {
      route: `GET /${name}`,
      access: rule,
      output: caller,
      handler: seen,
    });
  r.query("caller.open", { output: caller, handler: seen });
  query("everyone", access.everyone);
  query("authenticated", access.authenticated);
  query("tenant", access.tenant);
  query("editor", access.roles("editor"));
  query(
    "combined",
    access.allOf(access.everyone, access.anyOf(access.admin, access.roles("editor"))),
  );

  const config = r.config({
    keys: {
      asked: createTenantConfig("text", {
        computed: async (ctx) => (await ctx.query("guarded.caller.tenant", {})).id ?? "",
      }),
    },
  });
  r.query("ask.all", { route: "GET /ask", access: access.everyone, handler: ask });
  r.query("ask.config", {
    route: "GET /config-key",
    access: access.everyone,
    handler: async (ctx) => ({ id: await ctx.config(config.asked) }),
  });
  r.write("ask.later", {
    route: "POST /later",
    access: access.everyone,
    handler: async (ctx) => ctx.enqueue("guarded.caller.ask", {}),
  });
  r.job("caller.ask", {
    input: nothing,
    handler: async (ctx) => {
      heard = await ask(ctx);
    },
  });
});

let app: TestApp;
beforeAll(async () => {
  app = await startTestApp(buildServer({ features: [guarded] }));
});
afterAll(() => app.close());

const ann = { id: "ann", tenantId: "acme" };
const refused = (rule: string, name: string, has = "neither a user nor a tenant") => [
  401,
  "unauthenticated",
  `Authentication required: guarded.caller.${name} requires ${rule}, and its caller has ${has}`,
];
const denied = (rule: string, name: string) => [
  403,
  "access_denied",
  `Access denied: ${rule}, which guarded.caller.${name} requires`,
];
const combined = "allOf(everyone, anyOf(admin, roles(editor)))";
const answers = {
  nobody: {
    ...{
      open: {},
      everyone: {},
      authenticated: refused("authenticated", "authenticated"),
      tenant: refused("tenant", "tenant"),
    },
    ...{ editor: refused("roles(editor)", "editor"), combined: refused(combined, "combined") },
  },
  ann: {
    ...{ open: ann, everyone: ann, authenticated: ann, tenant: ann },
    ...{ editor: denied("roles(editor)", "editor"), combined: denied(combined, "combined") },
  },
  editor: { open: ann, everyone: ann, authenticated: ann, tenant: ann, editor: ann, combined: ann },
};

test.each([
  ["nobody", undefined, answers.nobody],
  ["a user", ann, answers.ann],
  ["a user with the role", { ...ann, roles: ["editor"] }, answers.editor],
])(
  "ctx.query in a request refuses %s whenever the rule of its target does",
  async (_, as, expected) => {
    const response = await app.fetch("/ask", as === undefined ? {} : { as });

    expect(await response.json()).toEqual(expected);
  },
);

test("ctx.query in a job refuses a user without roles, and a job without a user, when the target's rule does", async () => {
  await app.fetch("/later", { method: "POST", as: { ...ann, roles: ["editor"] } });
  await app.settled();
  expect(heard).toEqual(answers.ann);

  await app.fetch("/later", { method: "POST" });
  await app.settled();
  expect(heard).toEqual(answers.nobody);
});

test("a job enqueued for a tenant by a schedule may call queries that require a tenant, but none that require a user", async () => {
  heard = undefined;
  let isAsking = true;
  const reports = defineFeature("reports", (r) => {
    r.schedule("report.nightly", {
      cron: "* * * * *",
      handler: async (ctx, { at }) => {
        await ctx.enqueue("reports.report.make" as never, { at: at.toISOString() } as never, {
          tenantId: "acme",
        });
      },
    });
    r.job("report.make", {
      input: z.object({ at: z.string() }),
      handler: async (ctx) => {
        if (isAsking) heard = await ask(ctx);
        else await ctx.query("guarded.caller.authenticated", {});
      },
    });
  });
  const own = await startTestApp(buildServer({ features: [guarded, reports] }));
  try {
    own.clock.advance(60_000);
    await own.settled();
    const [acme, none] = [{ tenantId: "acme" }, "a tenant and no user"];
    expect(heard).toEqual({
      ...{ open: acme, everyone: acme, tenant: acme },
      ...{
        authenticated: refused("authenticated", "authenticated", none),
        editor: refused("roles(editor)", "editor", none),
      },
      combined: refused(combined, "combined", none),
    });
    isAsking = false;
    own.clock.advance(60_000);
    // Names the query and the reason, for whoever reads the failing test.
    await expect(own.settled()).rejects.toThrow(
      String(refused("authenticated", "authenticated", none)[2]),
    );
  } finally {
    await own.close();
  }
});

test("a query that refuses a handler's caller answers the request and says how to sign in", async () => {
  const response = await app.fetch("/config-key");

  expect([response.status, response.headers.get("www-authenticate")]).toEqual([401, "Bearer"]);
  await expect(app.call("guarded.caller.tenant", {})).rejects.toThrow(FrameworkError);
  expect(await (await app.fetch("/config-key", { as: ann })).json()).toEqual({ id: "ann" });
});
