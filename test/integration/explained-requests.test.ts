import {
  access,
  buildServer,
  createSystemConfig,
  createTenantConfig,
  createUserConfig,
  defineFeature,
  NotFoundError,
  resolveConfigOrParam,
} from "keelson";
import { lambdaHttp } from "keelson/lambda";
import {
  type Caller,
  lambdaContext,
  lambdaEvent,
  startTestApp,
  type TestApp,
} from "keelson/testing";
import { parseList } from "structured-headers";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";

const bounds = { min: 1, max: 1_000 };
const shop = defineFeature("shop", (r) => {
  const config = r.config({
    keys: {
      maxItems: createTenantConfig("number", { default: 10, bounds, allowPerRequest: true }),
      color: createUserConfig("select", { options: ["red", "blue"], default: "red" }),
      open: createSystemConfig("boolean", { default: true }),
      secret: createTenantConfig("text", { encrypted: true }),
      deployed: createTenantConfig("text", {}),
      absent: createTenantConfig("text", {}),
    },
  });
  const { fee } = r.config({
    keys: {
      fee: createTenantConfig("number", {
        computed: async (ctx) => ((await ctx.config(config.open)) ? 5 : 0),
      }),
    },
  });
  r.query("shop.show", {
    route: "GET /shop",
    access: access.everyone,
    handler: async (ctx, input) => {
      await Promise.all([
        ctx.config(config.maxItems),
        ctx.config(config.color),
        ctx.config(config.secret),
        ctx.config(fee),
      ]);
      await ctx.config(config.maxItems);
      await ctx.config(config.deployed);
      await ctx.config(config.absent);
      return { given: Object.keys(Object(input)).length };
    },
  });
  r.query("shop.part", {
    route: "GET /part",
    access: access.authenticated,
    handler: async (ctx, input) => {
      const asked = Object(input) as { items?: string };
      return { items: await resolveConfigOrParam(ctx, config.maxItems, asked.items) };
    },
  });
  r.query("shop.missing", {
    route: "GET /missing",
    access: access.authenticated,
    handler: async (ctx) => {
      await ctx.config(config.maxItems);
      throw new NotFoundError("shop", "7");
    },
  });
  r.query("shop.nothing", {
    route: "GET /nothing",
    access: access.everyone,
    handler: async () => 1,
  });
  r.write("shop.order", {
    route: "POST /orders",
    access: access.authenticated,
    handler: async (ctx) => ({ items: await ctx.config(config.maxItems) }),
  });
  return { config };
});

const server = buildServer({
  features: [shop],
  config: { "shop:config:deployed": "from the deployment" },
  cors: { origins: ["https://ops.example"] },
});
const operator = { id: "ann", tenantId: "acme", roles: ["systemAdmin"] };
const explain = { "X-Keelson-Explain": "config" };

let app: TestApp;
beforeAll(async () => {
  app = await startTestApp(server);
  await app.rows.put({
    scope: "tenant",
    tenantId: "acme",
    key: "shop:config:max-items",
    value: 20,
  });
  await app.rows.put({
    scope: "user",
    tenantId: "acme",
    userId: "ann",
    key: "shop:config:color",
    value: "blue",
  });
  for (const value of ["hunter1-hunter1", "hunter2-hunter2"]) {
    await app.fetch("/config/shop:config:secret", { method: "PUT", as: operator, body: { value } });
  }
});
afterAll(() => app.close());

/** Sends a request on a host. */
type Send = (
  path: string,
  options?: { as?: Caller; headers?: Record<string, string>; method?: string },
) => Promise<Headers>;

const inContainer: Send = async (path, { as, ...options } = {}) => {
  const { headers } = await app.fetch(path, { ...options, ...(as && { as }) });
  return headers;
};
const inLambda: Send = (path, options) => byTrigger("httpApi", path, options);
const byTrigger = async (
  trigger: Trigger,
  path: string,
  { as, headers = {}, method = "GET" }: Parameters<Send>[1] = {},
): Promise<Headers> => {
  for (const [name, value] of Object.entries(app.env)) vi.stubEnv(name, value);
  const written = vi.spyOn(process.stdout, "write").mockReturnValue(true);
  const authorization = as === undefined ? {} : { authorization: `Bearer ${await app.token(as)}` };
  const event = lambdaEvent(trigger, { path, method, headers: { ...headers, ...authorization } });
  const answer = await lambdaHttp(server)(event as never, lambdaContext() as never);
  written.mockRestore();
  vi.unstubAllEnvs();
  const { headers: single, multiValueHeaders: several = {} } = Object(answer);
  return new Headers({
    ...single,
    ...Object.fromEntries(Object.entries(several).map(([name, values]) => [name, String(values)])),
  });
};
const triggers = [
  "restApi",
  "httpApi",
  "httpApiV1",
  "functionUrl",
  "loadBalancer",
  "loadBalancerMultiValue",
] as const;
type Trigger = (typeof triggers)[number];

