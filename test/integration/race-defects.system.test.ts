import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import type { RaceApp, RaceScenario } from "keelson/testing";
import { afterEach, expect, test, vi } from "vitest";

/** Defects of handlers, and past defects of keelson, each put back by a patch of one module. */
const root = join(import.meta.dirname, "../..");
const folder = join(import.meta.dirname, ".keelson"); // git ignores it
let directory = "";

afterEach(() => {
  vi.resetModules();
  if (directory !== "") rmSync(directory, { recursive: true });
  directory = "";
});

/** Loads keelson with a module of `src/` in which `now` is `once` again. */
async function loadKeelson(patch?: { module: string; now: string; once: string }) {
  vi.resetModules();
  if (patch !== undefined) {
    const module = join(root, "src", patch.module);
    const source = readFileSync(module, "utf8");
    expect(source).toContain(patch.now);
    const absolute = source
      .replace(patch.now, patch.once)
      .replaceAll(/(from |import\()"(\.[^"]+)"/g, (_all, before: string, path: string) => {
        return `${before}${JSON.stringify(resolve(dirname(module), path))}`;
      });
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    directory = mkdtempSync(join(folder, "race-"));
    const file = join(directory, basename(module));
    writeFileSync(file, absolute);
    vi.doMock(module, () => import(/* @vite-ignore */ file));
  }
  const [keelson, testing, { GetCommand, PutCommand, UpdateCommand }] = await Promise.all([
    import("keelson"),
    import("keelson/testing"),
    import("@aws-sdk/lib-dynamodb"),
  ]);
  return { ...keelson, ...testing, GetCommand, PutCommand, UpdateCommand };
}

type Keelson = Awaited<ReturnType<typeof loadKeelson>>;

function shopOf({ access, buildServer, defineFeature, ...sdk }: Keelson) {
  const { CommitConditionError, createTenantConfig, GetCommand, PutCommand, UpdateCommand } = sdk;
  const schema = {
    "~standard": { version: 1, vendor: "test", validate: (value: unknown) => ({ value }) },
  } as const;
  const shop = defineFeature("shop", (r) => {
    r.config({ keys: { limit: createTenantConfig("number", { default: 3 }) } });
    const table = r.table("shop", { partitionKey: "pk", tenant: true });
    const sold = r.event("seat.sold", schema);
    const options = { access: access.authenticated };
    r.write("quota.use", {
      ...{ ...options, route: "POST /quota" },
      handler: async (ctx) => {
        const Key = table.key(ctx, "quota");
        const get = new GetCommand({ TableName: table.name, Key, ConsistentRead: true });
        const used = Number((await ctx.db.send(get)).Item?.["used"] ?? 0) + 1;
        await ctx.db.send(new PutCommand({ TableName: table.name, Item: { ...Key, used } }));
        return { used };
      },
    });
    r.write("name.take", {
      ...{ ...options, route: "POST /names" },
      handler: async (ctx) => {
        const Key = table.key(ctx, "name");
        const get = new GetCommand({ TableName: table.name, Key, ConsistentRead: true });
        if ((await ctx.db.send(get)).Item !== undefined) return { isMine: false };
        const Item = { ...Key, by: ctx.requestId };
        await ctx.db.send(new PutCommand({ TableName: table.name, Item }));
        return { isMine: true };
      },
    });
    r.write("stock.take", {
      ...{ ...options, route: "POST /stock" },
      handler: async (ctx) => {
        const Key = table.key(ctx, "stock");
        const get = new GetCommand({ TableName: table.name, Key, ConsistentRead: true });
        const taken = Number((await ctx.db.send(get)).Item?.["taken"] ?? 0);
        if (taken >= 1) return { taken };
        const { Attributes } = await ctx.db.send(
          new UpdateCommand({
            ...{ TableName: table.name, Key, ReturnValues: "ALL_NEW" },
            UpdateExpression: "ADD taken :one",
            ExpressionAttributeValues: { ":one": 1 },
          }),
        );
        return { taken: Number(Attributes?.["taken"]) };
      },
    });
    r.write("seat.sell", {
      ...{ ...options, route: "POST /seats" },
      handler: async (ctx) => {
        await ctx.publish(sold, { by: ctx.requestId });
        const Put = {
          TableName: table.name,
          Item: table.key(ctx, "seat"),
          ConditionExpression: "attribute_not_exists(pk)",
        };
        try {
          return await ctx.commit([{ Put }], { isSold: true });
        } catch (error) {
          if (error instanceof CommitConditionError) return { isSold: false };
          throw error;
        }
      },
    });
    r.write("seat.slow", {
      ...{ ...options, route: "POST /slow" },
      handler: async (ctx) => {
        const get = new GetCommand({ TableName: table.name, Key: table.key(ctx, "a") });
        for (let call = 0; call < 3; call += 1) await ctx.db.send(get);
        return {};
      },
    });
  });
  return buildServer({ features: [shop] });
}

const post = (path: string, key?: string) => (app: RaceApp) =>
  app.fetch(path, {
    ...{ body: {}, as: app.as(["admin"]) },
    ...(key !== undefined && { headers: { "idempotency-key": key } }),
  });
