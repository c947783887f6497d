import fc from "fast-check";
import { expect, test } from "vitest";
import { isTypedError } from "../../../base/errors/errors.ts";
import { access, anonymous, type User } from "../../../base/identity/access.ts";
import type { Logger } from "../../../base/log/logger.ts";
import { createSecrets } from "../../../base/secrets/secrets.ts";
import {
  createSystemConfig,
  createTenantConfig,
  createUserConfig,
} from "../declare/declaration.ts";
import type { KeyDeclaration } from "../declare/key.ts";
import { createComputedValues } from "../read/computed-values.ts";
import { createRowCipher } from "../read/row-cipher.ts";
import { type ConfigRow, type RowAddress, type RowOwner, tenantPartition } from "../read/rows.ts";
import { resetConfig, setConfig, undoConfig } from "./change.ts";
import { configHistory } from "./config-history.ts";
import { explainKey } from "./explain-config.ts";
import {
  type ConfigStore,
  type HistoryEntry,
  type OperatorContext,
  operatorSession,
  type RowCache,
  type RowWrite,
} from "./operator-session.ts";

const nowMs = 1_700_000_000_000;
const admin: User = { id: "ann", tenantId: "acme", roles: ["admin"], kind: "user" };
const bounds = { min: 1, max: 100 };
const limit = createTenantConfig("number", { default: 10, bounds });

const handle = <Value>({ definition }: KeyDeclaration<Value>) => ({
  id: "files:config:limit",
  definition,
});
const idOf = ({ partition, key }: RowAddress) => `${partition} ${key}`;

/** A store in memory; `before` runs ahead of each write, as another writer might. */
function memory({ before }: { before?: (write: RowWrite) => void } = {}) {
  const rows = new Map<string, ConfigRow>();
  const entries = new Map<string, HistoryEntry[]>();
  const store: ConfigStore = {
    read: async (addresses) => addresses.map((address) => rows.get(idOf(address))),
    write: async (write) => {
      before?.(write);
      const id = idOf(write.address);
      if (rows.get(id)?.version !== write.seen?.version) return false;
      rows.set(id, write.row);
      entries.set(id, [write.entry, ...(entries.get(id) ?? [])]);
      return true;
    },
    history: async (address, { before: newest = Number.POSITIVE_INFINITY, limit: most }) =>
      (entries.get(idOf(address)) ?? []).filter(({ version }) => version < newest).slice(0, most),
    itemsOf: () => [],
    sealedRows: async () => ({ rows: [], scanned: 0 }),
    reseal: async () => false,
  };
  return { rows, store };
}

function context(user: User, store: ConfigStore, seams: Partial<RowCache> = {}): OperatorContext {
  const log: Logger = {
    info: () => {},
    warn: () => {},
    error: () => {},
    debug: () => {},
    child: () => log,
  };
  const open = (owner: RowOwner) => ({
    ...owner,
    cache: { noteWrite: () => {}, invalidate: () => {}, ageMs: () => undefined, ...seams },
    store,
    override: () => undefined,
    log,
    clock: { now: () => nowMs },
    computed: createComputedValues(),
    held: new Map(),
    cipher: createRowCipher(createSecrets({ clock: { now: () => nowMs } }), () => "config"),
    contextFor: () => ({}) as never,
  });
  return { user, log, db: { [operatorSession]: open } as never };
}

