import { Logger as PowertoolsLogger } from "@aws-lambda-powertools/logger";
import { expect, test, vi } from "vitest";
import { unplaced } from "../../../test/support/unplaced.ts";
import { BootError, type BootProblem } from "../../base/errors/boot.ts";
import { access } from "../../base/identity/access.ts";
import type { AuthOptions } from "../../base/identity/auth-options.ts";
import { createTenantConfig } from "../../parts/config/declare/declaration.ts";
import { defineFeature } from "../features/feature.ts";
import type { ServerOptions } from "../registry/options.ts";
import { createRegistry } from "../registry/registry.ts";
import { buildServer, serverInternals } from "./server.ts";

const hello = defineFeature("hello", (r) => {
  const config = r.config({
    keys: {
      greetingLimit: createTenantConfig("number", { default: 1, bounds: { min: 1, max: 9 } }),
    },
  });
  r.query("greeting.show", {
    route: "GET /hello",
    access: access.everyone,
    handler: async () => ({ text: "hello" }),
  });
  return { config };
});

test("a server is built from features, and its registry lists their declarations", () => {
  const { registry } = buildServer({
    features: [hello],
    config: { "hello:config:greeting-limit": 3 },
  });

  expect([...registry.handlers.keys()]).toEqual(["hello.greeting.show"]);
  expect([...registry.configKeys.keys()]).toEqual(["hello:config:greeting-limit"]);
  expect(hello.config.greetingLimit.id).toBe("hello:config:greeting-limit");
});

test("properties returned by a declaration become properties of the feature", () => {
  expect(hello.name).toBe("hello");
  expect(Object.isFrozen(hello)).toBe(true);
  expect(defineFeature("empty", () => {}).name).toBe("empty");
});

