import { DeleteCommand, PutCommand } from "@aws-sdk/lib-dynamodb";
import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { runs } from "../../../test/support/runs.ts";
import { configTable } from "../../app/handlers/table.ts";
import { isTypedError } from "../../base/errors/errors.ts";
import type { Logger } from "../../base/log/logger.ts";
import { newRingKey, parseKeyRing } from "../../base/secrets/key-ring.ts";
import { createSecrets } from "../../base/secrets/secrets.ts";
import type { Database } from "../../base/types/database.ts";
import { type EmbeddedStack, startEmbeddedStack } from "../../embedded/stack/index.ts";
import { createTenantConfig } from "../../parts/config/declare/declaration.ts";
import type { KeyDeclaration, RegisteredConfigKey } from "../../parts/config/declare/key.ts";
import { resetConfig, setConfig, undoConfig } from "../../parts/config/operate/change.ts";
import { configHistory } from "../../parts/config/operate/config-history.ts";
import { explainKey } from "../../parts/config/operate/explain-config.ts";
import {
  type ConfigStore,
  type OperatorContext,
  type OperatorSession,
  operatorSession,
} from "../../parts/config/operate/operator-session.ts";
import { rotateRows } from "../../parts/config/operate/rotation.ts";
import { createComputedValues } from "../../parts/config/read/computed-values.ts";
import { createRowCipher } from "../../parts/config/read/row-cipher.ts";
import type { RowAddress, RowOwner } from "../../parts/config/read/rows.ts";
import { openDatabase } from "../clients/dynamodb.ts";
import { ensureTables } from "../tables/tables.ts";
import { dynamoConfigRows } from "./config-rows.ts";
import { dynamoConfigStore } from "./config-store.ts";
import { dynamoFormerRows } from "./former-rows.ts";

let stack: EmbeddedStack;
let database: Database;

beforeAll(async () => {
  stack = await startEmbeddedStack({ env: { NODE_ENV: "test" } });
  database = await openDatabase({
    endpoint: stack.endpoint,
    region: "us-east-1",
    credentials: { accessKeyId: "x", secretAccessKey: "x" },
  });
  await ensureTables(database, [{ ...configTable, tableName: "rows" }], "create");
});
afterAll(async () => {
  database.destroy();
  await stack.close();
});

const nowMs = 1_700_000_000_000;
const keys = { one: newRingKey(), two: newRingKey() };
const ringOf = (active: keyof typeof keys) => parseKeyRing(JSON.stringify({ active, keys }));
const secrets = createSecrets({ clock: { now: () => nowMs } });
secrets.begin(ringOf("one"), nowMs);
const cipher = createRowCipher(secrets, () => "rows", { bindVersion: true });

const bounds = { min: 0, max: 1_000 };
const options = { default: -1, bounds: { min: -1, max: 1_000 } };
const limit = (formerly?: string | readonly string[]) =>
  createTenantConfig("number", formerly === undefined ? options : { ...options, formerly });

/** What a deployment declares: some keys, under the identifiers that they have there. */
function deployment(declared: Readonly<Record<string, KeyDeclaration<unknown>>>) {
  const configKeys = new Map<string, RegisteredConfigKey>(
    Object.entries(declared).map(([id, { definition }]) => [
      id,
      { id, feature: "files", name: id, definition },
    ]),
  );
  const store = (before: () => Promise<void> = async () => {}): ConfigStore => {
    const wait = async () => {};
    const found = dynamoConfigStore(database, "rows", {
      wait,
      former: dynamoFormerRows("rows", { configKeys }),
    });
    return {
      ...found,
      write: async (write) => {
        await before();
        return found.write(write);
      },
    };
  };
  const handle = (id: string) => ({
    id,
    definition: (declared[id] as KeyDeclaration<unknown>).definition,
  });
  return { store, handle };
}

const log: Logger = {
  info: () => {},
  warn: () => {},
  error: () => {},
  debug: () => {},
  child: () => log,
};

function context(tenantId: string, store: ConfigStore): OperatorContext {
  const open = (owner: RowOwner): OperatorSession => ({
    ...owner,
    cache: { noteWrite: () => {}, invalidate: () => {}, ageMs: () => undefined },
    store,
    override: () => undefined,
    log,
    clock: { now: () => nowMs },
    rows: undefined as never,
    computed: createComputedValues(),
    held: undefined as never,
    cipher,
    contextFor: () => ({}) as never,
  });
  return {
    user: { id: "ann", tenantId, roles: ["systemAdmin"], kind: "user" },
    log,
    db: { [operatorSession]: open } as never,
  };
}

