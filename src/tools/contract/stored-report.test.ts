import fc from "fast-check";
import { expect, test } from "vitest";
import { runs } from "../../../test/support/runs.ts";
import type { Logger } from "../../base/log/logger.ts";
import { newRingKey, parseKeyRing } from "../../base/secrets/key-ring.ts";
import { createSecrets } from "../../base/secrets/secrets.ts";
import {
  createSystemConfig,
  createTenantConfig,
  createUserConfig,
} from "../../parts/config/declare/declaration.ts";
import type {
  ConfigKeyDefinition,
  ConfigScope,
  RegisteredConfigKey,
} from "../../parts/config/declare/key.ts";
import { LockedValueError } from "../../parts/config/read/cascade.ts";
import { createComputedValues } from "../../parts/config/read/computed-values.ts";
import { withFormerRows } from "../../parts/config/read/former-rows.ts";
import { FewDecisions, uncachedRows } from "../../parts/config/read/key-rows.ts";
import { type ConfigSession, createConfigResolver } from "../../parts/config/read/resolver.ts";
import { createRowCipher } from "../../parts/config/read/row-cipher.ts";
import {
  type ConfigRow,
  type ConfigRowReader,
  isCurrent,
  type RowAddress,
  rowLevels,
} from "../../parts/config/read/rows.ts";
import { reportStored } from "./stored-report.ts";

const nowMs = 1_700_000_000_000;
const clock = { now: () => nowMs };
const log: Logger = {
  info: () => {},
  warn: () => {},
  error: () => {},
  debug: () => {},
  child: () => log,
};
const cipherOf = (active: string) => {
  const secrets = createSecrets({ clock });
  secrets.begin(parseKeyRing(JSON.stringify({ active, keys: { [active]: newRingKey() } })), nowMs);
  return createRowCipher(secrets, () => "config");
};
const [ours, stranger] = [cipherOf("ours"), cipherOf("stranger")];

const declared = ["app:config:a", "app:config:b", "app:config:c"];
const former = [
  "app:config:was-a",
  "app:config:was-b",
  "app:config:was-b-before",
  "app:config:was-c",
];
const nobody = "app:config:gone";
/** Which former keys a key has, where it has any. */
const formerOf: Readonly<Record<string, readonly string[]>> = {
  "app:config:a": ["app:config:was-a"],
  "app:config:b": ["app:config:was-b", "app:config:was-b-before"],
  "app:config:c": ["app:config:was-c"],
};

const value = fc.oneof(
  fc.integer({ min: -3, max: 12 }),
  fc.constantFrom<unknown>("x", "y", "z", true, false, null, "", 0, 2.5),
);
const factories = {
  system: createSystemConfig,
  tenant: createTenantConfig,
  user: createUserConfig,
};
const scope = fc.constantFrom<ConfigScope>("system", "tenant", "user");
const definition = fc
  .record({
    scope,
    type: fc.constantFrom("number", "number", "boolean", "select", "text"),
    bounds: fc.option(fc.tuple(fc.integer({ min: -2, max: 4 }), fc.integer({ min: 4, max: 10 })), {
      nil: undefined,
    }),
    hasDefault: fc.boolean(),
    encrypted: fc.boolean(),
    computed: fc.option(fc.constantFrom<unknown>(5, "x", undefined, true), { nil: undefined }),
  })
  .map(({ scope: at, type, bounds, hasDefault, encrypted, computed }): ConfigKeyDefinition => {
    const defaults = { number: 4, boolean: true, select: "x", text: "default" } as const;
    const options = {
      ...(bounds !== undefined && type === "number"
        ? { bounds: { min: bounds[0], max: bounds[1] } }
        : {}),
      ...(type === "select" ? { options: ["x", "y"] } : {}),
      ...(hasDefault ? { default: defaults[type as keyof typeof defaults] } : {}),
      ...(encrypted ? { encrypted } : computed === undefined ? {} : { computed: () => computed }),
    };
    return factories[at](type as "text", options as never).definition;
  });

/** What a release declares: each key or not, with former names or without, and overrides. */
const release = fc.record({
  definitions: fc.tuple(...declared.map(() => fc.option(definition, { nil: undefined, freq: 4 }))),
  hasFormer: fc.tuple(...declared.map(() => fc.boolean())),
  overrides: fc.dictionary(fc.constantFrom(...declared), value, { maxKeys: 2 }),
  wereEncrypted: fc.subarray([...declared, ...former]),
});
const storedRow = fc.record({
  key: fc.constantFrom(...declared, ...former, nobody),
  scope,
  tenantId: fc.constantFrom("acme", "um#brella"),
  userId: fc.constantFrom("ann", "bob"),
  value,
  form: fc.constantFrom("plain", "plain", "plain", "sealed", "sealed by a stranger"),
  state: fc.constantFrom(
    "counts",
    "counts",
    "counts",
    "deleted",
    "expired",
    "superseded",
    "superseded back",
  ),
});