test("refuses a declaration that returns a property called name", () => {
  expect(() => defineFeature("x", () => ({ name: "y" }))).toThrow(/feature's own; rename it/);
});

test("reports every problem of features, options and overrides at once", () => {
  const broken = plainFeature("Broken Feature", (r) => {
    r.query("noEntity", { handler: 1, input: {}, output: 3, typo: true });
    r.query("item.post", { route: "POST /items", access: access.everyone, handler: () => 1 });
    r.query("item.open", { route: "GET /items", handler: () => 1 });
    r.query("item.rule", { route: "GET /items/rule", access: "everyone", handler: () => 1 });
    r.query("item.loose", { access: access.everyone, handler: () => 1 });
    r.write("item.body", { body: "xml", handler: () => 1 });
    r.query("item.slash", { route: "GET items", access: access.everyone, handler: () => 1 });
    r.query("item.reserved", {
      route: "GET /health/mine",
      access: access.everyone,
      handler: () => 1,
    });
    r.table("Bad Name", { tenant: false });
    r.table("nothing");
    r.table("config", { partitionKey: "pk", tenant: false });
    r.table("unkeyed", { partitionKey: "", tenant: false });
    r.table("unsorted", { partitionKey: "pk", sortKey: "", tenant: false });
    r.table("sorted", { partitionKey: "pk", sortKey: 7, tenant: false });
    r.query("item.nothing");
    r.query("item.schema", { input: "text", output: () => 1, handler: () => 1 });
    r.query(7, { handler: () => 1 });
    r.config();
    r.config({});
    r.config({
      keys: {
        raw: { default: 1 },
        far: createTenantConfig("number", { default: 0, bounds: { min: 1, max: 2 } }),
      },
      more: 1,
    });
  });
  const handler = async () => 1;
  const repeats = plainFeature("repeats", (r) => {
    r["write"]("item.once", { handler, once: "sometimes" });
    r["write"]("item.replay", { handler, replay: "plain" });
    r["write"]("item.list", { handler, replayHeaders: "etag" });
    r["write"]("item.text", { handler, replayHeaders: [1] });
    r["write"]("item.empty", { handler, replayHeaders: [""] });
    r["write"]("item.cookie", { handler, replayHeaders: ["Set-Cookie"] });
    r["write"]("item.status", { handler, status: 404 });
    r["write"]("item.statuses", { handler, status: [200, "201"] });
    r["write"]("item.stateless", { handler, status: [] });
    r["write"]("item.accepted", { handler, status: [202, 304] });
    r["write"]("item.fine", {
      handler,
      once: false,
      replay: "encrypted",
      replayHeaders: ["X-Page"],
    });
  });
  const wrong = plainFeature("wrong", (r) => {
    r.query("error.list", { handler, errors: ["gone"] });
    r.query("error.none", { handler, errors: null });
    r.query("error.code", { handler, errors: { "Out-Of-Stock": 409, __: 409 } });
    r.query("error.status", {
      handler,
      errors: { out_of_stock: 200, sold: "409", half: 409.5, late: 600 },
    });
    r["write"]("error.own", {
      handler,
      errors: { not_found: 410, overloaded: 503, constructor: 409, v2_gone: 410 },
    });
  });
  const later = defineFeature("later", (async () => ({})) as never);
  const rules = problemsOf({
    features: [
      hello,
      hello,
      repeats,
      broken,
      later as never,
      {} as never,
      null as never,
      7 as never,
      wrong,
    ],
    config: { "hello:config:unknown": 1 },
    surprise: 1,
    basePath: "api/",
    environment: "staging",
    ssm: { path: "app/", region: "x" },
    dynamodb: { prefix: "a b", endpoint: "nowhere", region: "x" },
    log: { level: "trace", redact: [1], powertools: {} },
    limits: { bodyBytes: -1, bufferedBytes: 1.5, bodies: 1 },
    once: { waitMs: -1, key: "sometimes" },
    output: { check: "production", mismatch: "log", strict: true },
    isolation: { role: "tenants", tag: "tenant" },
    messages: { proof: "verify", sign: true },
    trace: { incoming: "always", outgoing: "none" },
    shutdown: { lingerMs: -1, drainMs: 1.5, totalMs: "40", patience: 1 },
    auth: {},
    cors: { origins: "*", credentials: true },
  }).map(({ key, rule }) => `${key} ${rule}`);

  for (const expected of [
    "output.check option-type",
    "output.mismatch option-type",
    "output.strict unknown-option",
    "wrong.error.list errors",
    "wrong.error.none errors",
    "wrong.error.code errors",
    "wrong.error.status errors",
    "wrong.error.own errors",
    "shutdown.lingerMs option-type",
    "shutdown.drainMs option-type",
    "shutdown.totalMs option-type",
    "shutdown.patience unknown-option",
    "hello duplicate-feature",
    "hello.greeting.show duplicate-handler",
    "hello:config:greeting-limit duplicate-key",
    "features[7] not-a-feature",
    "features[5] not-a-feature",
    "features[6] not-a-feature",
    "table config table-reserved",
    "later feature-async",
    "table nothing table-keys",
    "table sorted table-keys",
    "Broken Feature.item.nothing handler",
    "Broken Feature.item.schema schema",
    "Broken Feature.7 handler-name",
    "Broken Feature feature-name",
    "Broken Feature.noEntity handler-name",
    "Broken Feature.noEntity handler",
    "Broken Feature.noEntity schema",
    "Broken Feature.noEntity unknown-option",
    "Broken Feature.item.post route-method",
    "Broken Feature.item.open access-missing",
    "Broken Feature.item.rule access-rule",
    "Broken Feature.item.loose access-without-route",
    "Broken Feature.item.body body-kind",
    "Broken Feature.item.body body-without-route",
    "Broken Feature.item.slash route",
    "Broken Feature.item.reserved route-reserved",
    "table Bad Name table-name",
    "table Bad Name table-keys",
    "r.config config-keys",
    "r.config unknown-option",
    "surprise unknown-option",
    "basePath option-type",
    "environment option-type",
    "trace.incoming option-type",
    "trace.outgoing unknown-option",
    "dynamodb.prefix option-type",
    "dynamodb.endpoint option-type",
    "dynamodb.region unknown-option",
    "ssm.path option-type",
    "ssm.region unknown-option",
    "log.level option-type",
    "log.redact option-type",
    "log.powertools option-type",
    "limits.bodyBytes option-type",
    "limits.bufferedBytes option-type",
    "limits.bodies unknown-option",
    "isolation.role option-type",
    "isolation.tag unknown-option",
    "messages.proof option-type",
    "messages.sign unknown-option",
    "once option-type",
    "repeats.item.status status",
    "repeats.item.statuses status",
    "repeats.item.stateless status",
    "repeats.item.once once",
    "repeats.item.replay replay",
    "repeats.item.list replay-headers",
    "repeats.item.text replay-headers",
    "repeats.item.empty replay-headers",
    "repeats.item.cookie replay-headers",
  ]) {
    expect(rules).toContain(expected);
  }
  expect(rules.some((rule) => rule.startsWith("hello:config:unknown "))).toBe(true);
  expect(rules.some((rule) => rule.startsWith("auth"))).toBe(true);
  expect(rules.some((rule) => rule.startsWith("cors"))).toBe(true);
});

test.each<[unknown]>([
  [true],
  ["either"],
  [null],
  [[]],
  [{ key: false }],
  [{ key: "sometimes" }],
  [{ key: "either", required: true }],
  [{ required: 1 }],
  [{ keepSeconds: 299 }],
  [{ waitMs: -1 }],
  [{ waitMs: 1.5 }],
  [{ waitMs: "10" }],
  [{ wait: 10 }],
])("refuses %j as the option once", (once) => {
  expect(problemsOf({ features: [], once })).toEqual([
    expect.objectContaining({
      key: "once",
      rule: "option-type",
      fix: expect.stringMatching(/^use .*"idempotency-key".*or waitMs from 0$/),
    }),
  ]);
});

test.each<[ServerOptions["once"]]>([
  [false],
  [{}],
  [{ waitMs: 0 }],
  [{ key: "either", waitMs: 5_000 }],
  [{ required: true, keepSeconds: 604_800 }],
])("accepts %j as the option once", (once) => {
  expect(problemsOf({ features: [], ...(once !== undefined && { once }) })).toEqual([]);
});

test("accepts valid options", () => {
  const options: ServerOptions = {
    features: [hello],
    basePath: "",
    environment: "test",
    dynamodb: { prefix: "my-app", endpoint: "http://127.0.0.1:8000" },
    ssm: { path: "/app/production" },
    keyRing: { parameter: "/app/key-ring" },
    log: { level: "warn", redact: ["user.email", "*.card"], powertools: new PowertoolsLogger() },
    limits: { bodyBytes: 0, bufferedBytes: 0 },
    once: { waitMs: 0, key: "idempotency-key", required: true, keepSeconds: 300 },
    auth: { secret: "s".repeat(32) },
    cors: { origins: "*" },
  };

  expect(problemsOf(options)).toEqual([]);
  expect(
    problemsOf({ features: [], basePath: "/api/v1", config: undefined, log: undefined }),
  ).toEqual([]);
  expect(
    problemsOf({ features: [], log: { powertools: { level: 8, info: () => {} } } }),
  ).toHaveLength(1);
  expect(problemsOf({ features: [], basePath: null, config: 7 }).length).toBe(3);
  for (const ssm of [
    {},
    { path: "/" },
    { path: "app" },
    { path: "/app/" },
    { path: "/a b" },
    { path: "/a".repeat(14) },
    7,
  ]) {
    expect(problemsOf({ features: [], ssm })).toHaveLength(1);
  }
  for (const keyRing of [
    {},
    { parameter: "" },
    { parameter: "a b" },
    { parameter: "/app/" },
    { parameter: 7 },
    7,
    { parameter: "/app/key-ring", bindVersion: 2 },
  ]) {
    expect(problemsOf({ features: [], keyRing })).toHaveLength(1);
  }
  const below = { ssm: { path: "/app" }, keyRing: { parameter: "/app/key-ring" } };
  expect(problemsOf({ features: [], ...below })).toMatchObject([
    { key: "keyRing.parameter", rule: "key-ring-path" },
  ]);
});

test.each([
  ["nothing", undefined],
  ["null", null],
  ["a feature that is no array", { features: "files" }],
  ["groups of the wrong type", { features: [], log: 3, dynamodb: [], config: 5, limits: null }],
])("reports options that are %s instead of crashing", (_name, options) => {
  expect(problemsOf(options).length).toBeGreaterThan(0);
});

test("reports two routes that answer the same requests, with both names", () => {
  const twice = defineFeature("twice", (r) => {
    r.query("item.one", {
      route: "GET /items/:id",
      access: access.everyone,
      handler: async () => 1,
    });
    r.query("item.two", {
      route: "GET /items/:name",
      access: access.everyone,
      handler: async () => 2,
    });
  });

  expect(problemsOf({ features: [twice] })).toMatchObject([
    { rule: "route-conflict", key: "twice.item.two" },
  ]);
});

test("reserves the feature name keelson", () => {
  const own = defineFeature("keelson", () => {});

  expect(problemsOf({ features: [own] })).toMatchObject([{ rule: "feature-reserved" }]);
});

test("createRegistry collects without validating", () => {
  const registry = createRegistry([hello, hello]);

  expect(registry.handlers.size).toBe(1);
  expect(registry.problems.length).toBeGreaterThan(0);
});

test("a boot error's message names every key, its problem, its fix, its place and its page", () => {
  const problem = { feature: "a", key: "a:config:b", message: "m", fix: "f" };
  const error = new BootError([
    { ...problem, at: "src/notes.ts:12", rule: "formerly" },
    { ...problem, rule: "key-name" },
  ]);

  expect(error.message).toBe(
    `2 problems at boot
  a:config:b: m; f (src/notes.ts:12, docs/boot-problems.md#formerly)
  a:config:b: m; f (docs/boot-problems.md#key-name)`,
  );
  expect(new BootError(error.problems.slice(1)).message).toMatch(/^1 problem at boot\n/);
});

test("a problem's place is its declaration, or else the call of buildServer", () => {
  const lines: number[] = [];
  const next = () => {
    const [, , caller = ""] = String(new Error().stack).split("\n");
    lines.push(Number(/:(\d+):\d+\)?$/.exec(caller)?.[1]) + 1);
  };
  const wrong = defineFeature("wrong", (r) => {
    next();
    r.query("list", { handler: async () => 1 });
    next();
    r.table("notes", { partitionKey: "", tenant: true });
    r.on("nothing.made" as never, { name: "forget", handler: async () => {} });
  });
  let problems: readonly BootProblem[] = [];
  try {
    next();
    buildServer({ features: [wrong], basePath: "api" });
  } catch (error) {
    ({ problems } = error as BootError);
  }

  const [query, table, server] = lines.map((line) => `src/app/server/server.test.ts:${line}`);
  expect(problems.map(({ rule, at }) => [rule, at])).toEqual([
    ["option-type", server],
    ["handler-name", query],
    ["table-keys", table],
    ["event-undeclared", server],
  ]);
});

