import { describe, expect, test } from "vitest";
import { loneRuntime } from "../../../test/fixtures/lone-runtime.ts";
import { anonymous, type User } from "../../base/identity/access.ts";
import { parseKeyRing } from "../../base/secrets/key-ring.ts";
import { answerCipher } from "../../parts/once/answer.ts";
import { claimKey, keyText } from "../../parts/once/claim.ts";
import type { OnceClaim } from "../../parts/once/claims.ts";
import { fingerprintOf } from "../../parts/once/fingerprint.ts";
import type { OnceOptions } from "../../parts/once/once-by.ts";
import { onceTable } from "../handlers/table.ts";
import { RequestScope } from "../runtime/scope.ts";
import { buildServer } from "../server/server.ts";
import { idempotencyKeyPattern, type WantedClaim, writeClaim } from "./write.ts";

const name = "claimed.note.create";
const ann: User = { id: "ann", tenantId: "acme", roles: [], kind: "user" };
const byKey = { "idempotency-key": "k-1" };
const byRequest = { "x-request-id": "r-1" };

interface Asked extends Partial<WantedClaim> {
  readonly user?: User;
  readonly requestId?: string;
  /** Of the server. */
  readonly once?: OnceOptions | false;
}

const runtimeWith = (once?: OnceOptions | false) =>
  loneRuntime(
    buildServer({ features: [], environment: "test", ...(once !== undefined && { once }) }),
  ).runtime;

/** Asks for the claim of a write of Ann's, with a key. */
function claimOf(
  { user = ann, requestId = "r-1", once, ...wanted }: Asked = {},
  runtime = runtimeWith(once),
): Promise<OnceClaim | undefined> {
  const scope = new RequestScope(runtime, requestId, { deadlineMs: 5_000 });
  scope.user = user;
  return writeClaim(scope, { declaration: { name }, headers: byKey, input: { n: 1 }, ...wanted });
}

/** The key of the claim, as text. */
async function keyOf(asked: Asked): Promise<string> {
  const claim = await claimOf(asked);
  return claim === undefined ? expect.unreachable() : keyText(claim.key);
}

describe("the claim of a write", () => {
  const fingerprint = fingerprintOf(name, { n: 1 });

  // Other versions of the server find the claims of this one during a rolling deployment.
  test.each<[string, Asked, readonly string[], string]>([
    ["a user with a key", {}, ["idempotency-key", "user", "acme", "ann", name], "k-1"],
    [
      "a user with a request ID",
      { headers: byRequest },
      ["x-request-id", "user", "acme", "ann", name, fingerprint],
      "r-1",
    ],
    [
      "an anonymous caller",
      { user: anonymous },
      ["idempotency-key", "anonymous", "", name, fingerprint],
      "k-1",
    ],
    [
      "an anonymous caller with a name",
      { user: anonymous, anonymousAs: "visitor" },
      ["idempotency-key", "anonymous", "visitor", name, fingerprint],
      "k-1",
    ],
  ])("of %s has the key that it always had", async (_, asked, namespace, id) => {
    const claim = await claimOf(asked);
    const { tenantId } = asked.user ?? ann;
    expect(claim).toMatchObject({ kind: "write", fingerprint, deadlineMs: 5_000 });
    expect(claim?.key).toEqual(claimKey(["write", ...namespace], id, tenantId));
  });

  test("is shared by no other caller, write, header or ID", async () => {
    const keys = await Promise.all([
      keyOf({}),
      keyOf({ user: { ...ann, tenantId: "evil" } }),
      keyOf({ user: { ...ann, id: "bob" } }),
      keyOf({ user: anonymous }),
      keyOf({ user: anonymous, anonymousAs: "visitor" }),
      keyOf({ declaration: { name: "claimed.note.delete" } }),
      keyOf({ headers: { "idempotency-key": "k-2" } }),
      keyOf({ headers: byRequest }),
      keyOf({ headers: { "idempotency-key": "r-1" } }),
    ]);
    expect(new Set(keys).size).toBe(keys.length);
  });

  test("refuses another input of a user with a key, and differs for all others", async () => {
    const other = { input: { n: 2 } };
    expect(await keyOf(other)).toBe(await keyOf({}));
    expect(await claimOf()).toMatchObject({ comparesFingerprint: true });
    for (const asked of [{ headers: byRequest }, { user: anonymous }]) {
      expect(await keyOf({ ...asked, ...other })).not.toBe(await keyOf(asked));
      expect(await claimOf(asked)).toMatchObject({ comparesFingerprint: false });
    }
  });

  test("compares what its schema read if it cannot compare what that made", async () => {
    const input = { at: new URL("https://example.com") };
    const claim = await claimOf({ input, rawInput: () => ({ at: "https://example.com" }) });
    const raw = fingerprintOf(name, input, () => ({ at: "https://example.com" }));
    expect(claim?.fingerprint).toBe(raw);
    await expect(claimOf({ input })).rejects.toThrow("cannot be compared");
  });

  test("is absent if nothing identifies a repeat, or none is deduplicated", async () => {
    const absent: Asked[] = [
      { headers: {} },
      { headers: byRequest, user: anonymous },
      { declaration: { name, once: false } },
      { declaration: { name, onceRule: false } },
      { once: false },
    ];
    for (const asked of absent) expect(await claimOf(asked)).toBeUndefined();
    expect(await claimOf({ once: false, declaration: { name, once: {} } })).toBeDefined();
  });

  test("follows the rule that was merged at boot rather than the options", async () => {
    const onceRule = { key: "required", keepSeconds: 900 } as const;
    const declaration = { name, once: { keepSeconds: 600 }, onceRule };
    expect(await claimOf({ declaration })).toMatchObject({ retentionMs: 900_000 });
    await expect(claimOf({ declaration, headers: byRequest })).rejects.toThrow(
      /^This request needs an Idempotency-Key; send a new UUID with it, /,
    );
  });

  test.each<[string, Asked, number | undefined]>([
    ["as usual", {}, undefined],
    ["as its server says", { once: { keepSeconds: 600 } }, 600_000],
    [
      "as it says",
      { once: { keepSeconds: 600 }, declaration: { name, once: { keepSeconds: 300 } } },
      300_000,
    ],
  ])("is kept %s", async (_, asked, retentionMs) => {
    expect(await claimOf(asked)).toHaveProperty("retentionMs", retentionMs);
  });

  test("replays no headers but the standard ones and those of its declaration", async () => {
    const replayHeaders = ["x-total"];
    const declared = await claimOf({ declaration: { name, replayHeaders } });
    expect([declared?.replayedHeaders, (await claimOf())?.replayedHeaders]).toEqual([
      replayHeaders,
      [],
    ]);
  });

  test("has its answer fit the transport of its request", async () => {
    const assertFits = () => undefined;
    expect((await claimOf({ assertFits }))?.assertFits).toBe(assertFits);
  });
});

