import { buildServer, defineFeature, resolveConfigOrParam } from "keelson";
import { expect } from "vitest";
import { declareKeys, files, plans, problemsOf, untyped } from "./fixture.ts";
import type { Row } from "./row.ts";

/** Sections 2.3 and 2.4, the levels and what a request may override. */
export const levelRows: readonly Row[] = [
  {
    section: "2.3",
    sentence:
      'App-boot override | app developer at deploy time | `buildServer({ config: { "<key id>": <value> } })`; no database involved',
    prove: async ({ handle, newCaller, probe, start }) => {
      // `buildServer` returns before any store is there; only the value's rows would come from one.
      const server = buildServer({
        features: [plans, files, probe],
        config: { "files:config:max-upload-size-mb": 50 },
      });
      const app = await start(server);
      const { body } = await handle(
        async (ctx) => ({ size: await ctx.config(files.config.maxUploadSizeMb) }),
        {
          app,
          as: newCaller(),
        },
      );

      expect(body).toEqual({ size: 50 });
    },
  },
  {
    section: "2.3",
    sentence: "System config | operations at runtime | `r.config()` with `createSystemConfig`",
    prove: async ({ app, handle, newCaller, put }) => {
      const { maintenanceMode } = files.config;
      const isOn = async () =>
        (
          await handle(async (ctx) => ({ on: await ctx.config(maintenanceMode) }), {
            as: newCaller(),
          })
        ).body;

      expect(await isOn()).toEqual({ on: false });
      await put("system", maintenanceMode, true);
      expect(await isOn()).toEqual({ on: true });
      await app.rows.put({
        scope: "system",
        key: maintenanceMode.id,
        value: true,
        version: 2,
        deleted: true,
      });
      expect(await isOn()).toEqual({ on: false });
    },
  },
  {
    section: "2.3",
    sentence:
      "Tenant config | tenant administrator at runtime | `r.config()` with `createTenantConfig`",
    prove: async ({ handle, newCaller, put }) => {
      const [ann, bob] = [newCaller(), newCaller()];
      const greeting = async (as: typeof ann) =>
        (await handle(async (ctx) => ({ text: await ctx.config(files.config.greeting) }), { as }))
          .body;

      expect(await greeting(ann)).toEqual({ text: "Hello" });
      await put("tenant", files.config.greeting, "", ann);
      expect(await greeting(ann)).toEqual({ text: "" });
      expect(await greeting(bob)).toEqual({ text: "Hello" });
    },
  },
  {
    section: "2.3",
    sentence: "User config | end user | `r.config()` with `createUserConfig`; …",
    prove: async ({ handle, newCaller, put }) => {
      const ann = newCaller();
      const size = async (as: typeof ann) =>
        (await handle(async (ctx) => ({ size: await ctx.config(files.config.pageSize) }), { as }))
          .body;
      await put("user", files.config.pageSize, 33, ann);

      expect(await size(ann)).toEqual({ size: 33 });
      expect(await size({ ...ann, id: "colleague" })).toEqual({ size: 20 });
    },
  },
  {
    section: "2.3",
    sentence:
      "Per-request parameter | caller per request | query parameter, only with `allowPerRequest: true`",
    prove: async ({ fetch, newCaller, put }) => {
      const ann = newCaller();
      await put("tenant", files.config.signedUrlExpirySeconds, 1_000, ann);

      expect((await fetch("/files/f1/download-url?expiresSeconds=300", { as: ann })).body).toEqual({
        expiresSeconds: 300,
      });
      expect((await fetch("/files/f1/download-url", { as: ann })).body).toEqual({
        expiresSeconds: 1_000,
      });
    },
  },
  {
    section: "2.3",
    sentence:
      "If money or business rules affect the value (for example plan-dependent limits), use a `computed` function in the declaration. Handler code does not change.",
    prove: async ({ app, newCaller }) => {
      const handler = async (
        ctx: Awaited<ReturnType<typeof app.ctx>>,
        limit: typeof files.config.storageQuotaMb,
      ) => ctx.config(limit);
      const rich = await app.ctx({ ...newCaller(), tenantId: "rich" });

      expect(await handler(rich, files.config.maxUploadSizeMb)).toBe(10);
      expect(await handler(rich, files.config.storageQuotaMb)).toBe(5_000);
    },
  },
  {
    section: "2.4",
    sentence: "`number` | Parsed and hard-clamped into `bounds`.",
    prove: async ({ app, newCaller }) => {
      const ctx = await app.ctx(newCaller());
      const parsed = (text: string) => resolveConfigOrParam(ctx, files.config.pageSize, text);

      expect([await parsed("42"), await parsed("42.5"), await parsed(" 5e1 ")]).toEqual([
        42, 42.5, 50,
      ]);
      expect([
        await parsed("101"),
        await parsed("1e99"),
        await parsed("4.99"),
        await parsed("-3"),
      ]).toEqual([100, 100, 5, 5]);
    },
  },
  {
    section: "2.4",
    sentence: '`boolean` | `"true"` or `"1"` gives true; anything else gives false.',
    prove: async ({ app, newCaller }) => {
      const ctx = await app.ctx(newCaller());
      const parsed = (text: string) => resolveConfigOrParam(ctx, files.config.showHidden, text);

      for (const yes of ["true", "1"]) expect(await parsed(yes)).toBe(true);
      for (const no of ["false", "0", "", "TRUE", "yes", " true", "on", "11"])
        expect(await parsed(no)).toBe(false);
    },
  },
  {
    section: "2.4",
    sentence:
      "`select` | Accepted only if in the `options` whitelist; otherwise the configured value is used.",
    prove: async ({ app, newCaller, put }) => {
      const ann = newCaller();
      await put("user", files.config.listOrder, "name", ann);
      const ctx = await app.ctx(ann);
      const parsed = (text: string) => resolveConfigOrParam(ctx, files.config.listOrder, text);

      expect(await parsed("newest")).toBe("newest");
      for (const unknown of ["oldest", "NEWEST", "newest ", "", "__proto__"])
        expect(await parsed(unknown)).toBe("name");
    },
  },
  {
    section: "2.4",
    sentence: "`text` | Never allowed. Declaring `allowPerRequest: true` on it fails at boot.",
    prove: async ({ app, newCaller, newFeatureName }) => {
      const ctx = await app.ctx(newCaller());
      const name = untyped.tenant("text", { default: "a", allowPerRequest: true });
      const handles = declareKeys(newFeatureName(), { name });

      await expect(resolveConfigOrParam(ctx, files.config.greeting, "b")).rejects.toThrow(
        /greeting/,
      );
      await expect(resolveConfigOrParam(ctx, handles.name, "b")).rejects.toThrow(handles.name.id);
      expect(
        problemsOf(() =>
          buildServer({
            features: [defineFeature("some", (r) => void r.config({ keys: { name } }))],
          }),
        ),
      ).toHaveLength(1);
    },
  },
  {
    section: "2.4",
    sentence:
      "`encrypted: true` | Never allowed. Declaring `allowPerRequest: true` with it fails at boot.",
    prove: async ({ app, newCaller, newFeatureName }) => {
      const ctx = await app.ctx(newCaller());
      const secret = untyped.tenant("boolean", { encrypted: true, allowPerRequest: true });
      const handles = declareKeys(newFeatureName(), { secret });

      await expect(resolveConfigOrParam(ctx, handles.secret, "true")).rejects.toThrow(
        handles.secret.id,
      );
      expect(
        problemsOf(() =>
          buildServer({
            features: [defineFeature("some", (r) => void r.config({ keys: { secret } }))],
          }),
        ),
      ).toHaveLength(1);
    },
  },
  {
    section: "2.4",
    sentence:
      "Without `allowPerRequest: true`, `resolveConfigOrParam` throws when given a parameter value for that key.",
    prove: paramRefused,
  },
  {
    section: "2.4",
    sentence:
      "Clamping is silent to the caller (a request for a value above max receives max); only `onClamp` observes it.",
    prove: async ({ fetch, handle, newCaller }) => {
      const ann = newCaller();
      const { status, body, headers } = await fetch(
        "/files/f1/download-url?expiresSeconds=99999999",
        { as: ann },
      );
      const plain = await fetch("/files/f1/download-url", { as: ann });
      const { logs } = await handle(
        (ctx) => resolveConfigOrParam(ctx, files.config.pageSize, "500").then((size) => ({ size })),
        {
          as: ann,
        },
      );

      expect([status, body]).toEqual([200, { expiresSeconds: 604_800 }]);
      expect([...headers.keys()]).toEqual([...plain.headers.keys()]);
      expect(logs).toEqual([]);
    },
  },
  {
    section: "2.4",
    sentence:
      "Example route shape: `GET /files/:id/download-url?expiresSeconds=<integer>`. The route passes the query value to `resolveConfigOrParam`.",
    prove: async ({ fetch, newCaller }) => {
      const as = newCaller();
      for (const [query, expiresSeconds] of [
        ["?expiresSeconds=120", 120],
        ["", 900],
        ["?expiresSeconds=1", 60],
        ["?expiresSeconds=soon", 900],
      ] as const) {
        expect((await fetch(`/files/f1/download-url${query}`, { as })).body).toEqual({
          expiresSeconds,
        });
      }
    },
  },
  {
    section: "6.7",
    sentence:
      "Log event name emitted on a clamp: `config.per_request_clamped` with fields `key`, `original`, `clamped`, `max` (when the developer wires `onClamp` to a warn log).",
    prove: async ({ fetch, newCaller }) => {
      const { logs } = await fetch("/files/f1/download-url?expiresSeconds=1", { as: newCaller() });

      expect(logs).toEqual([
        expect.objectContaining({
          level: "warn",
          msg: "config.per_request_clamped",
          key: "files:config:signed-url-expiry-seconds",
          original: 1,
          clamped: 60,
          max: 604_800,
        }),
      ]);
    },
  },
  {
    section: "7.4",
    sentence: "Config errors: `resolveConfigOrParam` throws when `allowPerRequest` is absent; …",
    prove: paramRefused,
  },
];

async function paramRefused({ handle, newCaller }: Parameters<Row["prove"]>[0]): Promise<void> {
  const asked = (parameter: unknown) =>
    handle(
      (ctx) =>
        resolveConfigOrParam(ctx, files.config.maxUploadSizeMb, parameter).then((size) => ({
          size,
        })),
      {
        as: newCaller(),
      },
    );
  const { status, logs } = await asked("50");

  expect(status).toBe(500);
  expect(logs).toContainEqual(
    expect.objectContaining({
      level: "error",
      message: expect.stringContaining("files:config:max-upload-size-mb"),
    }),
  );
  expect((await asked(undefined)).body).toEqual({ size: 10 });
}