test("without a problem, no stack is captured", () => {
  const captured = vi.spyOn(process, "cwd");
  defineFeature("sound", (r) => void r.query("file.list", { handler: async () => 1 }));
  buildServer({ features: [hello] });
  expect(captured).not.toHaveBeenCalled();
  defineFeature("wrong", (r) => void r.query("list", { handler: async () => 1 }));
  expect(captured).toHaveBeenCalledTimes(1);
  captured.mockRestore();
});

test("closers and checks need a unique name, and are registered only until a host starts", () => {
  const server = buildServer({ features: [] });
  server.onClose("pool", () => {});
  server.onReadyCheck("pool", () => true);

  expect(() => server.onClose("pool", () => {})).toThrow(/the name is taken/);
  serverInternals(server).started = true;
  expect(() => server.onReadyCheck("late", () => true)).toThrow(/started already/);
});

test("validated options cannot be changed afterwards", () => {
  const options = {
    features: [hello],
    config: { "hello:config:greeting-limit": 3 },
    cors: { origins: ["https://a.example.com"], allowedHeaders: ["X-A"], exposedHeaders: ["X-B"] },
  };
  const { options: own } = serverInternals(buildServer(options));
  options.config["hello:config:greeting-limit"] = 99;
  for (const list of Object.values(options.cors)) list.push("*");

  expect(own).toMatchObject({
    config: { "hello:config:greeting-limit": 3 },
    cors: { origins: ["https://a.example.com"], allowedHeaders: ["X-A"], exposedHeaders: ["X-B"] },
  });
  for (const cors of [{ origins: "*" }, { origins: "*", allowedHeaders: "*" }] as const) {
    expect(serverInternals(buildServer({ features: [], cors })).options.cors).toEqual(cors);
  }
});