describe("the claim of a write with an encrypted answer", () => {
  const declaration = { name, replay: "encrypted" } as const;
  const ring = { active: "one", keys: { one: Buffer.alloc(32, 1).toString("base64") } };

  test("opens its answer in its own row alone", async () => {
    const runtime = runtimeWith();
    runtime.secrets.begin(parseKeyRing(JSON.stringify(ring)), 0);
    const { cipher, key } = (await claimOf({ declaration }, runtime)) ?? expect.unreachable();
    const sealed = await cipher?.seal(Buffer.from("secret"));
    if (sealed === undefined) return expect.unreachable();
    expect(Buffer.from(sealed).toString()).not.toContain(Buffer.from("secret").toString("base64"));
    const table = runtime.tableName(onceTable.name);
    const openedIn = async (...place: [string, string, string]) => {
      const opened = await answerCipher(runtime.secrets, place).open(sealed);
      return Buffer.from(opened).toString();
    };
    expect(await openedIn(table, key.partition, key.sort)).toBe("secret");
    const unavailable = expect.objectContaining({ code: "config_unavailable" });
    await expect(openedIn("other", key.partition, key.sort)).rejects.toEqual(unavailable);
    await expect(openedIn(table, "other", key.sort)).rejects.toEqual(unavailable);
    await expect(openedIn(table, key.partition, "other")).rejects.toEqual(unavailable);
  });

  test("is opened by the claim of a deployment that no longer encrypts, and the other way round", async () => {
    const runtime = runtimeWith();
    runtime.secrets.begin(parseKeyRing(JSON.stringify(ring)), 0);
    const sealing = (await claimOf({ declaration }, runtime)) ?? expect.unreachable();
    const plain = (await claimOf({}, runtime)) ?? expect.unreachable();
    expect(plain.cipher).toBeUndefined();
    const sealed = await sealing.cipher?.seal(Buffer.from("secret"));
    for (const { opener } of [sealing, plain])
      expect(Buffer.from((await opener?.open(sealed ?? Buffer.of())) ?? "").toString()).toBe(
        "secret",
      );
  });

  test("is refused before its handler runs if nothing could encrypt the answer", async () => {
    await expect(claimOf({ declaration })).rejects.toMatchObject({ code: "no_key_ring" });
    expect((await claimOf())?.cipher).toBeUndefined();
  });
});

test.each<[string, boolean]>([
  ["8e03978e-40d5-43dd-bc93-6894a57f9324", true],
  ['"quoted, with a comma"', true],
  ['"k";max-age=10;q="a b"', true],
  ["a b", false],
  ["", false],
  ['"open', false],
])("the documented pattern of keys says of %j what the server does", async (key, isValid) => {
  expect(new RegExp(idempotencyKeyPattern).test(key)).toBe(isValid);
  const claimed = claimOf({ headers: { "idempotency-key": key } });
  if (isValid) expect(await claimed).toBeDefined();
  else
    await expect(claimed).rejects.toThrow(
      "The Idempotency-Key is not valid; send 1 to 255 visible ASCII characters, such as a UUID",
    );
});