const bodiesOf = async (results: readonly PromiseSettledResult<unknown>[]) => {
  const bodies: Record<string, unknown>[] = [];
  for (const result of results)
    if (result.status === "fulfilled")
      bodies.push((await (result.value as Response).json()) as Record<string, unknown>);
  return bodies;
};

/** The race is found with the patch, and without it there is none. */
async function foundIn(
  scenario: RaceScenario<RaceApp, unknown>,
  patch?: Parameters<typeof loadKeelson>[0],
): Promise<string> {
  const keelson = await loadKeelson(patch);
  const race = keelson.raceEverywhere(shopOf(keelson), scenario);
  const message = await race.then(
    () => "no race",
    (error: Error) => error.message,
  );
  if (patch !== undefined) {
    vi.doUnmock(join(root, "src", patch.module));
    const fixed = await loadKeelson();
    await fixed.raceEverywhere(shopOf(fixed), scenario);
  }
  return message;
}

test("a quota by read-modify-write is found", async () => {
  const message = await foundIn({
    requests: [post("/quota"), post("/quota")],
    check: async (_app, results) => {
      const used = (await bodiesOf(results)).map((body) => body["used"]);
      expect(used.sort()).toEqual([1, 2]);
    },
  });
  expect(message).toContain("with 1 preemption");
});

test("uniqueness by a check and a put is found", async () => {
  const message = await foundIn({
    requests: [post("/names"), post("/names")],
    check: async (_app, results) =>
      expect((await bodiesOf(results)).filter(({ isMine }) => isMine)).toHaveLength(1),
  });
  expect(message).toContain("with 1 preemption");
});

test("a counter without a condition is found", async () => {
  const message = await foundIn({
    requests: [post("/stock"), post("/stock")],
    check: async (_app, results) => {
      for (const { taken } of await bodiesOf(results)) expect(taken).toBeLessThan(2);
    },
  });
  expect(message).toContain("with 1 preemption");
});

test.each([
  [1, "no race"],
  [2, "expected 3 to be 2"],
])("a claim that any run takes is found in %i processes: %s", async (processes, expected) => {
  const message = await foundIn(
    {
      requests: [post("/quota", "k"), post("/quota", "k")],
      processes,
      check: async (app) => {
        const { used } = (await (await post("/quota")(app)).json()) as { used: number };
        expect(used).toBe(2);
      },
    },
    {
      module: "aws/stores/claim-store.ts",
      now: "ConditionExpression: isFree(claim.generation),",
      once: 'ConditionExpression: "attribute_not_exists(nothing) OR " + isFree(claim.generation),',
    },
  );
  expect(message).toContain(expected); // in one process, duplicates share a run
});

test("events that are published before a commit that fails are found", async () => {
  const message = await foundIn(
    {
      requests: [post("/seats"), post("/seats")],
      check: async (app, results) => {
        const sold = (await bodiesOf(results)).filter(({ isSold }) => isSold);
        expect(app.events).toHaveLength(sold.length);
      },
    },
    {
      module: "app/ctx/run.ts",
      now: "await this.#write(attempt, effects, counts);",
      once: "if (effects.length > 0) await sendEffects(this.#parts.scope, this.#parts, effects); await this.#write(attempt, effects, counts);",
    },
  );
  expect(message).toContain("to have a length of 1 but got 2");
});

test("an operator's write that is not committed with its claim is found", async () => {
  const path = `/config/${encodeURIComponent("shop:config:limit")}`;
  const set = (app: RaceApp) =>
    app.fetch(path, {
      ...{ method: "PUT", body: { value: 5 }, as: app.as(["admin", "systemAdmin"]) },
      headers: { "idempotency-key": "k" },
    });
  const message = await foundIn(
    {
      requests: [set],
      crashes: 1,
      check: async (app) => {
        await new Promise((resolve) => setTimeout(resolve, 40_000)); // of the race's clock
        await set(app);
        const history = await app.fetch(`${path}/history`, {
          as: app.as(["admin", "systemAdmin"]),
        });
        const { items } = (await history.json()) as { items: readonly unknown[] };
        expect(items).toHaveLength(1);
      },
    },
    {
      module: "parts/config/operate/change.ts",
      now: `      await ctx.commit(store.itemsOf(write), result);
      return true;`,
      once: "      return await store.write(write);",
    },
  );
  expect(message).toContain("to have a length of 1 but got 2");
});

test("a duplicate that waits for an abandoned run is found", async () => {
  const message = await foundIn(
    {
      requests: [
        async (app) => {
          const leaving = new AbortController();
          const send = { body: {}, as: app.as(), headers: { "idempotency-key": "k" } };
          const first = app.fetch("/slow", { ...send, signal: leaving.signal });
          setTimeout(() => leaving.abort(), 20_000);
          return first;
        },
        async (app) => {
          const response = await post("/slow", "k")(app);
          return response.status;
        },
      ],
      expiries: 1,
      check: (_app, [, duplicate]) => {
        const status = duplicate?.status === "fulfilled" ? duplicate.value : duplicate?.reason;
        expect([200, 409]).toContain(status); // 409: it has waited for ten seconds
      },
    },
    {
      module: "parts/once/once.ts",
      now: "const isAbandoned = this.signal.aborted;",
      once: "const isAbandoned = false;",
    },
  );
  expect(message).not.toBe("no race");
});
