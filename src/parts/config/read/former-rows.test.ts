import { expect, test } from "vitest";
import { createTenantConfig } from "../declare/declaration.ts";
import { withFormerRows } from "./former-rows.ts";
import { type ConfigRow, type ConfigRowReader, formerPlace, type RowAddress } from "./rows.ts";

const [is, was, other] = ["files:config:limit", "files:config:max-mb", "files:config:other"];
const { definition } = createTenantConfig("number", { formerly: was });
const plain = createTenantConfig("number", {}).definition;
const registry = {
  configKeys: new Map([
    [is, { id: is, feature: "files", name: "limit", definition }],
    [other, { id: other, feature: "files", name: "other", definition: plain }],
  ]),
};
const at = (key: string, tenant = "acme"): RowAddress => ({
  partition: `config#tenant#${tenant}`,
  key,
});

/** A reader whose rows change after each call. */
function reading(...states: readonly Readonly<Record<string, ConfigRow>>[]) {
  const calls: { readonly keys: readonly string[]; readonly consistent: boolean | undefined }[] =
    [];
  const reader: ConfigRowReader = {
    read: async (addresses, { consistent } = {}) => {
      const state = states[Math.min(calls.length, states.length - 1)];
      calls.push({
        keys: addresses.map(
          ({ partition, key }) => `${partition.slice("config#tenant#".length)} ${key}`,
        ),
        consistent,
      });
      return addresses.map(({ key }) => state?.[key]);
    },
  };
  return { rows: withFormerRows(reader, registry), calls };
}

const old = { value: 5, version: 7 };
const superseded = { ...old, renamedTo: is };
const written = { value: 6, version: 8 };

test("a read that races with the rename of a row is repeated as a consistent read, and returns the new row", async () => {
  const { rows, calls } = reading({ [was]: superseded }, { [is]: written, [was]: superseded });

  expect(await rows.read([at(is)], { consistent: false })).toEqual([written]);
  expect(calls.map(({ consistent }) => consistent)).toEqual([false, true]);
});

test("only rows in doubt are read again, once", async () => {
  const { rows, calls } = reading({ [was]: superseded, [other]: { value: 1, version: 1 } });

  expect(await rows.read([at(other), at(is), at(is, "umbrella"), at(other, "umbrella")])).toEqual([
    { value: 1, version: 1 },
    undefined,
    undefined,
    { value: 1, version: 1 },
  ]);
  expect(calls.map(({ keys }) => keys)).toEqual([
    [
      `acme ${other}`,
      `acme ${is}`,
      `acme ${was}`,
      `umbrella ${is}`,
      `umbrella ${was}`,
      `umbrella ${other}`,
    ],
    [`acme ${is}`, `acme ${was}`, `umbrella ${is}`, `umbrella ${was}`],
  ]);
});

test.each<[string, Readonly<Record<string, ConfigRow>>, unknown]>([
  ["nothing is stored", {}, undefined],
  [
    "only the former row",
    { [was]: old },
    expect.objectContaining({
      value: 5,
      version: 7,
      [formerPlace]: { key: was, own: undefined, rows: [{ key: was, row: old }] },
    }),
  ],
  [
    "both, as a process of before has written again",
    { [is]: written, [was]: { value: 9, version: 9 } },
    written,
  ],
  [
    "a tombstone",
    { [is]: { value: undefined, version: 8, deleted: true }, [was]: old },
    { value: undefined, version: 8, deleted: true },
  ],
  [
    "a row that says it was renamed, to a key that this one never was",
    { [is]: { ...written, renamedTo: other } },
    { ...written, renamedTo: other },
  ],
])("needs only one read: %s", async (_what, state, expected) => {
  const { rows, calls } = reading(state);

  expect(await rows.read([at(is)])).toEqual([expected]);
  expect(calls).toHaveLength(1);
});