test("refuses anything that is not a server by name", () => {
  expect(() => serverInternals({} as never)).toThrow(/not a server/);
  expect(() => serverInternals(undefined as never)).toThrow(/not a server/);
});

test("a server is ready at once when it has nothing to load", async () => {
  await expect(buildServer({ features: [] }).ready()).resolves.toBeUndefined();
  await expect(buildServer({ features: [], ssm: { path: "/app" } }).ready()).rejects.toThrow(
    /no host has set the endpoint of SSM/,
  );
  await expect(
    buildServer({ features: [], keyRing: { parameter: "/ring" } }).ready(),
  ).rejects.toThrow(/no host has set the endpoint of SSM/);
});

test("a server's resolver fails with instructions until its overrides are loaded", async () => {
  const { resolver } = buildServer({ features: [], config: {} });
  await expect(resolver.getWithSource("a:config:b", {} as never, "t", "u", {})).rejects.toThrow(
    /await server\.ready\(\)/,
  );
  expect(() => resolver.override("a:config:b")).toThrow(/await server\.ready\(\)/);
});

/** A feature as plain JavaScript may declare it. */
function plainFeature(
  name: string,
  declare: (
    r: Record<"config" | "table" | "query" | "write", (...parameters: unknown[]) => void>,
  ) => void,
) {
  return defineFeature(name, (r) => void declare(r as never));
}