const [was, is, first] = ["files:config:max-mb", "files:config:limit", "files:config:maximum"];
const before = deployment({ [was]: limit() });
const after = deployment({ [is]: limit(was) });
const at = (tenantId: string, key: string): RowAddress => ({
  partition: `config#tenant#${tenantId}`,
  key,
});
const stored = async (tenantId: string, key: string) =>
  (await dynamoConfigRows(database, "rows").read([at(tenantId, key)]))[0];
const remove = ({ partition, key }: RowAddress) =>
  database.send(new DeleteCommand({ TableName: "rows", Key: { pk: partition, sk: key } }));

const outcomeOf = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => "done",
    (error: unknown) => (isTypedError(error) ? error.code : error),
  );

/** A row of the model; a tombstone has no value. */
interface ModelRow {
  readonly value: number | undefined;
  readonly version: number;
}

test("for any writers, order and interruption, the row under the key counts, before it the former one, and versions show who was first", async () => {
  const operation = fc.record({
    by: fc.constantFrom("old", "new"),
    kind: fc.constantFrom("set", "set", "reset", "expire"),
    value: fc.integer(bounds),
  });
  type Operation = Parameters<Parameters<typeof operation.map>[0]>[0];
  const step = fc.record({
    operation,
    expects: fc.boolean(),
    /** What happens between looking and writing, once an attempt. */
    between: fc.array(operation, { maxLength: 2 }),
  });
  let tenants = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 6 }), async (steps) => {
      tenants += 1;
      const tenant = `model-${tenants}`;
      let model: { old?: ModelRow & { readonly isSuperseded: boolean }; new?: ModelRow } = {};
      const counts = (): ModelRow | undefined =>
        model.new ?? (model.old === undefined || model.old.isSuperseded ? undefined : model.old);
      const seenBy = ({ by }: Operation) => (by === "old" ? model.old : counts());
      const apply = (given: Operation) => {
        const current = seenBy(given);
        const row = {
          value: given.kind === "set" ? given.value : undefined,
          version: (current?.version ?? 0) + 1,
        };
        const isNothing = given.kind === "reset" && current?.value === undefined;
        if (given.kind === "expire") model = model.old === undefined ? {} : { old: model.old };
        else if (isNothing) return;
        else if (given.by === "old") model = { ...model, old: { ...row, isSuperseded: false } };
        else if (model.new !== undefined || model.old === undefined) model = { ...model, new: row };
        else model = { old: { ...model.old, isSuperseded: true }, new: row };
      };
      const carryOut = async (
        given: Operation,
        between: readonly Operation[],
        expectedVersion?: number,
      ) => {
        const left = between.values();
        const { store, handle } = given.by === "old" ? before : after;
        const ctx = context(
          tenant,
          store(async () => {
            const { value: other } = left.next();
            if (other === undefined) return;
            await carryOut(other, []);
            apply(other);
          }),
        );
        const key = handle(given.by === "old" ? was : is);
        const expected = expectedVersion === undefined ? {} : { expectedVersion };
        // As DynamoDB's time to live does.
        if (given.kind === "expire") return remove(at(tenant, is));
        return given.kind === "set"
          ? setConfig(ctx, key, given.value as never, expected)
          : resetConfig(ctx, key, expected);
      };
      for (const { operation: given, expects, between } of steps) {
        const versionBefore = seenBy(given)?.version ?? 0;
        const outcome = await outcomeOf(
          carryOut(given, between, expects ? versionBefore : undefined),
        );
        // What came in between has been applied; an expectation that it broke is a conflict.
        const isOvertaken =
          expects && given.kind !== "expire" && (seenBy(given)?.version ?? 0) !== versionBefore;
        expect(outcome).toBe(isOvertaken ? "version_conflict" : "done");
        if (!isOvertaken) apply(given);
        for (const [deployed, id, row] of [
          [before, was, model.old],
          [after, is, counts()],
        ] as const) {
          const { value, levels } = await explainKey(
            context(tenant, deployed.store()),
            deployed.handle(id),
          );
          expect([value, levels[0]?.version]).toEqual([row?.value ?? -1, row?.version]);
        }
      }
    }),
    { numRuns: runs(150) },
  );
});

test("reads and explains a value under its former key, and the first write supersedes it with the next version", async () => {
  const [old, now] = [context("goes-on", before.store()), context("goes-on", after.store())];
  await setConfig(old, before.handle(was), 5 as never);
  await setConfig(old, before.handle(was), 6 as never, { reason: "more" });

  expect((await explainKey(now, after.handle(is))).levels[0]).toMatchObject({
    formerKey: was,
    value: 6,
    version: 2,
  });
  expect(
    await outcomeOf(setConfig(now, after.handle(is), 7 as never, { expectedVersion: 1 })),
  ).toBe("version_conflict");
  expect(await setConfig(now, after.handle(is), 7 as never, { expectedVersion: 2 })).toMatchObject({
    value: 7,
    version: 3,
  });
  expect((await explainKey(now, after.handle(is))).levels[0]).not.toHaveProperty("formerKey");
  expect(await stored("goes-on", was)).toMatchObject({ value: 6, version: 2, renamedTo: is });
  // A deployment that is rolled back reads what was there before the rename.
  expect(await explainKey(old, before.handle(was))).toMatchObject({ value: 6, version: 2 });
});