test("versions grow by one, and rows, results and history match a model, for any sequence of set, reset and undo", async () => {
  const change = fc.oneof(
    fc.record({ kind: fc.constant("set" as const), value: fc.integer({ min: -5, max: 120 }) }),
    fc.record({ kind: fc.constant("reset" as const) }),
    fc.record({
      kind: fc.constant("undo" as const),
      version: fc.option(fc.integer({ min: 0, max: 12 }), { nil: undefined }),
    }),
  );
  const expectation = fc.constantFrom("none", "right", "wrong");
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.tuple(change, expectation), { maxLength: 12 }),
      async (changes) => {
        const { store } = memory();
        const ctx = context(admin, store);
        const key = handle(limit);
        // The model: what each version left, version 0 first.
        const states: (number | undefined)[] = [undefined];
        const actions: string[] = [];
        for (const [operation, expected] of changes) {
          const version = states.length - 1;
          const current = states[version];
          const options =
            expected === "none"
              ? {}
              : { expectedVersion: expected === "right" ? version : version + 1 };
          const run = async (work: () => Promise<unknown>): Promise<unknown> =>
            work().then(
              () => "done",
              (error: unknown) => (isTypedError(error) ? error.code : error),
            );
          let wanted: unknown = "done";
          let next: number | undefined | "same" = "same";
          let outcome: unknown;
          if (operation.kind === "set") {
            outcome = await run(() => setConfig(ctx, key, operation.value, options));
            if (operation.value < 1 || operation.value > 100) wanted = "validation_error";
            else next = operation.value;
          } else if (operation.kind === "reset") {
            outcome = await run(() => resetConfig(ctx, key, options));
            if (current !== undefined) next = undefined;
          } else {
            outcome = await run(() =>
              undoConfig(ctx, key, { ...options, version: operation.version }),
            );
            const goal = operation.version ?? version - 1;
            if (version === 0) wanted = "nothing_to_undo";
            else if (goal > version) wanted = "not_found";
            else next = states[goal];
          }
          if (expected === "wrong" && wanted !== "validation_error")
            [wanted, next] = ["version_conflict", "same"];
          expect(outcome).toBe(wanted);
          if (next !== "same") {
            states.push(next);
            actions.push(operation.kind);
          }
          const { value, levels } = await explainKey(ctx, key);
          expect(value).toBe(states.at(-1) ?? 10);
          expect(levels[0]?.version ?? 0).toBe(states.length - 1);
        }
        const { items } = await configHistory(ctx, key);
        expect(items.map(({ version, action, value }) => [version, action, value])).toEqual(
          actions.map((action, index) => [index + 1, action, states[index + 1]]).reverse(),
        );
      },
    ),
    { numRuns: 150 },
  );
});

test("a write overtaken by another one is applied on top of it, unless it expects a version", async () => {
  const overtaken = (times: number) => {
    let left = times;
    const { rows, store } = memory({
      before: ({ address, seen }) => {
        if (left-- > 0) rows.set(idOf(address), { value: 77, version: (seen?.version ?? 0) + 1 });
      },
    });
    return context(admin, store);
  };

  await expect(setConfig(overtaken(2), handle(limit), 20)).resolves.toEqual({
    key: "files:config:limit",
    value: 20,
    source: "tenant-row",
    version: 3,
  });
  await expect(
    setConfig(overtaken(1), handle(limit), 20, { expectedVersion: 0 }),
  ).rejects.toMatchObject({
    status: 409,
    code: "version_conflict",
  });
  await expect(setConfig(overtaken(99), handle(limit), 20)).rejects.toMatchObject({
    code: "version_conflict",
  });
});

test("each write is reported to the config reader, and an explanation shows the age of the row", async () => {
  const { store } = memory();
  const noted: unknown[] = [];
  const ctx = context(admin, store, {
    noteWrite: (...row) => void noted.push(row),
    ageMs: (partition) => (partition === tenantPartition("acme") ? 1_200 : undefined),
  });
  await setConfig(ctx, handle(limit), 20);
  await resetConfig(ctx, handle(limit));
  await resetConfig(ctx, handle(limit));

  expect(noted).toMatchObject([
    ["config#tenant#acme", "files:config:limit", { value: 20, version: 1 }],
    ["config#tenant#acme", "files:config:limit", { value: undefined, version: 2, deleted: true }],
  ]);
  expect(await explainKey(ctx, handle(limit))).toMatchObject({ cacheAgeMs: 1_200 });
});

test("a write with an unknown outcome invalidates the cached row", async () => {
  const { store } = memory();
  const doubted: unknown[] = [];
  const lost = { ...store, write: () => Promise.reject(new Error("socket hang up")) };
  const ctx = context(admin, lost, { invalidate: (...row) => void doubted.push(row) });

  await expect(setConfig(ctx, handle(limit), 20)).rejects.toMatchObject({
    code: "config_unavailable",
  });
  expect(doubted).toEqual([["config#tenant#acme", "files:config:limit"]]);
});

test("an expiry is rounded up to a full second, and undo restores it only if it is in the future", async () => {
  const { rows, store } = memory();
  const ctx = context(admin, store);
  await setConfig(ctx, handle(limit), 20, { expiresAt: new Date(nowMs + 1_500).toISOString() });
  await setConfig(ctx, handle(limit), 30);
  const { expiresAt } = await undoConfig(ctx, handle(limit)).then(
    () => rows.values().next().value ?? { expiresAt: 0 },
  );

  expect(expiresAt).toBe(nowMs / 1000 + 2);
  rows.clear();
  const past = memory();
  past.store.history = async () => [
    { value: 20, version: 1, action: "set", expiresAt: nowMs / 1000 },
  ];
  past.store.read = async (addresses) => addresses.map(() => ({ value: 30, version: 2 }));
  await expect(undoConfig(context(admin, past.store), handle(limit))).rejects.toMatchObject({
    fields: [{ field: "version", error: "its value has expired" }],
  });
});

