import assert from "node:assert/strict";
import fc from "fast-check";
import { parseKeyRing, parseKeyRingText } from "../../../src/base/secrets/key-ring.ts";
import { isSealed } from "../../../src/base/secrets/sealed.ts";
import { createSecrets } from "../../../src/base/secrets/secrets.ts";
import { createRowCipher } from "../../../src/parts/config/read/row-cipher.ts";
import type { ConfigRow } from "../../../src/parts/config/read/rows.ts";
import { damagedBytes, damagedJson, damagedText, damagedValue } from "../mutations.ts";
import { outcomeOf, parser, showsNone } from "../parser.ts";

const ringKey = Buffer.alloc(32, 5).toString("base64");
const retired = { old: { proof: ringKey, until: "2027-01-01T00:00:00.000Z" } };
const ringText = JSON.stringify({ active: "k1", keys: { k1: ringKey, k2: ringKey }, retired });
const clock = { now: () => 1_700_000_000_000 };
const secrets = createSecrets({ clock });
secrets.begin(parseKeyRing(ringText), 0);
const cipher = createRowCipher(secrets, () => "config", { bindVersion: true });
const address = { partition: "config#tenant#acme", key: "shop:config:token" };
const plain = "the-secret-of-acme";
const definition = { encrypted: true };
const sealed = await Promise.all([
  cipher.seal(plain, address, 3),
  createRowCipher(secrets, () => "config").seal(plain, address, 3),
]);
const rows = fc.constantFrom(...sealed).map(({ data, ...value }) => ({
  value: { ...value, data: new Uint8Array(data) },
  version: 3,
}));
const damagedRow = damagedValue(rows).chain((row) => {
  const { value } = Object(row) as { value?: { data?: unknown } }; // safe: any value has members
  if (!(Object(value).data instanceof Uint8Array)) return fc.constant(row);
  const withData = (data: Uint8Array) => ({ ...Object(row), value: { ...value, data } });
  return fc.oneof(
    fc.constant(row),
    damagedBytes(fc.constant(value?.data as Uint8Array)).map(withData),
  ); // safe: just checked
});

const sealedValue = parser({
  name: "sealed-value",
  reads: "the rows of encrypted keys",
  inputs: damagedRow,
  holds: async (given) => {
    if (typeof given !== "object" || given === null) return; // a row is an item
    const row = given as ConfigRow; // safe: only read
    const { value: opened } = await outcomeOf(() => cipher.openRow(row, definition, address));
    assert.ok(opened !== undefined);
    showsNone("value" in opened ? {} : opened, [plain, ringKey]);
    // Only the sealed values can be opened, in their place, at their version.
    if ("value" in opened) {
      assert.equal(opened.value, plain);
      const isKept = sealed.some(({ data }) =>
        Buffer.from(data).equals((row.value as { data: Uint8Array }).data),
      ); // safe: it has opened
      assert.ok(isKept, "other bytes");
    } else {
      const reason = "locked" in opened ? opened.locked : opened.unreadable;
      assert.ok(reason.length < 1_000, reason); // 64 characters of a name may be escaped
    }
    if (isSealed(row.value)) {
      const resealed = { address, version: row.version, value: row.value };
      const { value } = await outcomeOf(() => cipher.reseal(resealed));
      assert.equal(value !== undefined, "value" in opened);
    }
  },
});

/** Parts of keys that no message may show. */
const shown = [ringKey.slice(0, 20)];

const keyRing = parser({
  name: "key-ring",
  reads: "the parameter with the key ring",
  inputs: fc.oneof(
    damagedText(fc.constant(ringText)),
    damagedJson(fc.constant(JSON.parse(ringText))),
  ),
  holds: async (text) => {
    const documented = { errors: [TypeError], secrets: shown };
    const { value: ring } = await outcomeOf(() => parseKeyRingText(text), documented);
    const { value: keys } = await outcomeOf(() => parseKeyRing(text), documented);
    assert.equal(ring === undefined, keys === undefined);
    if (ring === undefined || keys === undefined) return;
    assert.ok(keys.keys.has(keys.active));
    // Without other members, which may be too deep to be written.
    const retiredKeys = Object.entries(ring.retired ?? {}).map(
      ([name, { proof, until }]) => [name, { proof, until }] as const,
    );
    const known = {
      active: ring.active,
      keys: ring.keys,
      retired: Object.fromEntries(retiredKeys),
    };
    assert.deepEqual(parseKeyRingText(JSON.stringify(known)), known);
    for (const key of keys.keys.values()) assert.equal(key.symmetricKeySize, 32);
    for (const { untilMs } of keys.retired?.values() ?? []) assert.ok(Number.isFinite(untilMs));
  },
});

export const secretParsers = [sealedValue, keyRing];