function problemsOf(options: unknown) {
  try {
    buildServer(options as ServerOptions);
  } catch (error) {
    if (error instanceof BootError) return unplaced(error.problems);
    throw error;
  }
  return [];
}

test("validates the cache's times and bound, and names unknown options", () => {
  const cache = { ttlMs: 6_000, maxStaleMs: 5_000, maxTenants: 0, more: 1 };
  const problems = problemsOf({ features: [hello], cache });

  expect(problems.map(({ key, rule }) => `${key} ${rule}`)).toEqual([
    "cache.maxStaleMs option-type",
    "cache.maxTenants option-type",
    "cache.more unknown-option",
  ]);
  expect(problemsOf({ features: [hello], cache: 5 as never }).map(({ key }) => key)).toEqual([
    "cache",
  ]);
  expect(
    buildServer({ features: [hello], cache: { ttlMs: 0, maxTenants: 1 } }).registry.configKeys.size,
  ).toBe(1);
});

test("the phases of a shutdown must fit into its total", () => {
  const rules = (shutdown: unknown) =>
    problemsOf({ features: [], shutdown }).map(({ key, rule }) => `${key} ${rule}`);
  expect(rules({ drainMs: 37_000 })).toEqual(["shutdown.totalMs shutdown-total"]);
  expect(rules({ lingerMs: 0, drainMs: 0, totalMs: 199 })).toEqual([
    "shutdown.totalMs shutdown-total",
  ]);
  expect(rules({ lingerMs: 0, drainMs: 1, totalMs: 1_000 })).toEqual([]);
  expect(rules({ lingerMs: 0, drainMs: 2, totalMs: 1_001 })).toEqual([
    "shutdown.totalMs shutdown-total",
  ]);
  expect(rules({ lingerMs: undefined, drainMs: 39_500 })).toEqual([
    "shutdown.totalMs shutdown-total",
  ]);
  expect(rules({ lingerMs: undefined, drainMs: Object.create(null) })).toEqual([
    "shutdown.drainMs option-type",
  ]);
  buildServer({ features: [], shutdown: { drainMs: 36_000 } });
  buildServer({ features: [], shutdown: {} });
});

