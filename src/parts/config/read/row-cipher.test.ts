import { expect, test } from "vitest";
import { newRingKey, parseKeyRing } from "../../../base/secrets/key-ring.ts";
import type { Sealed } from "../../../base/secrets/sealed.ts";
import { createSecrets } from "../../../base/secrets/secrets.ts";
import { createRowCipher } from "./row-cipher.ts";

const keys = { k1: newRingKey(), k2: newRingKey() };
const address = { partition: "config#tenant#acme", key: "files:config:secret" };
const encrypted = { encrypted: true };

function cipher(bindVersion?: boolean, active: keyof typeof keys = "k1") {
  const secrets = createSecrets({ clock: { now: () => 1 } });
  secrets.begin(parseKeyRing(JSON.stringify({ active, keys })), 1);
  return createRowCipher(
    secrets,
    () => "keelson-config",
    bindVersion === undefined ? undefined : { bindVersion },
  );
}

const [unbinding, binding] = [cipher(), cipher(true)];
const both = [
  ["without the option", unbinding],
  ["with it", binding],
] as const;
const opened = (value: unknown, version: unknown, by = unbinding) =>
  by.openRow({ value, version: version as number }, encrypted, address); // safe: a row that was put by hand may have anything
const locked = { locked: expect.any(String), ringKey: "k1" };

test.each(both)(
  "%s, a value opens at its sealed version, and a bound one at no other",
  async (_case, by) => {
    const unbound = await unbinding.seal("hunter2", address, 3);
    const bound = await binding.seal("hunter2", address, 3);
    expect([unbound, bound].map((value) => value.bound)).toEqual([undefined, "version"]);
    for (const value of [unbound, bound])
      expect(opened(value, 3, by)).toMatchObject({ value: "hunter2" });
    for (const version of [1, 2, 4, 30, 3.5, "3", undefined, null, Number.NaN]) {
      expect(opened(unbound, version, by)).toMatchObject({ value: "hunter2" });
      expect(opened(bound, version, by)).toEqual(locked);
    }
    for (const elsewhere of [
      { ...address, partition: "config#tenant#zenith" },
      { ...address, key: "files:config:other" },
    ]) {
      for (const value of [unbound, bound])
        expect(by.openRow({ value, version: 3 }, encrypted, elsewhere)).toEqual(locked);
    }
  },
);

test.each(both)(
  "%s, a bound value does not open as an unbound one or vice versa, and unknown forms do not open",
  async (_case, by) => {
    const unbound = await unbinding.seal("hunter2", address, 3);
    const { bound, ...rest } = await binding.seal("hunter2", address, 3);
    expect(opened(rest, 3, by)).toEqual(locked);
    expect(opened({ ...unbound, bound }, 3, by)).toEqual(locked);
    for (const unknown of [
      { sealed: 2 },
      { sealed: 0 },
      { bound: "row" },
      { bound: false },
      { bound: null },
    ]) {
      for (const value of [unbound, { ...rest, bound }]) {
        expect(opened({ ...value, ...unknown }, 3, by)).toEqual({
          locked: expect.stringContaining("a form that this version of keelson does not know"),
          ringKey: "k1",
        });
      }
    }
  },
);

test("only a binding cipher reports unbound values", async () => {
  const unbound = await unbinding.seal("hunter2", address, 3);
  expect(opened(unbound, 3)).toMatchObject({ isUnbound: false });
  expect(opened(unbound, 3, binding)).toMatchObject({ isUnbound: true });
  expect(opened(await binding.seal("hunter2", address, 3), 3, binding)).toMatchObject({
    isUnbound: false,
  });
});

test("a value that does not open gives the version of its row as the reason", async () => {
  const value = await binding.seal("hunter2", address, 3);
  const reason =
    'it was not sealed for this row with the key "k1" (bound to the version of its row: ';
  expect(opened(value, 4)).toMatchObject({ locked: expect.stringContaining(`${reason}4)`) });
  expect(opened(value, undefined)).toMatchObject({
    locked: expect.stringContaining(`${reason}none)`),
  });
});

test("resealing uses the active key, binds if configured, and never unbinds", async () => {
  const unbound = await unbinding.seal("hunter2", address, 3);
  const bound = await binding.seal("hunter2", address, 3);
  const table: readonly (readonly [
    value: Sealed,
    binds: boolean,
    key: "k1" | "k2",
    isOutdated: boolean,
    isBound: boolean,
  ])[] = [
    [unbound, false, "k1", false, false],
    [unbound, false, "k2", true, false],
    [unbound, true, "k1", true, true],
    [unbound, true, "k2", true, true],
    [bound, false, "k1", false, true],
    [bound, false, "k2", true, true],
    [bound, true, "k1", false, true],
    [bound, true, "k2", true, true],
  ];
  for (const [value, binds, key, isOutdated, isBound] of table) {
    const by = cipher(binds, key);
    expect(by.isOutdated(value, key)).toBe(isOutdated);
    const anew = await by.reseal({ address, version: 3, value });
    expect(anew).toMatchObject({ key, ...(isBound ? { bound: "version" } : {}) });
    expect(opened(anew, 3)).toMatchObject({ value: "hunter2" });
    expect("value" in opened(anew, 4)).toBe(!isBound);
  }
  expect(await binding.reseal({ address, version: 4, value: bound })).toBeUndefined();
});

test("a row written by hand without a version is bound to the missing version", async () => {
  const value = await binding.reseal({
    address,
    version: undefined,
    value: await unbinding.seal("hunter2", address, 1),
  });
  for (const version of [undefined, "3"])
    expect(opened(value, version)).toMatchObject({ value: "hunter2" });
  for (const version of [0, 1, 3]) expect(opened(value, version)).toEqual(locked);
});

test("an unsealed row of an encrypted key is unreadable, and a row of any other key opens as it is", () => {
  for (const value of ["hunter2", { sealed: "1" }])
    expect(opened(value, 1)).toEqual({ unreadable: expect.stringContaining("is not sealed") });
  expect(unbinding.openRow({ value: 5, version: 1 }, { encrypted: false }, address)).toEqual({
    value: 5,
  });
});