test.each([
  ["text", "20", "is not a finite number but text; allowed is a number from 1 to 100"],
  ["no value", undefined, "is not a finite number but absent; allowed is a number from 1 to 100"],
  ["a value below the bounds", 0, "is below bounds.min 1; allowed is a number from 1 to 100"],
])(
  "a refused value names the key, the field and the allowed values: %s",
  async (_case, value, error) => {
    const ctx = context(admin, memory().store);
    const set = setConfig(ctx, handle(limit), value as number, { reason: "x".repeat(1_001) });

    await expect(set).rejects.toMatchObject({
      code: "validation_error",
      message: `files:config:limit: value ${error}; reason must be a string of at most 1000 characters`,
      fields: [{ field: "value", error }, { field: "reason" }],
    });
  },
);

test("refuses an argument that is not a handle, and names the function", async () => {
  const ctx = context(admin, memory().store);

  await expect(setConfig(ctx, "files:config:limit" as never, 1 as never)).rejects.toThrow(
    'setConfig: "files:config:limit" is not the handle of a configuration key; pass one that r.config returned',
  );
  await expect(resetConfig(ctx, undefined as never)).rejects.toThrow(
    "resetConfig: undefined is not the handle of a configuration key",
  );
  await expect(resetConfig(ctx, null as never)).rejects.toThrow(
    "resetConfig: null is not the handle of a configuration key",
  );
  await expect(resetConfig(ctx, {} as never)).rejects.toThrow(
    "resetConfig: an object is not the handle of a configuration key",
  );
  await expect(undoConfig(ctx, "files:config:limit" as never)).rejects.toThrow(
    'undoConfig: "files:config:limit" is not the handle of a configuration key',
  );
  await expect(configHistory(ctx, undefined as never)).rejects.toThrow(
    "configHistory: undefined is not the handle of a configuration key",
  );
});

test("refuses unknown options before a write", async () => {
  const { rows, store } = memory();
  const ctx = context(admin, store);
  const key = handle(limit);
  const wrong = { tenantID: "globex", expectVersion: 3 } as object;

  await expect(setConfig(ctx, key, 20, wrong)).rejects.toMatchObject({
    code: "validation_error",
    message: expect.stringMatching(/^setConfig: tenantID is not known; .*; expectVersion is not/),
    fields: [
      {
        field: "tenantID",
        error:
          "is not known; setConfig takes expiresAt, scope, tenantId, userId, reason, expectedVersion",
      },
      { field: "expectVersion" },
    ],
  });
  for (const refused of [
    resetConfig(ctx, key, wrong),
    undoConfig(ctx, key, wrong),
    configHistory(ctx, key, wrong),
  ])
    await expect(refused).rejects.toMatchObject({
      fields: [{ field: "tenantID" }, { field: "expectVersion" }],
    });
  expect(rows.size).toBe(0);
});

test("refuses to undo to a value outside the bounds, to a missing version, or of a secret", async () => {
  const { store } = memory();
  store.history = async () => [{ value: 500, version: 1, action: "set" }];
  store.read = async (addresses) => addresses.map(() => ({ value: 30, version: 2 }));
  const ctx = context(admin, store);
  const secret = createTenantConfig("text", { encrypted: true });

  await expect(undoConfig(ctx, handle(limit))).rejects.toMatchObject({
    fields: [
      {
        field: "version",
        error: "its value is above bounds.max 100; allowed is a number from 1 to 100",
      },
    ],
  });
  await expect(undoConfig(ctx, handle(limit), { version: 1.5 })).rejects.toMatchObject({
    fields: [{ field: "version" }],
  });
  await expect(undoConfig(ctx, handle(limit), { version: 7 })).rejects.toMatchObject({
    code: "not_found",
  });
  await expect(undoConfig(ctx, handle(limit), { reason: "x".repeat(1_001) })).rejects.toMatchObject(
    {
      fields: [{ field: "reason" }],
    },
  );
  await expect(resetConfig(ctx, handle(limit), { expectedVersion: -1 })).rejects.toMatchObject({
    fields: [{ field: "expectedVersion" }],
  });
  await expect(undoConfig(ctx, handle(secret))).rejects.toMatchObject({
    fields: [
      { field: "version", error: "was a secret, which history does not keep; set it again" },
    ],
  });
});

