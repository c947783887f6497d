import { describe, expect, test } from "vitest";
import { FrameworkError, NotFoundError } from "../../../base/errors/errors.ts";
import type { Logger } from "../../../base/log/logger.ts";
import { createSecrets } from "../../../base/secrets/secrets.ts";
import {
  createSystemConfig,
  createTenantConfig,
  createUserConfig,
} from "../declare/declaration.ts";
import type { ComputedContext, ConfigKeyDefinition, ConfigScope } from "../declare/key.ts";
import type { ConfigSource } from "./cascade.ts";
import { type ComputedNode, createComputedValues } from "./computed-values.ts";
import { type KeyRows, uncachedRows } from "./key-rows.ts";
import {
  type ConfigDatabase,
  type ConfigResolver,
  type ConfigSession,
  configSession,
  createConfigResolver,
} from "./resolver.ts";
import { createRowCipher } from "./row-cipher.ts";
import {
  type ConfigRow,
  type ConfigRowReader,
  type RowAddress,
  type RowOwner,
  systemPartition,
  tenantPartition,
  userPartition,
} from "./rows.ts";

const id = "files:config:limit";
const nowMs = 1_700_000_000_000;
const ann: RowOwner = { tenantId: "acme", userId: "ann" };
const bounds = { min: 1, max: 100 };

/** Rows by partition and key, and what was asked for. */
function store(rows: Record<string, ConfigRow>) {
  const calls: (readonly RowAddress[])[] = [];
  const reader: ConfigRowReader = {
    read: async (addresses) => {
      calls.push(addresses);
      return addresses.map(({ partition, key }) => (key === id ? rows[partition] : undefined));
    },
  };
  return { reader, calls };
}

function recorder() {
  const lines: { msg: string; data: Record<string, unknown> | undefined }[] = [];
  const log: Logger = {
    info: () => {},
    debug: () => {},
    error: () => {},
    warn: (msg, data) => lines.push({ msg, data }),
    child: () => log,
  };
  return { log, lines };
}

interface SessionFacts {
  readonly rows?: ConfigRowReader;
  readonly log?: Logger;
  readonly config?: (id: string, node: ComputedNode) => Promise<unknown>;
}

function session(
  caller: RowOwner,
  { rows = store({}).reader, log = recorder().log, config }: SessionFacts = {},
): ConfigSession {
  return {
    ...caller,
    rows: uncachedRows(rows, caller),
    log,
    clock: { now: () => nowMs },
    computed: createComputedValues(),
    held: new Map(),
    cipher: createRowCipher(createSecrets({ clock: { now: () => nowMs } }), () => "config"),
    // The functions of these tests use nothing of their ctx but `config`.
    contextFor: (node) =>
      ({
        config: (handle: { id: string }) => config?.(handle.id, node),
      }) as unknown as ComputedContext,
  };
}

function row(value: unknown, more: Partial<ConfigRow> = {}): ConfigRow {
  return { value, version: 1, ...more };
}

