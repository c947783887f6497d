import { randomBytes } from "node:crypto";
import { expect, test } from "vitest";
import { developmentKeyRing } from "../../base/secrets/key-ring.ts";
import { createSecrets } from "../../base/secrets/secrets.ts";
import {
  answerCipher,
  decodeAnswer,
  encodeAnswer,
  loadAnswer,
  storeAnswer,
  type WriteAnswer,
} from "./answer.ts";
import { claimKey, completedClaim } from "./claim.ts";
import type { ClaimStore } from "./claim-store.ts";
import { createRecentAnswers } from "./once.ts";
import { assertCommittable } from "./run-commit.ts";

const key = claimKey(["n"], "r1");
const answer = (body: WriteAnswer["body"]): WriteAnswer => ({
  status: 201,
  headers: { location: "/1" },
  cookies: [],
  body,
});

test.each([
  ["nothing", undefined],
  ["a text", '{"a":"é"}'],
  ["bytes", new Uint8Array([0, 255, 128])],
  ["a long text", "x".repeat(100_000)],
])("an answer with %s is restored unchanged", async (_case, body) => {
  const encoded = await encodeAnswer(answer(body));
  const decoded = await decodeAnswer(encoded);
  expect({
    ...decoded,
    body: decoded.body instanceof Uint8Array ? [...decoded.body] : decoded.body,
  }).toEqual({
    ...answer(body),
    body: body instanceof Uint8Array ? [...body] : body,
  });
  if (typeof body === "string" && body.length > 1_024)
    expect(encoded.byteLength).toBeLessThan(1_000);
});

test.each([
  "null",
  "5",
  "[]",
  "{}",
  '{"status":"201","headers":{}}',
  '{"status":99,"headers":{}}',
  '{"status":600,"headers":{}}',
  '{"status":201,"headers":null}',
  '{"status":201,"headers":[]}',
  '{"status":201,"headers":{"etag":1}}',
  '{"status":201,"headers":{},"body":{}}',
  '{"status":201,"headers":{},"bytes":7}',
])("%s is not a stored answer", async (text) => {
  await expect(decodeAnswer(Buffer.from(`\0${text}`))).rejects.toThrow("is not in a form");
});

test("a stored answer yields its known members only, whatever else the record has", async () => {
  const stored = { ...answer("1"), cookies: ["session=1"], isDone: true };
  const data = Buffer.from(`\0${JSON.stringify(stored)}`);
  expect(await decodeAnswer(data)).toEqual(answer("1"));
});

/** A store that keeps parts only. */
function parts() {
  const stored = new Map<string, readonly Uint8Array[]>();
  const store = {
    putParts: async (_key: object, owner: string, given: readonly Uint8Array[]) =>
      void stored.set(owner, given),
    readParts: async (_key: object, owner: string) => stored.get(owner),
  } as unknown as ClaimStore; // nothing else is asked of it
  return { stored, store };
}

test("splits an answer too large for a record into parts that fit into items, and restores it", async () => {
  const { stored, store } = parts();
  const body = randomBytes(2_000_000);
  const result = await storeAnswer(store, {
    answer: answer(body),
    key,
    owner: "ann",
    expiresAt: 1,
    cipher: undefined,
  });
  expect(result.parts).toBeGreaterThan(5);
  expect(stored.get("ann")?.every((part) => part.byteLength <= 350_000)).toBe(true);
  const loaded = await loadAnswer(store, key, completedClaim("ann", 0, { result }), undefined);
  expect(Buffer.compare(Buffer.from(loaded.body as Uint8Array), body)).toBe(0);
});

test("refuses to load an answer with a missing part", async () => {
  const { store } = parts();
  await expect(
    loadAnswer(store, key, completedClaim("ann", 0, { result: { parts: 2 } }), undefined),
  ).rejects.toThrow("not complete");
  await expect(loadAnswer(store, key, completedClaim("ann", 0), undefined)).rejects.toThrow(
    "not complete",
  );
});

test("a sealed answer is unreadable in the store, and opens only for its claim and with its key", async () => {
  const { store } = parts();
  const secrets = createSecrets({ clock: { now: () => 1 } });
  secrets.begin(developmentKeyRing("secret"), 1);
  const cipher = answerCipher(secrets, ["once", key.partition, key.sort]);
  const { data = new Uint8Array() } = await storeAnswer(store, {
    answer: answer("hunter2"),
    key,
    owner: "ann",
    expiresAt: 1,
    cipher,
  });
  expect(Buffer.from(data).toString("latin1")).not.toContain("hunter2");
  const record = completedClaim("ann", 0, { result: { data } });
  expect((await loadAnswer(store, key, record, cipher)).body).toBe("hunter2");
  const elsewhere = answerCipher(secrets, ["once", key.partition, "dedup:other"]);
  await expect(loadAnswer(store, key, record, elsewhere)).rejects.toMatchObject({
    code: "config_unavailable",
  });
});

