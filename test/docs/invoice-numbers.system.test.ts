import { buildServer, type Server } from "keelson";
import { crashEverywhere, raceEverywhere, startTestApp } from "keelson/testing";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { nameOf, writeBlocks } from "./compile.ts";
import { allBlocks } from "./markdown.ts";

// The invoices of docs/once.md, as its readers copy them: their numbers have neither gaps nor duplicates.

const written = writeBlocks(
  allBlocks().filter(
    (block) => block.document === "docs/once.md" && nameOf(block) === "invoices.ts",
  ),
);
afterAll(() => written.remove());

let server: Server;
beforeAll(async () => {
  const { invoices } = await import(/* @vite-ignore */ String(written.files[0]?.path));
  server = buildServer({ features: [invoices] });
});

const ann = { id: "ann", tenantId: "acme", roles: [] };
const numbersOf = async (response: Response) =>
  // Safe cast: the list is of invoices.
  ((await response.json()) as readonly { readonly number: number }[]).map(({ number }) => number);

test("concurrent invoices get consecutive numbers in each tenant", async () => {
  const app = await startTestApp(server);
  onTestFinished(() => app.close());
  const create = async (tenantId: string, cents: number) =>
    (await app.fetch("/invoices", { body: { cents }, as: { ...ann, tenantId } })).status;
  const cents = Array.from({ length: 8 }, (_, index) => index);
  const statuses = await Promise.all(
    cents.flatMap((each) => [create("acme", each), create("globex", each)]),
  );

  expect(new Set(statuses)).toEqual(new Set([201]));
  for (const tenantId of ["acme", "globex"]) {
    const list = await app.fetch("/invoices", { as: { ...ann, tenantId } });
    expect(await numbersOf(list)).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
  }
});

test("no crash leaves a gap, and no retry takes a second number", async () => {
  const create = (key: string) => ({
    body: { cents: 500 },
    as: ann,
    headers: { "idempotency-key": key },
  });
  const cuts = await crashEverywhere(server, {
    act: (app) => app.fetch("/invoices", create("first")),
    check: async (app, answer) => {
      expect(answer.status).toBe(201);
      expect((await app.fetch("/invoices", create("second"))).status).toBe(201);
      expect(await numbersOf(await app.fetch("/invoices", { as: ann }))).toEqual([1, 2]);
    },
  });
  expect(cuts).toContainEqual({ moment: "after", operation: "TransactWriteItems", call: 1 });
});

test("no order of two invoices' calls gives a gap or a duplicate", async () => {
  const { exhausted } = await raceEverywhere(server, {
    requests: [1, 2].map(
      (cents) => async (app) =>
        (await app.fetch("/invoices", { body: { cents }, as: app.as() })).status,
    ),
    check: async (app) => {
      expect(await numbersOf(await app.fetch("/invoices", { as: app.as() }))).toEqual([1, 2]);
    },
    orders: 300,
  });
  expect(typeof exhausted).toBe("boolean");
});