interface Placed {
  readonly address: RowAddress;
  readonly row: ConfigRow;
  readonly given: typeof storedRow extends fc.Arbitrary<infer Row> ? Row : never;
}

test("for any declarations and stored rows, the report matches the values that the new release reads", async () => {
  await fc.assert(
    fc.asyncProperty(
      release,
      fc.uniqueArray(storedRow, {
        maxLength: 14,
        selector: ({ key, scope: at, tenantId, userId }) =>
          [
            key,
            at,
            ...(at === "system" ? [] : [tenantId]),
            ...(at === "user" ? [userId] : []),
          ].join(" "),
      }),
      fc.integer({ min: 1, max: 5 }),
      fc.integer({ min: 0, max: 20 }),
      async ({ definitions, hasFormer, overrides, wereEncrypted }, given, pageSize, limit) => {
        const configKeys = new Map<string, RegisteredConfigKey>();
        for (const [index, id] of declared.entries()) {
          const one = definitions[index];
          if (one === undefined) continue;
          const formerly = hasFormer[index] ? { formerly: formerOf[id] as readonly string[] } : {};
          configKeys.set(id, { id, feature: "app", name: id, definition: { ...one, ...formerly } });
        }
        const rows = await Promise.all(given.map(placed));
        const table = new Map(rows.map(({ address, row }) => [JSON.stringify(address), row]));
        const reader: ConfigRowReader = {
          read: async (addresses) =>
            addresses.map(({ partition, key }) => table.get(JSON.stringify({ partition, key }))),
        };
        const pages = async function* () {
          for (let start = 0; start < rows.length; start += pageSize) {
            yield { rows: rows.slice(start, start + pageSize), scanned: pageSize };
          }
        };
        const report = await reportStored({
          ...{
            registry: { configKeys },
            pages: pages(),
            reader,
            overrides,
            openRow: ours.openRow,
            nowMs,
            limit,
          },
          ...{ wereEncrypted: new Set(wereEncrypted), onPage: () => {} },
        });

        const resolver = createConfigResolver({ appOverrides: overrides });
        const expected: unknown[] = [];
        let [values, unopened] = [0, 0];
        for (const one of rows) {
          const { address, row } = one;
          const { key: id, scope: at, tenantId } = one.given;
          const key = [...configKeys.values()].find(
            (known) => known.id === id || known.definition.formerly?.includes(id),
          );
          const names = key === undefined ? [] : [key.id, ...(key.definition.formerly ?? [])];
          // The model: the first name under which there is a row that was not superseded.
          const counts = names.find((name) => {
            const found = table.get(JSON.stringify({ ...address, key: name }));
            const isSuperseded =
              name === key?.id
                ? key?.definition.formerly?.includes(found?.renamedTo ?? "")
                : found?.renamedTo !== undefined;
            return found !== undefined && !isSuperseded;
          });
          if (
            !isCurrent(row, nowMs) ||
            ((key === undefined || (names.length > 1 && counts !== id)) &&
              row.renamedTo !== undefined)
          )
            continue;
          values += 1;
          const entry = { key: id, scope: at, tenantId: at === "system" ? null : tenantId };
          if (key === undefined) {
            expected.push({ ...entry, isOwn: false, reads: null });
            continue;
          }
          const isSecret =
            key.definition.encrypted || [id, ...names].some((name) => wereEncrypted.includes(name));
          const read = await readBy(one, key).catch((error: unknown) => error);
          const isRead =
            counts === id &&
            rowLevels(key.definition.scope, { tenantId: "t", userId: "u" }).some(
              (level) => level.source === `${at}-row`,
            );
          if (read instanceof LockedValueError) {
            const isItself = isRead && one.given.form === "sealed by a stranger";
            if (isItself) unopened += 1;
            else expected.push({ ...entry, isOwn: false, reads: "(secret)" });
            continue;
          }
          const { value: found, source } = read as { value: unknown; source: string };
          const isOwn = isRead && source === `${at}-row`;
          if (isOwn && Object.is(found, one.given.value)) continue;
          const isComputed =
            source === "computed" ||
            (key.definition.computed !== undefined && ["default", "missing"].includes(source));
          expected.push({
            ...entry,
            isOwn,
            reads: isSecret ? "(secret)" : isComputed ? "(computed)" : (found ?? null),
          });
        }

        const order = (entries: readonly unknown[]) =>
          entries.map((entry) => JSON.stringify(entry)).sort();
        const said = report.stored.map(({ verdict, reads, ...entry }) => ({
          ...entry,
          isOwn: verdict === "clamped",
          reads,
        }));
        const { clamped, fallback, ignored } = report.counts;
        expect(clamped + fallback + ignored).toBe(expected.length);
        expect([report.rows, report.unopened]).toEqual([values, unopened]);
        expect([report.stored.length, report.unlisted]).toEqual([
          Math.min(limit, expected.length),
          Math.max(0, expected.length - limit),
        ]);
        if (report.unlisted === 0) expect(order(said)).toEqual(order(expected));

        async function readBy(
          { given: { scope: at, tenantId, userId } }: Placed,
          key: RegisteredConfigKey,
        ) {
          const owner = {
            tenantId: at === "system" ? undefined : tenantId,
            userId: at === "user" ? userId : undefined,
          };
          const session: ConfigSession = {
            ...{ ...owner, log, clock, cipher: ours, contextFor: () => ({}) as never },
            ...{ computed: createComputedValues(), held: new FewDecisions() },
            rows: uncachedRows(withFormerRows(reader, { configKeys }), owner),
          };
          return resolver.resolve(session, key.id, key.definition);
        }
      },
    ),
    { numRuns: runs(3_000) },
  );
});