describe("resolve", () => {
  const { definition } = createUserConfig("number", { default: 10, bounds });

  test("reads only the rows of the key's scope, in one call", async () => {
    const expected: Record<ConfigScope, string[]> = {
      user: ["config#user#acme#ann", "config#tenant#acme", "config#system"],
      tenant: ["config#tenant#acme", "config#system"],
      system: ["config#system"],
    };
    for (const declaration of [
      createUserConfig("text", {}),
      createTenantConfig("text", {}),
      createSystemConfig("text", {}),
    ]) {
      const { reader, calls } = store({});
      await createConfigResolver().resolve(
        session(ann, { rows: reader }),
        id,
        declaration.definition,
      );
      const partitions = expected[declaration.definition.scope];
      expect(calls).toEqual([partitions.map((partition) => ({ partition, key: id }))]);
    }
  });

  test("never reads rows of other users or tenants", async () => {
    const { reader } = store({
      [userPartition("acme", "bob")]: row(2),
      [tenantPartition("other")]: row(3),
    });
    const resolved = await createConfigResolver().resolve(
      session(ann, { rows: reader }),
      id,
      definition,
    );
    expect(resolved).toEqual({ value: 10, source: "default" });
  });

  test("ignores unsealed rows of an encrypted key, and never logs their values", async () => {
    const { log, lines } = recorder();
    const { reader } = store({
      [tenantPartition("acme")]: row("hunter2"),
      [systemPartition()]: row("hunter3"),
    });
    const secret = createTenantConfig("text", { encrypted: true, default: "none" }).definition;
    const resolved = await createConfigResolver().resolve(
      session(ann, { rows: reader, log }),
      id,
      secret,
    );
    expect(resolved).toEqual({ value: "none", source: "default" });
    expect(lines.map(({ data }) => data)).toEqual([
      { key: id, source: "tenant-row", reason: "the row of an encrypted key is not sealed" },
      { key: id, source: "system-row", reason: "the row of an encrypted key is not sealed" },
    ]);
  });

  test("accepts an application override for an encrypted key", async () => {
    const secret = createTenantConfig("text", { encrypted: true }).definition;
    const resolver = createConfigResolver({ appOverrides: { [id]: "from-the-deployment" } });
    expect(await resolver.resolve(session(ann), id, secret)).toEqual({
      value: "from-the-deployment",
      source: "app-override",
    });
  });

  test("falls back to the framework's default, with source default", async () => {
    const key = "files:config:max-upload-size-mb";
    const bare = createTenantConfig("number", { bounds: { min: 1, max: 5 } }).definition;
    expect(await createConfigResolver().resolve(session(ann), key, bare)).toEqual({
      value: 5,
      source: "default",
    });
  });

  test("does not mistake Object's own members for overrides", async () => {
    const bare = createTenantConfig("text", {}).definition;
    const { log, lines } = recorder();
    for (const name of ["__proto__", "constructor", "toString"]) {
      const resolver = createConfigResolver({ appOverrides: {} });
      expect(await resolver.resolve(session(ann, { log }), name, bare)).toEqual({
        value: undefined,
        source: "missing",
      });
    }
    expect(lines).toEqual([]);
  });
});

describe("cached rows", () => {
  const { definition } = createTenantConfig("number", { default: 10, bounds });
  const known = (stored: ConfigRow | undefined): KeyRows => ({
    levels: [{ source: "tenant-row", partition: tenantPartition("acme"), row: stored }],
    isHeld: () => true,
    decision: undefined,
  });
  const at = (rows: KeyRows, clock = { now: () => nowMs }): ConfigSession => ({
    ...session(ann),
    clock,
    rows: { rowsOf: () => rows },
  });

  test("are resolved synchronously, and only once for all sessions of a resolver", async () => {
    const resolver = createConfigResolver();
    const rows = known(row(7));
    const one = at(rows);
    expect(resolver.resolve(one, id, definition)).toEqual({ value: 7, source: "tenant-row" });
    const { decision } = rows;
    expect(resolver.resolve(at(rows), id, definition)).toBe(decision?.outcome);
    expect(rows.decision).toBe(decision);
    expect(await one.held.get(id)?.value).toBe(7);
  });

  test("are resolved again by another resolver and for another definition", () => {
    const rows = known(undefined);
    const overriding = createConfigResolver({ appOverrides: { [id]: 40 } });
    const plain = createConfigResolver();
    const other = createTenantConfig("number", { default: 11 }).definition;
    const values = [
      plain.resolve(at(rows), id, definition),
      overriding.resolve(at(rows), id, definition),
      plain.resolve(at(rows), id, definition),
      plain.resolve(at(rows), id, other),
    ];
    expect(values).toMatchObject([{ value: 10 }, { value: 40 }, { value: 10 }, { value: 11 }]);
  });

  test("are resolved again when the first of them expires", () => {
    const clock = { time: nowMs, now: () => clock.time };
    const rows = known(row(7, { expiresAt: nowMs / 1000 + 2 }));
    const resolver = createConfigResolver();
    expect(resolver.resolve(at(rows, clock), id, definition)).toMatchObject({ value: 7 });
    clock.time += 1_999;
    expect(resolver.resolve(at(rows, clock), id, definition)).toMatchObject({ value: 7 });
    clock.time += 1;
    expect(resolver.resolve(at(rows, clock), id, definition)).toMatchObject({ value: 10 });
  });

  test("of a computed key run the function once per session", async () => {
    let runs = 0;
    const key = createTenantConfig("number", { computed: async () => ++runs }).definition;
    const resolver = createConfigResolver();
    const rows = known(undefined);
    const one = at(rows);
    expect(await resolver.resolve(one, id, key)).toEqual({ value: 1, source: "computed" });
    expect(await resolver.resolve(one, id, key)).toEqual({ value: 1, source: "computed" });
    expect(await resolver.resolve(at(rows), id, key)).toEqual({ value: 2, source: "computed" });
    expect(one.held.get(id)).toBeUndefined();
  });
});

