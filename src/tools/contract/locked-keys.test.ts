import { expect, test } from "vitest";
import { access } from "../../base/identity/access.ts";
import {
  createSystemConfig,
  createTenantConfig,
  createUserConfig,
} from "../../parts/config/declare/declaration.ts";
import type { KeyDeclaration } from "../../parts/config/declare/key.ts";
import { compareKeys, type LockedKey, lockedKey } from "./locked-keys.ts";

const bounds = { min: 1, max: 10 };
const options = ["b", "a", "c"] as const;
const key = (declaration: KeyDeclaration<unknown>, id = "files:config:limit"): LockedKey =>
  JSON.parse(
    JSON.stringify(
      lockedKey({ id, feature: "files", name: "limit", definition: declaration.definition }),
    ),
  ) as LockedKey; // safe: it is plain JSON
const changes = (before: readonly LockedKey[], after: readonly LockedKey[]) =>
  compareKeys(before, after).map(
    ({ breaks, where, rule }) => `${where.replace("files:config:", "")} ${rule} ${breaks ?? "-"}`,
  );

test("a key is stored with everything that a change could break, and without any secret", () => {
  expect(
    key(
      createTenantConfig("select", {
        options,
        default: "b",
        allowPerRequest: true,
        formerly: "files:config:max",
      }),
    ),
  ).toEqual({
    id: "files:config:limit",
    scope: "tenant",
    type: "select",
    options: ["a", "b", "c"],
    default: "b",
    encrypted: false,
    allowPerRequest: true,
    read: "authenticated",
    write: "admin",
    formerly: ["files:config:max"],
  });
  expect(
    key(createUserConfig("number", { bounds, computed: () => 5, read: access.roles("editor") })),
  ).toEqual({
    id: "files:config:limit",
    scope: "user",
    type: "number",
    bounds,
    computed: true,
    encrypted: false,
    allowPerRequest: false,
    read: { roles: ["editor"] },
    write: "authenticated",
  });
  expect(key(createSystemConfig("text", { encrypted: true, default: "hunter2" }))).toEqual({
    id: "files:config:limit",
    scope: "system",
    type: "text",
    encrypted: true,
    allowPerRequest: false,
    read: "authenticated",
    write: "systemAdmin",
  });
});

const number = createTenantConfig("number", { bounds, default: 5 });
const select = createTenantConfig("select", { options: ["a", "b"] });