describe.each([
  ["a container", inContainer],
  ["Lambda", inLambda],
])("in %s", (host, send) => {
  test("an answer names each key that was read, with its source and version, and no value", async () => {
    const headers = await send("/shop", { as: operator, headers: explain });
    const members = parseList(String(headers.get("x-keelson-config"))).map(([key, parameters]) => [
      String(key),
      Object.fromEntries([...parameters].map(([name, value]) => [name, String(value)])),
    ]);

    expect(Object.fromEntries(members)).toEqual({
      "shop:config:max-items": { source: "tenant-row", version: "1" },
      "shop:config:color": { source: "user-row", version: "1" },
      "shop:config:secret": { source: "tenant-row", version: "2" },
      "shop:config:fee": { source: "computed" },
      "shop:config:open": { source: "default" },
      "shop:config:deployed": { source: "app-override" },
      "shop:config:absent": { source: "missing" },
    });
    expect(members).toHaveLength(7);
    expect(headers.get("x-keelson-config")).not.toMatch(/hunter|deployment|blue|20/);
    expect(headers.get("cache-control")).toBe("no-store");
  });

  test.each<[string, Caller | undefined]>([
    ["nobody", undefined],
    ["a user", { id: "bob", tenantId: "acme" }],
    ["a tenant's administrator", { id: "bob", tenantId: "acme", roles: ["admin"] }],
  ])("%s who asks for the explanation gets the answer without it", async (_who, as) => {
    const headers = await send("/shop", { ...(as && { as }), headers: explain });

    expect(headers.get("x-keelson-config")).toBeNull();
    expect(headers.get("cache-control")).toBeNull();
  });

  test("an answer is explained only for the right request header and value", async () => {
    for (const headers of [{}, { "X-Keelson-Explain": "everything" }]) {
      expect((await send("/shop", { as: operator, headers })).get("x-keelson-config")).toBeNull();
    }
  });

  test("a parameter that replaces a value has the source `request`", async () => {
    const parameter = await send("/part?items=7", { as: operator, headers: explain });
    const configured = await send("/part", { as: operator, headers: explain });

    expect(parameter.get("x-keelson-config")).toBe("shop:config:max-items;source=request");
    expect(configured.get("x-keelson-config")).toBe(
      "shop:config:max-items;source=tenant-row;version=1",
    );
  });

  test("an error lists the reads before it, and an answer without any read states that", async () => {
    const failed = await send("/missing", { as: operator, headers: explain });
    const [read, unknown] = [
      await send("/nothing", { as: operator, headers: explain }),
      await send("/nowhere", { as: operator, headers: explain }),
    ];

    expect(failed.get("x-keelson-config")).toBe(
      "shop:config:max-items;source=tenant-row;version=1",
    );
    expect(read.get("x-keelson-config")).toBe("none");
    expect(unknown.get("x-keelson-config")).toBe("none");
  });

  test("a write lists the reads of its run, and its replay states that nothing ran; neither is stored", async () => {
    const options = { as: operator, method: "POST" };
    const key = { "Idempotency-Key": `order on ${host.replace(" ", "-")}`.replaceAll(" ", "-") };
    const first = await send("/orders", { ...options, headers: { ...explain, ...key } });
    const replayed = await send("/orders", { ...options, headers: { ...explain, ...key } });
    const plain = await send("/orders", { ...options, headers: key });

    expect(first.get("x-keelson-config")).toBe("shop:config:max-items;source=tenant-row;version=1");
    expect([replayed.get("idempotent-replayed"), replayed.get("x-keelson-config")]).toEqual([
      "true",
      "none;replayed",
    ]);
    expect([plain.get("idempotent-replayed"), plain.get("x-keelson-config")]).toEqual([
      "true",
      null,
    ]);
    expect(plain.get("cache-control")).toBeNull();
  });

  test("other origins may not read the explanation unless `exposedHeaders` allows it", async () => {
    const headers = await send("/shop", {
      as: operator,
      headers: { ...explain, origin: "https://ops.example" },
    });

    expect(headers.get("x-keelson-config")).not.toBeNull();
    expect(headers.get("access-control-expose-headers")).not.toMatch(/keelson/i);
  });
});

test.each(triggers)(
  "an answer to an event of %s is explained to an operator alone, even for HEAD",
  async (trigger) => {
    for (const method of ["GET", "HEAD"]) {
      const headers = await byTrigger(trigger, "/part", { as: operator, method, headers: explain });
      const foreign = await byTrigger(trigger, "/part", {
        as: { id: "bob", tenantId: "acme" },
        method,
        headers: explain,
      });

      expect(headers.get("x-keelson-config")).toBe(
        "shop:config:max-items;source=tenant-row;version=1",
      );
      expect(headers.get("cache-control")).toBe("no-store");
      expect(foreign.get("x-keelson-config")).toBeNull();
    }
  },
);

test("overlapping requests each list their own reads", async () => {
  const answers = await Promise.all(
    Array.from({ length: 60 }, (_, index) => {
      const paths = ["/part?items=7", "/part", "/nothing"];
      return inContainer(String(paths[index % 3]), {
        as: operator,
        headers: index % 2 === 0 ? explain : {},
      });
    }),
  );
  const expected = [
    "shop:config:max-items;source=request",
    "shop:config:max-items;source=tenant-row;version=1",
    "none",
  ];

  expect(answers.map((headers) => headers.get("x-keelson-config"))).toEqual(
    answers.map((_, index) => (index % 2 === 0 ? expected[index % 3] : null)),
  );
});