describe("misfits", () => {
  const { definition } = createTenantConfig("number", { default: 10, bounds });

  test("of a row are logged once per version and resolver", async () => {
    const { log, lines } = recorder();
    const read = async (resolver: ConfigResolver, version: number, tenantId = "acme") => {
      const { reader } = store({ [tenantPartition(tenantId)]: row(500, { version }) });
      await resolver.resolve(
        session({ tenantId, userId: "ann" }, { rows: reader, log }),
        id,
        definition,
      );
      return lines.length;
    };
    const resolver = createConfigResolver();
    expect([await read(resolver, 1), await read(resolver, 1)]).toEqual([1, 1]);
    expect([await read(resolver, 2), await read(resolver, 2)]).toEqual([2, 2]);
    expect([await read(resolver, 1, "other"), await read(resolver, 1, "other")]).toEqual([3, 3]);
    expect(await read(createConfigResolver(), 1)).toBe(4);
    expect(lines[0]).toEqual({
      msg: "config.misfit",
      data: { key: id, source: "tenant-row", reason: "500 is above bounds.max 100; it is clamped" },
    });
  });

  test("of an override are logged once per tenant, and fall through", async () => {
    const { log, lines } = recorder();
    const resolver = createConfigResolver({ appOverrides: { [id]: "many" } });
    const read = async (tenantId: string) =>
      (await resolver.resolve(session({ tenantId, userId: undefined }, { log }), id, definition))
        .value;
    expect([await read("acme"), await read("acme"), await read("other")]).toEqual([10, 10, 10]);
    expect(lines.map(({ data }) => data?.["source"])).toEqual(["app-override", "app-override"]);
  });

  test("of a computed value are logged once per tenant and reason", async () => {
    const { log, lines } = recorder();
    const resolver = createConfigResolver();
    const read = async (tenantId: string, value: number) => {
      const key = createTenantConfig("number", {
        default: 10,
        bounds,
        computed: () => value,
      }).definition;
      return (await resolver.resolve(session({ tenantId, userId: undefined }, { log }), id, key))
        .value;
    };
    expect([await read("acme", 500), await read("acme", 500)]).toEqual([100, 100]);
    expect(lines).toHaveLength(1);
    await read("other", 500);
    await read("acme", 600);
    expect(lines).toHaveLength(3);
  });
});

