import { access, buildServer, defineFeature } from "keelson";
import { expect, test } from "vitest";
import * as z from "zod";
import type { ServerOptions } from "../../app/registry/options.ts";
import { serverInternals } from "../../app/server/server.ts";
import type { OnceOptions } from "../../parts/once/once-by.ts";
import { contractOf } from "./contract.ts";
import { contractChanges } from "./contract-changes.ts";

type Declare = Parameters<typeof defineFeature<object, "mugs">>[1];
const internalsOf = (declare: Declare, options: Omit<ServerOptions, "features" | "config"> = {}) =>
  serverInternals(buildServer({ features: [defineFeature("mugs", declare)], ...options }));
const handler = async () => ({}) as never;

test("a write lists the header of its idempotency key, with its own setting before the server's", async () => {
  const { contract } = await contractOf(
    internalsOf(
      (r) => {
        r.write("mug.a", { route: "POST /a", access: access.tenant, handler });
        r.write("mug.b", { route: "POST /b", access: access.tenant, once: false, handler });
        r.write("mug.c", {
          route: "POST /c",
          access: access.tenant,
          once: { required: true },
          handler,
        });
        r.query("mug.d", { route: "GET /d", access: access.everyone, handler });
        r.query("mug.e", { handler });
      },
      { once: { key: "idempotency-key" }, basePath: "/v1" },
    ),
    import.meta.dirname,
  );
  expect(contract.routes).toEqual([
    {
      method: "POST",
      path: "/v1/a",
      handler: "mugs.mug.a",
      access: "tenant",
      body: "json",
      key: "idempotency-key",
    },
    {
      method: "POST",
      path: "/v1/b",
      handler: "mugs.mug.b",
      access: "tenant",
      body: "json",
      key: "none",
    },
    {
      method: "POST",
      path: "/v1/c",
      handler: "mugs.mug.c",
      access: "tenant",
      body: "json",
      key: "required",
      keptSeconds: 300,
    },
    { method: "GET", path: "/v1/d", handler: "mugs.mug.d", access: "everyone" },
  ]);
});

test("a write lists how long its key is kept, unless by default", async () => {
  const keysOf = async (own: OnceOptions | undefined, server: ServerOptions["once"]) => {
    const internals = internalsOf(
      (r) => {
        r.write("mug.a", {
          route: "POST /a",
          access: access.tenant,
          ...(own && { once: own }),
          handler,
        });
      },
      { ...(server !== undefined && { once: server }) },
    );
    const { contract } = await contractOf(internals, import.meta.dirname);
    return contract.routes.map(({ key, keptSeconds }) => [key, keptSeconds]);
  };
  expect(await keysOf(undefined, undefined)).toEqual([["either", undefined]]);
  expect(await keysOf(undefined, false)).toEqual([["none", undefined]]);
  expect(await keysOf({}, false)).toEqual([["either", undefined]]);
  expect(await keysOf({ keepSeconds: 600 }, undefined)).toEqual([["either", 600]]);
  expect(await keysOf(undefined, { required: true, keepSeconds: 600 })).toEqual([
    ["required", 600],
  ]);
  expect(await keysOf({ required: false }, { required: true })).toEqual([["either", undefined]]);
});

test("events list how long they are kept", async () => {
  const { contract } = await contractOf(
    internalsOf((r) => {
      r.event("mug.c", z.object({}) as never);
      r.event("mug.b", z.object({}) as never, { keep: true });
      r.event("mug.a", z.object({}) as never, { keepDays: 2 });
    }),
    import.meta.dirname,
  );
  expect(contract.events.map(({ type, kept }) => [type, kept])).toEqual([
    ["mug.a", 2],
    ["mug.b", "forever"],
    ["mug.c", undefined],
  ]);
});

test("a route with an optional output lists both of its statuses", async () => {
  const server = internalsOf((r) => {
    const declared = { access: access.tenant, handler };
    r.query("mug.a", { route: "GET /a", ...declared, output: z.object({}).optional() });
    r.query("mug.b", { route: "GET /b", ...declared, output: z.object({}) });
    r.query("mug.c", { route: "GET /c", ...declared, output: z.undefined() });
    r.query("mug.d", {
      route: "GET /d",
      ...declared,
      output: z.object({}).optional(),
      status: 201,
    });
  });
  const { contract } = await contractOf(server, import.meta.dirname);
  expect(contract.routes.map(({ statuses }) => statuses)).toEqual([
    [200, 204],
    undefined,
    undefined,
    [201],
  ]);
});

test("a route lists its statuses and its own errors", async () => {
  const server = internalsOf((r) => {
    r.query("mug.a", {
      route: "GET /a",
      access: access.tenant,
      status: [304, 200],
      errors: { sold: 410 },
      handler,
    });
  });
  const { contract } = await contractOf(server, import.meta.dirname);
  expect(contract.routes).toMatchObject([{ statuses: [200, 304], errors: { sold: 410 } }]);
});

test("breaks clients when a parameter no longer accepts its text", async () => {
  const locked = (limit: z.ZodType) =>
    contractOf(
      internalsOf((r) => {
        r.query("mug.list", {
          route: "GET /a",
          access: access.tenant,
          input: z.object({ limit }),
          handler,
        });
      }),
      import.meta.dirname,
    );
  const [before, after] = [await locked(z.coerce.number()), await locked(z.number())];
  const where = "GET /a query.limit";
  expect(contractChanges(before.contract, after.contract)).toMatchObject([
    { breaks: "client", where, rule: "input-type-changed" },
  ]);
  // No client could send it before.
  expect(contractChanges(after.contract, before.contract).map(({ breaks }) => breaks)).toEqual([
    undefined,
  ]);
});

test("a schedule for tenants is one of each tenant's time zone, and a job of its name", async () => {
  const { contract, unsaid } = await contractOf(
    internalsOf(
      (r) => {
        r.schedule("mug.wash", { cron: "0 3 * * *", for: "tenants", handler });
        r.schedule("mug.sell", { cron: "0 4 * * *", handler });
      },
      { tenants: true },
    ),
    import.meta.dirname,
  );
  expect(contract.schedules).toEqual([
    { name: "mugs.mug.sell", cron: "0 4 * * *", missed: "once", timeZone: "UTC" },
    { name: "mugs.mug.wash", cron: "0 3 * * *", missed: "once", timeZone: "of each tenant" },
  ]);
  const properties = { at: { type: "string" } };
  const input = { type: "object", properties, required: ["at"] };
  expect(contract.jobs).toEqual([{ name: "mugs.mug.wash", input }]);
  expect(unsaid).toEqual([]);
});