const id = "app:config:a";
const given = { key: id, tenantId: "acme", userId: "ann", form: "plain", state: "counts" } as const;

/** What is read instead of each row that is not read as stored. */
async function readsOf(rows: readonly Placed["given"][], definition: ConfigKeyDefinition) {
  const stored = await Promise.all(rows.map(placed));
  const table = new Map(stored.map(({ address, row }) => [JSON.stringify(address), row]));
  const report = await reportStored({
    registry: { configKeys: new Map([[id, { id, feature: "app", name: "a", definition }]]) },
    pages: (async function* () {
      yield { rows: stored, scanned: stored.length };
    })(),
    reader: {
      read: async (addresses) =>
        addresses.map(({ partition, key }) => table.get(JSON.stringify({ partition, key }))),
    },
    ...{ overrides: {}, openRow: ours.openRow, nowMs, limit: 10 },
    ...{ wereEncrypted: new Set<string>(), onPage: () => {} },
  });
  return report.stored.map(({ key, reads }) => [key, reads]);
}

test("a user's row that no longer fits is read as the tenant's row below it, if that counts", async () => {
  const { definition } = createUserConfig("number", { default: 4 });
  const user = { ...given, scope: "user", value: "x" } as const;
  const tenant = { ...given, scope: "tenant", value: 3 } as const;
  expect(await readsOf([user, tenant], definition)).toEqual([[id, 3]]);
  expect(await readsOf([user, { ...tenant, state: "expired" }], definition)).toEqual([[id, 4]]);
});

test("a row under a former name is read as the row under the new one", async () => {
  const formerly = ["app:config:was-a"];
  const { definition } = createTenantConfig("number", { default: 4, formerly });
  const row = { ...given, scope: "tenant" } as const;
  expect(
    await readsOf(
      [
        { ...row, value: 3 },
        { ...row, key: "app:config:was-a", value: 5 },
      ],
      definition,
    ),
  ).toEqual([["app:config:was-a", 3]]);
});

async function placed(given: Placed["given"]): Promise<Placed> {
  const owner = {
    tenantId: given.scope === "system" ? undefined : given.tenantId,
    userId: given.userId,
  };
  const level = rowLevels(given.scope, owner)[0] as { readonly partition: string };
  const address = { partition: level.partition, key: given.key };
  const cipher = given.form === "sealed" ? ours : stranger;
  const value = given.form === "plain" ? given.value : await cipher.seal(given.value, address, 1);
  const states: Readonly<Record<string, Partial<ConfigRow>>> = {
    counts: {},
    deleted: { deleted: true },
    expired: { expiresAt: 1 },
    superseded: { renamedTo: "app:config:a" },
    "superseded back": { renamedTo: "app:config:was-a" },
  };
  return { given, address, row: { value, version: 1, ...states[given.state] } };
}