test("history continues over the rename, page by page, and an undo reaches behind it", async () => {
  const [old, now] = [context("history", before.store()), context("history", after.store())];
  for (const value of [1, 2, 3]) await setConfig(old, before.handle(was), value as never);
  for (const value of [4, 5]) await setConfig(now, after.handle(is), value as never);
  // A process of before, which is not replaced yet: these versions were never those of the key as it is now.
  for (const value of [9, 9, 9]) await setConfig(old, before.handle(was), value as never);
  const page = async (options: object) => {
    const { items, next } = await configHistory(now, after.handle(is), options);
    return { values: items.map(({ value }) => value), next };
  };

  expect(await page({})).toEqual({ values: [5, 4, 3, 2, 1], next: undefined });
  expect(await page({ limit: 1 })).toEqual({ values: [5], next: 5 });
  expect(await page({ limit: 2 })).toEqual({ values: [5, 4], next: 4 });
  expect(await page({ limit: 2, before: 4 })).toEqual({ values: [3, 2], next: 2 });
  expect(await page({ limit: 3, before: 5 })).toEqual({ values: [4, 3, 2], next: 2 });
  expect(await undoConfig(now, after.handle(is), { version: 2 })).toMatchObject({
    value: 2,
    version: 6,
  });
  expect(
    await undoConfig(context("history-2", after.store()), after.handle(is)).catch(
      ({ code }) => code,
    ),
  ).toBe("nothing_to_undo");
});

test.each(["reset", "undo to nothing", "expire"])(
  "a %s leaves no value: the former row does not come back",
  async (how) => {
    const tenant = `gone-${how}`;
    const now = context(tenant, after.store());
    await setConfig(context(tenant, before.store()), before.handle(was), 5 as never);
    if (how === "reset") await resetConfig(now, after.handle(is));
    if (how === "undo to nothing") await undoConfig(now, after.handle(is), { version: 0 });
    if (how === "expire") {
      await setConfig(now, after.handle(is), 6 as never, { expiresAt: "2030-01-01T00:00:00Z" });
      await remove(at(tenant, is));
    }

    expect(await explainKey(now, after.handle(is))).toMatchObject({
      value: -1,
      source: "default",
    });
    expect(await setConfig(now, after.handle(is), 7 as never)).toMatchObject({ value: 7 });
  },
);

test("a secret opens under its former key, is sealed again by a rotation, and is removed there once replaced", async () => {
  const secret = (formerly?: string) =>
    createTenantConfig("text", { encrypted: true, ...(formerly && { formerly }) });
  const [old, now] = [deployment({ [was]: secret() }), deployment({ [is]: secret(was) })];
  const ctx = context("secrets", now.store());
  await setConfig(context("secrets", old.store()), old.handle(was), "hunter2-hunter2" as never);

  expect(await explainKey(ctx, now.handle(is))).toMatchObject({
    isSet: true,
    source: "tenant-row",
    version: 1,
  });
  const [row] = await now.store().read([at("secrets", is)]);
  const open = () => row && cipher.openRow(row, { encrypted: true }, at("secrets", is));
  expect(open()).toMatchObject({ value: "hunter2-hunter2" });

  secrets.begin(ringOf("two"), nowMs);
  expect(
    await rotateRows(
      { store: now.store(), cipher: { ...cipher, refresh: async () => {} }, log },
      {},
    ),
  ).toMatchObject({
    locked: 0,
    resealed: 1,
  });
  expect(await explainKey(ctx, now.handle(is))).toMatchObject({
    isSet: true,
    source: "tenant-row",
  });

  await setConfig(ctx, now.handle(is), "hunter3-hunter3" as never);
  const left = await stored("secrets", was);
  expect(left).toMatchObject({ version: 1, deleted: true, renamedTo: is });
  expect(left).not.toHaveProperty("value");
  expect(await explainKey(ctx, now.handle(is))).toMatchObject({ isSet: true, version: 2 });
});

test("reads a plain-text value under the former key even if the key has become a secret", async () => {
  const now = deployment({ [is]: createTenantConfig("text", { encrypted: true, formerly: was }) });
  await setConfig(
    context("plain", deployment({ [was]: createTenantConfig("text", {}) }).store()),
    { id: was, definition: createTenantConfig("text", {}).definition },
    "hunter2" as never,
  );

  expect(await explainKey(context("plain", now.store()), now.handle(is))).toMatchObject({
    source: "missing",
  });
  await setConfig(context("plain", now.store()), now.handle(is), "hunter3" as never);
  expect(await stored("plain", was)).not.toHaveProperty("value");
});

