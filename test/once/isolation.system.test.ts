import fc from "fast-check";
import { access, buildServer, defineFeature } from "keelson";
import { startTestApp, type TestApp } from "keelson/testing";
import { afterAll, beforeAll, expect, test } from "vitest";
import { claimKey } from "../../src/parts/once/claim.ts";
import { codePoint } from "../support/code-point.ts";

let runs = 0;
const notes = defineFeature("notes", (r) => {
  const handler = async () => ({ run: ++runs });
  r.write("note.add", { route: "POST /notes", access: access.authenticated, handler });
  r.write("note.append", { route: "POST /notes/append", access: access.authenticated, handler });
  r.write("note.guard", { route: "POST /guarded", access: access.admin, handler });
  r.write("note.open", { route: "POST /open", access: access.everyone, handler });
});
let app: TestApp;

beforeAll(async () => {
  app = await startTestApp(buildServer({ features: [notes] }));
});
afterAll(() => app.close());

/** Chosen to meet once they are joined, by whatever separator. */
const names = ["a", "a#b", "b", "a:b", "1:a", "a1:b", "ünï✓", "dedup:a"];
const ids = ["k", "k#a", "dedup:k", "sha256:k"];

async function runOf(
  path: string,
  id: string,
  caller?: { tenantId: string; id: string },
): Promise<number> {
  const options = { body: {}, headers: { "idempotency-key": id } };
  const response = await app.fetch(
    path,
    caller === undefined ? options : { ...options, as: caller },
  );
  return ((await response.json()) as { run: number }).run;
}

test("the same ID from another tenant, user or handler is another write, with its own replayed answer", async () => {
  const callers = names.flatMap((tenantId) => names.map((id) => ({ tenantId, id })));
  const writes = callers.flatMap((caller) =>
    ["/notes", "/notes/append"].flatMap((path) => ids.map((id) => () => runOf(path, id, caller))),
  );
  const first: number[] = [];
  for (const write of writes) first.push(await write());
  expect(new Set(first).size).toBe(writes.length);
  const again: number[] = [];
  for (const write of writes) again.push(await write());
  expect(again).toEqual(first);
});

test("anonymous and authenticated callers never get each other's answers", async () => {
  const known = await runOf("/open", "shared", { tenantId: "acme", id: "ann" });
  const unknown = await runOf("/open", "shared");
  expect(unknown).not.toBe(known);
  expect([
    await runOf("/open", "shared"),
    await runOf("/open", "shared", { tenantId: "acme", id: "ann" }),
  ]).toEqual([unknown, known]);
});

test("a caller whose access was revoked gets no replay", async () => {
  const ann = { tenantId: "acme", id: "ann" };
  const send = (roles: string[]) =>
    app.fetch("/guarded", {
      body: {},
      as: { ...ann, roles },
      headers: { "idempotency-key": "withdrawn" },
    });
  expect((await send(["admin"])).status).toBe(200);
  const refused = await send([]);
  expect([refused.status, refused.headers.get("idempotent-replayed")]).toEqual([403, null]);
});

test("no two namespaces or IDs share a key, whatever characters they contain", () => {
  const part = fc.string({ unit: codePoint, maxLength: 6 });
  const place = fc.tuple(fc.array(part, { maxLength: 4 }), part);
  fc.assert(
    fc.property(place, place, ([oneSpace, oneId], [otherSpace, otherId]) => {
      const isSame = JSON.stringify([oneSpace, oneId]) === JSON.stringify([otherSpace, otherId]);
      const [one, other] = [claimKey(oneSpace, oneId), claimKey(otherSpace, otherId)];
      return isSame === (one.partition === other.partition && one.sort === other.sort);
    }),
    { numRuns: 5_000 },
  );
});