test("the history hides the value of a secret, and refuses an invalid page", async () => {
  const { store } = memory();
  store.history = async () => [{ value: "sealed", version: 1, action: "set" }];
  const ctx = context(admin, store);

  expect(await configHistory(ctx, handle(createTenantConfig("text", { encrypted: true })))).toEqual(
    {
      items: [{ version: 1, action: "set" }],
    },
  );
  await expect(configHistory(ctx, handle(limit), { limit: 101, before: -1 })).rejects.toMatchObject(
    {
      fields: [{ field: "before" }, { field: "limit" }],
    },
  );
  await expect(configHistory(ctx, handle(limit), { limit: 0 })).rejects.toMatchObject({
    fields: [{ field: "limit" }],
  });
});

test("an anonymous caller can write nothing, whatever the key's rules, and has no user rows", async () => {
  const open = { read: access.everyone, write: access.everyone };
  const ctx = context(anonymous, memory().store);

  await expect(
    setConfig(ctx, handle(createSystemConfig("boolean", open)), true),
  ).rejects.toMatchObject({ status: 401 });
  await expect(configHistory(ctx, handle(createUserConfig("boolean", open)))).rejects.toMatchObject(
    {
      fields: [{ field: "userId" }],
    },
  );
  expect(await explainKey(ctx, handle(createUserConfig("boolean", open)))).toMatchObject({
    source: "missing",
    levels: [{ source: "system-row" }, { source: "app-override" }, { source: "default" }],
  });
});

test("refuses a foreign ctx, and says which one to pass", async () => {
  const ctx = { ...context(admin, memory().store), db: {} as never };

  await expect(explainKey(ctx, handle(limit))).rejects.toThrow(/pass the ctx of a handler or job/);
});

test("passes on a typed error of the store", async () => {
  const { store } = memory();
  store.read = () =>
    Promise.reject(
      Object.assign(new Error("x"), { [Symbol.for("keelson.error")]: true, code: "own" }),
    );

  await expect(explainKey(context(admin, store), handle(limit))).rejects.toMatchObject({
    code: "own",
  });
});

test("explains a row without metadata and a computed function that throws a non-error", async () => {
  const { rows, store } = memory();
  const failing = createTenantConfig("number", {
    computed: (): number => {
      throw "no plan";
    },
  });
  const ctx = context(admin, store);

  expect(await explainKey(ctx, handle(failing))).toMatchObject({ source: "computed" });
  rows.set(idOf({ partition: tenantPartition("acme"), key: "files:config:limit" }), {
    value: 5,
    version: 3,
  });
  expect((await explainKey(ctx, handle(failing))).levels[0]).toEqual({
    source: "tenant-row",
    isSet: true,
    active: true,
    value: 5,
    version: 3,
  });
});

test("a computed value that JSON does not have is explained as valid JSON", async () => {
  const { store } = memory();
  const cyclic: Record<string, unknown> = {};
  cyclic["self"] = cyclic;
  const explained = async (value: unknown) => {
    const odd = createTenantConfig("number", { computed: () => value as number }); // as nobody checks it
    const { levels } = await explainKey(context(admin, store), handle(odd));
    return JSON.parse(JSON.stringify(levels)).find(
      ({ source }: { source: string }) => source === "computed",
    );
  };
  const note: unknown = expect.stringContaining("is not a finite number");
  const level = { source: "computed", isSet: true, active: false, note };
  expect(await explained(2n ** 60n)).toEqual({ ...level, value: 2 ** 60 });
  expect(await explained(cyclic)).toEqual(level);
  expect(await explained(() => 5)).toEqual(level);
});

test("a row that was written by hand, with any number, is explained as valid JSON", async () => {
  const { rows, store } = memory();
  const ctx = context(admin, store);
  const large = 2n ** 60n; // as DynamoDB's client reads it
  const explained = async (row: object) => {
    rows.set(idOf({ partition: tenantPartition("acme"), key: "files:config:limit" }), row as never); // as nobody checks it
    return (await explainKey(ctx, handle(limit))).levels[0];
  };
  expect(await explained({ value: large, version: large, expiresAt: large })).toMatchObject({
    ...{ isSet: true, active: false, value: 2 ** 60, version: 2 ** 60 },
    expiresAt: String(large),
  });
  const wins = await explained({ value: 5, version: large, reason: large });
  expect(wins).toMatchObject({ isSet: true, active: true, value: 5, version: 2 ** 60 });
  expect(JSON.parse(JSON.stringify(await explainKey(ctx, handle(limit))))).toMatchObject({
    version: 2 ** 60,
  });
  expect(await explained({ value: 5, version: 1, expiresAt: {} })).toMatchObject({
    ...{ isSet: false, note: "it has expired", expiresAt: "an object" },
  });
});