describe("computed keys", () => {
  test("run the function once per request, and never when a row wins", async () => {
    let runs = 0;
    const key = createTenantConfig("number", { computed: async () => ++runs }).definition;
    const resolver = createConfigResolver();
    const one = session(ann);
    const both = await Promise.all([
      resolver.resolve(one, id, key),
      resolver.resolve(one, id, key),
    ]);
    expect(both.map(({ value }) => value)).toEqual([1, 1]);
    const { reader } = store({ [systemPartition()]: row(7) });
    expect(await resolver.resolve(session(ann, { rows: reader }), id, key)).toEqual({
      value: 7,
      source: "system-row",
    });
    expect(runs).toBe(1);
    expect((await resolver.resolve(session(ann), id, key)).value).toBe(2);
  });

  test("fail the read when the function throws", async () => {
    const error = new NotFoundError("plan", "acme");
    const computed = async (): Promise<number> => {
      throw error;
    };
    const key = createTenantConfig("number", { default: 1, computed }).definition;
    await expect(createConfigResolver().resolve(session(ann), id, key)).rejects.toBe(error);
  });

  test("report a cycle of keys by name, and a row breaks it", async () => {
    const handle = (key: string) => ({ id: key, definition: keys[key] as ConfigKeyDefinition });
    const reads = (key: string) => async (ctx: ComputedContext) =>
      Number(await ctx.config(handle(key))) + 1;
    const keys: Record<string, ConfigKeyDefinition> = {
      a: createTenantConfig("number", { computed: reads("b") }).definition,
      b: createTenantConfig("number", { computed: reads("a") }).definition,
    };
    const resolver = createConfigResolver();
    const read = (rows: ConfigRowReader) => {
      const one: ConfigSession = session(ann, {
        rows,
        config: async (key, node) =>
          (await resolver.resolve(one, key, keys[key] as ConfigKeyDefinition, node)).value,
      });
      return resolver.resolve(one, "a", keys["a"] as ConfigKeyDefinition);
    };
    await expect(read(store({}).reader)).rejects.toThrow("a -> b -> a");
    const rowOfB: ConfigRowReader = {
      read: async (all) => all.map(({ key }) => (key === "b" ? row(5) : undefined)),
    };
    expect(await read(rowOfB)).toEqual({ value: 6, source: "computed" });
  });
});

describe("unreadable rows", () => {
  const { definition } = createTenantConfig("number", { default: 10 });
  const failing = (error: unknown) => session(ann, { rows: { read: () => Promise.reject(error) } });

  test("fail the read with config_unavailable, and never fall back to the default", async () => {
    const cause = new Error("connect ECONNREFUSED 10.0.0.1");
    const error = await Promise.resolve(
      createConfigResolver().resolve(failing(cause), id, definition),
    ).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(FrameworkError);
    expect(error).toMatchObject({ code: "config_unavailable", status: 503, cause });
    expect(String(error)).not.toContain("10.0.0.1");
  });

  test("pass on a typed error", async () => {
    const typed = new FrameworkError("timeout", "too late");
    await expect(createConfigResolver().resolve(failing(typed), id, definition)).rejects.toBe(
      typed,
    );
  });

  test("tolerate a reader that throws synchronously or returns too few rows", async () => {
    const throwing: ConfigRowReader = {
      read: () => {
        throw new Error("no table");
      },
    };
    const resolver = createConfigResolver();
    await expect(
      resolver.resolve(session(ann, { rows: throwing }), id, definition),
    ).rejects.toMatchObject({ status: 503 });
    const silent: ConfigRowReader = { read: async () => [] };
    expect((await resolver.resolve(session(ann, { rows: silent }), id, definition)).value).toBe(10);
  });
});

describe("getWithSource", () => {
  const { definition } = createTenantConfig("number", { default: 10, bounds });
  const databaseOf = (rows: ConfigRowReader): ConfigDatabase => ({
    [configSession]: (caller) => session(caller, { rows }),
  });

  test("reads for the given caller, through the session of the database", async () => {
    const database = databaseOf(store({ [tenantPartition("other")]: row(7) }).reader);
    const resolver = createConfigResolver();
    expect(await resolver.getWithSource(id, definition, "other", "bob", database)).toEqual({
      value: 7,
      source: "tenant-row",
    });
    expect(await resolver.getWithSource(id, definition, undefined, undefined, database)).toEqual({
      value: 10,
      source: "default",
    });
  });

  test.each([{}, { [configSession]: 5 }, null, undefined, "db"])(
    "refuses %o as a database, and says what to pass",
    async (db) => {
      const read = createConfigResolver().getWithSource(
        id,
        definition,
        "acme",
        "ann",
        db as object,
      );
      await expect(read).rejects.toThrow(
        `getWithSource(${id}): the last argument is not a ctx.db; pass the db of the ctx`,
      );
    },
  );
});