test("refuses a production key set without issuer and audience, as tokens for other services would be valid", () => {
  const jwks = "https://id.example.com/keys";
  const problemsOf = (
    auth: AuthOptions,
    environment: "production" | "development" = "production",
  ) => {
    try {
      buildServer({ features: [], auth, environment });
      return [];
    } catch (error) {
      return unplaced((error as BootError).problems);
    }
  };

  expect(problemsOf({ jwks })).toEqual([
    {
      feature: "",
      key: "auth",
      rule: "foreign-tokens",
      message:
        "neither auth.issuer nor auth.audience is set, so tokens that were issued for other applications count",
      fix: "set the audience of this application, or at least the issuer",
    },
  ]);
  expect(problemsOf({ jwks, audience: "files-api" })).toEqual([]);
  expect(problemsOf({ jwks, issuer: "https://id.example.com/" })).toEqual([]);
  expect(problemsOf({ secret: "s".repeat(32) })).toEqual([]);
  expect(problemsOf({ jwks }, "development")).toEqual([]);
});

test.each(["sign", "require"] as const)(
  "messages.proof %s requires a key ring in production",
  (proof) => {
    const problems = (options: object) =>
      problemsOf({ features: [hello], messages: { proof }, ...options });
    expect(problems({ environment: "production" })).toEqual([
      {
        feature: "",
        key: "messages.proof",
        rule: "proof-key-ring",
        message: `"${proof}" requires a key ring, and the server has no key ring`,
        fix: "name one as keyRing.parameter, made with keelson key-ring create",
      },
    ]);
    expect(problems({ environment: "production", keyRing: { parameter: "/app/ring" } })).toEqual(
      [],
    );
    expect(problems({ environment: "production", messages: { proof: "off" } })).toEqual([]);
    // A ring is made from the development secret.
    expect(problems({ environment: "test" })).toEqual([]);
  },
);

test("reports each invalid error declaration, with the allowed values", () => {
  const errors = {
    "Out-Of-Stock": 409,
    __: 409,
    sold: 200,
    half: 409.5,
    late: 600,
    text: "409",
    big: 409n,
    not_found: 410,
  };
  const sound = {
    out_of_stock: 409,
    overloaded: 503,
    constructor: 409,
    v2_gone: 410,
    pipeline_error: 503,
  };
  const shop = plainFeature("shop", (r) => {
    r["write"]("item.buy", {
      handler: async () => 1,
      errors: { ...errors, ["x".repeat(101)]: 409, ...sound },
    });
  });

  expect(problemsOf({ features: [shop] }).map(({ message, fix }) => `${message}; ${fix}`)).toEqual([
    ...["Out-Of-Stock", "__", "sold", "half", "late", "text", "big"].map(
      (code) =>
        `"${code}" of \`errors\` is not a code with the status of an error; use snake case, and a status from 400 to 599`,
    ),
    '"not_found" of `errors` is keelson\'s own; use 404, or another code',
    expect.stringContaining("x".repeat(100)),
  ]);
});

test("a handler's declared errors cannot be changed afterwards", () => {
  const errors = { sold: 409 };
  const shop = plainFeature("shop", (r) =>
    r["write"]("item.buy", { handler: async () => 1, errors }),
  );
  errors.sold = 410;
  const { handlers } = buildServer({ features: [shop] }).registry;

  expect(handlers.get("shop.item.buy")?.errors).toEqual({ sold: 409 });
});