test("reads a key that was renamed twice under each former name, the latest first, and a write supersedes all", async () => {
  const twice = deployment({ [is]: limit([was, first]) });
  const ctx = context("twice", twice.store());
  const read = async () => (await explainKey(ctx, twice.handle(is))).value;
  const oldest = deployment({ [first]: limit() });
  await setConfig(context("twice", oldest.store()), oldest.handle(first), 1 as never);
  expect(await read()).toBe(1);
  await setConfig(context("twice", before.store()), before.handle(was), 2 as never);
  expect(await read()).toBe(2);

  await setConfig(ctx, twice.handle(is), 3 as never);
  await remove(at("twice", is));
  expect(await read()).toBe(-1);
});

test("a key that gets its name back is read under the name it had in between, and written under its own", async () => {
  const back = deployment({ [was]: limit(is) });
  const [ctx, now] = [context("back", back.store()), context("back", after.store())];
  await setConfig(context("back", before.store()), before.handle(was), 1 as never);
  await setConfig(now, after.handle(is), 2 as never);

  expect(await explainKey(ctx, back.handle(was))).toMatchObject({ value: 2, version: 2 });
  expect(await setConfig(ctx, back.handle(was), 3 as never)).toMatchObject({
    value: 3,
    version: 3,
  });
  expect(await stored("back", was)).not.toHaveProperty("renamedTo");
  expect(await stored("back", is)).toMatchObject({ value: 2, renamedTo: was });

  // What took the former row's place has expired, and was deleted: nothing is there, and it can be set.
  await setConfig(context("back-2", before.store()), before.handle(was), 1 as never);
  await setConfig(context("back-2", after.store()), after.handle(is), 2 as never);
  await remove(at("back-2", is));
  const other = context("back-2", back.store());
  expect(await explainKey(other, back.handle(was))).toMatchObject({ source: "default" });
  expect(await setConfig(other, back.handle(was), 3 as never)).toMatchObject({ value: 3 });
});

test("history reaches behind the rename of a row that has expired and was deleted", async () => {
  const now = context("expired", after.store());
  await setConfig(context("expired", before.store()), before.handle(was), 1 as never);
  await setConfig(now, after.handle(is), 2 as never);
  await remove(at("expired", is));
  const { items } = await configHistory(now, after.handle(is));
  expect(items.map(({ value }) => value)).toEqual([2, 1]);
});

test("history of a key that gets its name back has the versions of the name in between, and an undo restores one", async () => {
  const back = deployment({ [was]: limit(is) });
  const ctx = context("back-3", back.store());
  const page = async (options: object = {}) => {
    const { items, next } = await configHistory(ctx, back.handle(was), options);
    return { values: items.map(({ value }) => value), next };
  };
  await setConfig(context("back-3", before.store()), before.handle(was), 1 as never);
  await setConfig(context("back-3", after.store()), after.handle(is), 2 as never);
  expect((await page()).values).toEqual([2, 1]);
  await setConfig(ctx, back.handle(was), 3 as never);

  expect((await page()).values).toEqual([3, 2, 1]);
  expect(await page({ limit: 1 })).toEqual({ values: [3], next: 3 });
  expect(await page({ limit: 1, before: 3 })).toEqual({ values: [2], next: 2 });
  expect(await page({ limit: 1, before: 2 })).toEqual({ values: [1], next: undefined });
  expect(await undoConfig(ctx, back.handle(was), { version: 2 })).toMatchObject({
    value: 2,
    version: 4,
  });
  expect((await page()).values).toEqual([2, 3, 2, 1]);
});

test("a row written by hand has no version, and is superseded all the same", async () => {
  await database.send(
    new PutCommand({ TableName: "rows", Item: { pk: "config#tenant#hand", sk: was, value: 4 } }),
  );
  const ctx = context("hand", after.store());

  expect(await explainKey(ctx, after.handle(is))).toMatchObject({ value: 4 });
  expect(await setConfig(ctx, after.handle(is), 5 as never)).toMatchObject({
    value: 5,
    version: 1,
  });
  expect(await stored("hand", was)).toMatchObject({ value: 4, renamedTo: is });
});

test("reads and writes keys without a former name as before", async () => {
  const other = deployment({ [is]: limit(was), [first]: limit() });
  const ctx = context("other", other.store());

  expect(await setConfig(ctx, other.handle(first), 5 as never)).toMatchObject({
    value: 5,
    version: 1,
  });
  expect((await configHistory(ctx, other.handle(first))).items).toHaveLength(1);
  expect(await stored("other", is)).toBeUndefined();
  // Nor is anything else done with what nobody declares.
  expect(await other.store().history(at("other", "files:config:gone"), { limit: 1 })).toEqual([]);
});