describe("the resolver and a naive model", () => {
  type Stored = "absent" | "deleted" | "expired" | "fits" | "outside" | "misfit";
  const stored: readonly Stored[] = ["absent", "deleted", "expired", "fits", "outside", "misfit"];
  const callers: readonly RowOwner[] = [
    ann,
    { tenantId: "acme", userId: undefined },
    { tenantId: undefined, userId: "ann" },
    { tenantId: undefined, userId: undefined },
  ];
  const rowFor: Record<Stored, (value: number) => ConfigRow | undefined> = {
    absent: () => undefined,
    deleted: (value) => row(value, { deleted: true }),
    expired: (value) => row(value, { expiresAt: nowMs / 1000 }),
    fits: (value) => row(value, { expiresAt: nowMs / 1000 + 1 }),
    outside: () => row(1000),
    misfit: () => row("5"),
  };
  const computedValue: Record<string, unknown> = {
    fits: 50,
    outside: 1000,
    misfit: "5",
    none: undefined,
  };
  const factories = {
    system: createSystemConfig,
    tenant: createTenantConfig,
    user: createUserConfig,
  };

  /** The cascade, spelt out level by level. */
  function model(
    scope: ConfigScope,
    caller: RowOwner,
    level: {
      user: Stored;
      tenant: Stored;
      system: Stored;
      override: boolean;
      computed: string;
      default: boolean;
    },
  ): { value: unknown; source: ConfigSource } {
    if (scope === "user" && caller.tenantId && caller.userId) {
      if (level.user === "fits") return { value: 10, source: "user-row" };
      if (level.user === "outside") return { value: 100, source: "user-row" };
    }
    if ((scope === "user" || scope === "tenant") && caller.tenantId) {
      if (level.tenant === "fits") return { value: 20, source: "tenant-row" };
      if (level.tenant === "outside") return { value: 100, source: "tenant-row" };
    }
    if (level.system === "fits") return { value: 30, source: "system-row" };
    if (level.system === "outside") return { value: 1000, source: "system-row" };
    if (level.override) return { value: 40, source: "app-override" };
    if (level.computed === "fits") return { value: 50, source: "computed" };
    if (level.computed === "outside")
      return { value: scope === "system" ? 1000 : 100, source: "computed" };
    return level.default
      ? { value: 60, source: "default" }
      : { value: undefined, source: "missing" };
  }

  test.each(["system", "tenant", "user"] as const)(
    "agree on every combination of levels for a %s key",
    async (scope) => {
      const plain = createConfigResolver({});
      const overridden = createConfigResolver({ appOverrides: { [id]: 40 } });
      let combinations = 0;
      const seen = new Set<ConfigSource>();
      for (const computed of ["absent", ...Object.keys(computedValue)]) {
        for (const hasDefault of [false, true]) {
          const options = {
            bounds,
            ...(hasDefault ? { default: 60 } : {}),
            // A value that does not fit reaches `computed` only past the compiler.
            ...(computed === "absent" ? {} : { computed: () => computedValue[computed] as number }),
          };
          const { definition } = factories[scope]("number", options);
          for (const user of stored) {
            for (const tenant of stored) {
              for (const system of stored) {
                const { reader } = store({
                  ...entry(userPartition("acme", "ann"), rowFor[user](10)),
                  ...entry(tenantPartition("acme"), rowFor[tenant](20)),
                  ...entry(systemPartition(), rowFor[system](30)),
                });
                for (const caller of callers) {
                  for (const override of [false, true]) {
                    const resolver = override ? overridden : plain;
                    const resolved = await resolver.resolve(
                      session(caller, { rows: reader }),
                      id,
                      definition,
                    );
                    const expected = model(scope, caller, {
                      user,
                      tenant,
                      system,
                      override,
                      computed,
                      default: hasDefault,
                    });
                    if (resolved.value !== expected.value || resolved.source !== expected.source) {
                      expect({
                        caller,
                        user,
                        tenant,
                        system,
                        override,
                        computed,
                        hasDefault,
                        ...resolved,
                      }).toMatchObject(expected);
                    }
                    seen.add(resolved.source);
                    combinations += 1;
                  }
                }
              }
            }
          }
        }
      }
      expect(combinations).toBe(6 ** 3 * 5 * 2 * 4 * 2);
      expect(seen.size).toBe({ system: 5, tenant: 6, user: 7 }[scope]);
    },
  );

  function entry(partition: string, value: ConfigRow | undefined): Record<string, ConfigRow> {
    return value === undefined ? {} : { [partition]: value };
  }
});