test("an answer is loaded in the form that it was stored in, whatever the write declares by now", async () => {
  const { store } = parts();
  const secrets = createSecrets({ clock: { now: () => 1 } });
  secrets.begin(developmentKeyRing("secret"), 1);
  const opener = answerCipher(secrets, ["once", key.partition, key.sort]);
  for (const body of ["short", "long".repeat(1_000), randomBytes(1_000_000)]) {
    for (const cipher of [undefined, opener]) {
      const stored = { answer: answer(body), key, owner: "ann", expiresAt: 1, cipher };
      const result = await storeAnswer(store, stored);
      const record = completedClaim("ann", 0, { result });
      const loaded = await loadAnswer(store, key, record, opener);
      expect(Buffer.from(loaded.body ?? "").equals(Buffer.from(body))).toBe(true);
    }
  }
});

test("the local cache is bounded, evicts the oldest first, and leaves the last seconds to the store", () => {
  let nowMs = 0;
  const recent = createRecentAnswers({ now: () => nowMs });
  const put = (name: string, body: WriteAnswer["body"], expiresAt = 300) =>
    recent.put(name, { answer: answer(body), fingerprint: "f", expiresAt });
  put("a", "one");
  nowMs = 297_999;
  expect(recent.get("a")?.answer.body).toBe("one");
  nowMs = 298_000;
  expect([recent.get("a"), recent.get("a")]).toEqual([undefined, undefined]);
  put("large", "x".repeat(100_000), 900);
  put("none", undefined, 900);
  expect([recent.get("large"), recent.get("none")?.answer.status]).toEqual([undefined, 201]);
  for (let n = 0; n < 2_100; n++) put(`k${n}`, "x", 900);
  expect([recent.get("none"), recent.get("k0"), recent.get("k2099")?.answer.body]).toEqual([
    undefined,
    undefined,
    "x",
  ]);
  for (let n = 0; n < 200; n++) put(`l${n}`, "x".repeat(60_000), 900);
  expect([recent.get("k2099"), recent.get("l0"), recent.get("l199")?.answer.body?.length]).toEqual([
    undefined,
    undefined,
    60_000,
  ]);
});

test.each([
  ["no list", "items", 0, "not a list"],
  ["no action", [{}], 0, "item 0 is not one of"],
  ["nothing", [undefined], 0, "item 0 is not one of"],
  ["two actions", [{ Put: {}, Delete: {} }], 0, "item 0 is not one of"],
  ["another action", [{ Get: {} }], 0, "item 0 is not one of"],
  [
    "a hundred items and a claim",
    Array.from({ length: 100 }, () => ({ Put: {} })),
    1,
    "more than the 100",
  ],
  [
    "an item that is too large",
    [{ Put: { Item: { a: "x".repeat(500_000) } } }],
    0,
    "item 0 has some",
  ],
  [
    "too much in all",
    Array.from({ length: 11 }, () => ({ Put: { Item: { a: "x".repeat(400_000) } } })),
    0,
    "at most 4194304",
  ],
  ["an item with 41 levels", [nested(41)], 0, "32 levels, or contains itself"],
  ["a __proto__", [{ Put: JSON.parse('{"Item":{"__proto__":1}}') }], 0, '"__proto__"; rename it'],
])("%s is refused before anything is sent", (_case, items, reserved, message) => {
  expect(() => assertCommittable(items as never, reserved, 0)).toThrow(message);
});

test("measures items with values of any type, approximately as DynamoDB does", () => {
  const Item = {
    text: "é",
    number: 12.5,
    big: 12n,
    bytes: new Uint8Array(4),
    buffer: new ArrayBuffer(4),
    set: new Set(["a"]),
    list: [1, null, true],
    map: { a: undefined },
  };
  expect(() =>
    assertCommittable([{ Put: { Item } }, { Delete: {}, Put: undefined }], 1, 1_024),
  ).not.toThrow();
  expect(() =>
    assertCommittable([{ Put: { Item: { bytes: new Uint8Array(600_000) } } }], 0, 0),
  ).toThrow("item 0 has some 6000");
});

function nested(levels: number): object {
  return { Put: levels === 2 ? {} : nested(levels - 1) };
}

test("an item with 40 levels is left to DynamoDB", () => {
  expect(() => assertCommittable([nested(40) as never], 0, 0)).not.toThrow();
});