test.each<[string, KeyDeclaration<unknown>, KeyDeclaration<unknown>, string[]]>([
  [
    "nothing",
    number,
    createTenantConfig("number", { default: 5, bounds: { max: 10, min: 1 } }),
    [],
  ],
  ["the order of options", select, createTenantConfig("select", { options: ["b", "a"] }), []],
  [
    "a higher minimum",
    number,
    createTenantConfig("number", { bounds: { min: 2, max: 10 }, default: 5 }),
    ["bounds-narrowed row"],
  ],
  [
    "a lower maximum",
    number,
    createTenantConfig("number", { bounds: { min: 1, max: 9 }, default: 5 }),
    ["bounds-narrowed row"],
  ],
  [
    "both ends up",
    number,
    createTenantConfig("number", { bounds: { min: 2, max: 12 }, default: 5 }),
    ["bounds-narrowed row"],
  ],
  ["first bounds", createTenantConfig("number", { default: 5 }), number, ["bounds-narrowed row"]],
  ["no more bounds", number, createTenantConfig("number", { default: 5 }), ["bounds-widened -"]],
  [
    "a lower minimum",
    number,
    createTenantConfig("number", { bounds: { min: 0, max: 10 }, default: 5 }),
    ["bounds-widened -"],
  ],
  [
    "a higher maximum",
    number,
    createTenantConfig("number", { bounds: { min: 1, max: 11 }, default: 5 }),
    ["bounds-widened -"],
  ],
  [
    "an option less",
    select,
    createTenantConfig("select", { options: ["a"] }),
    ["option-removed row"],
  ],
  [
    "an option for another",
    select,
    createTenantConfig("select", { options: ["a", "c"] }),
    ["option-added -", "option-removed row"],
  ],
  [
    "another type",
    number,
    createTenantConfig("text", { default: "5" }),
    ["default-changed -", "type-changed row"],
  ],
  [
    "another scope",
    number,
    createUserConfig("number", { bounds, default: 5, write: access.admin }),
    ["scope-changed row"],
  ],
  [
    "a secret",
    createTenantConfig("text", { default: "x" }),
    createTenantConfig("text", { encrypted: true }),
    ["encryption-changed row"],
  ],
  [
    "another default",
    number,
    createTenantConfig("number", { bounds, default: 6 }),
    ["default-changed -"],
  ],
  ["no default", number, createTenantConfig("number", { bounds }), ["default-changed -"]],
  [
    "a computed value",
    select,
    createTenantConfig("select", { options: ["a", "b"], computed: () => "a" }),
    ["computed-added -"],
  ],
  [
    "a computed value no more",
    createTenantConfig("select", { options: ["a", "b"], computed: () => "a" }),
    select,
    ["computed-removed -"],
  ],
  [
    "a parameter of requests",
    number,
    createTenantConfig("number", { bounds, default: 5, allowPerRequest: true }),
    ["per-request-allowed -"],
  ],
  [
    "a parameter of requests no more",
    createTenantConfig("number", { bounds, default: 5, allowPerRequest: true }),
    number,
    ["per-request-refused client"],
  ],
  [
    "who may read and write",
    number,
    createTenantConfig("number", {
      bounds,
      default: 5,
      read: access.admin,
      write: access.authenticated,
    }),
    ["read-access-stricter client", "write-access-widened -"],
  ],
  [
    "who may read and write, the other way",
    number,
    createTenantConfig("number", {
      bounds,
      default: 5,
      read: access.everyone,
      write: access.systemAdmin,
    }),
    ["read-access-widened -", "write-access-stricter client"],
  ],
])("a change of one key: %s", (_what, before, after, expected) => {
  expect(changes([key(before)], [key(after)]).sort()).toEqual(
    expected.map((rule) => `limit ${rule}`),
  );
});

const named = (name: string, formerly?: string | readonly string[], max = 10) =>
  key(
    createTenantConfig("number", {
      bounds: { min: 1, max },
      ...(formerly === undefined ? {} : { formerly }),
    }),
    idOf(name),
  );
const idOf = (name: string) => `files:config:${name}`;

test.each<[string, LockedKey[], LockedKey[], string[]]>([
  ["is added", [], [named("a")], ["a key-added -"]],
  ["is removed", [named("a"), named("b")], [named("b")], ["a key-removed row"]],
  ["is renamed", [named("a")], [named("b", idOf("a"))], ["b key-renamed -"]],
  ["is renamed without a word", [named("a")], [named("b")], ["a key-removed row", "b key-added -"]],
  [
    "is renamed and narrowed",
    [named("a")],
    [named("b", idOf("a"), 9)],
    ["b key-renamed -", "b bounds-narrowed row"],
  ],
  [
    "is renamed again",
    [named("b", idOf("a"))],
    [named("c", [idOf("b"), idOf("a")])],
    ["c key-renamed -"],
  ],
  [
    "is renamed again, and forgets its first name",
    [named("b", idOf("a"))],
    [named("c", idOf("b"))],
    ["c key-renamed -", "c former-key-removed row"],
  ],
  ["forgets its former name", [named("b", idOf("a"))], [named("b")], ["b former-key-removed row"]],
  [
    "gets its former name back",
    [named("b", idOf("a"))],
    [named("a", idOf("b"))],
    ["a key-renamed -"],
  ],
  ["learns of a former name", [named("b")], [named("b", idOf("a"))], ["b former-key-added -"]],
  [
    "takes another over",
    [named("a", undefined, 20), named("b")],
    [named("b", idOf("a"))],
    ["b former-key-added -", "b bounds-narrowed row"],
  ],
  [
    "takes another over that was alike",
    [named("a"), named("b")],
    [named("b", idOf("a"))],
    ["b former-key-added -"],
  ],
])("a key that %s", (_what, before, after, expected) => {
  expect(changes(before, after)).toEqual(expected);
});

test("changes are sorted by key", () => {
  expect(changes([named("c"), named("a")], [named("d"), named("b")])).toEqual([
    "a key-removed row",
    "b key-added -",
    "c key-removed row",
    "d key-added -",
  ]);
});
