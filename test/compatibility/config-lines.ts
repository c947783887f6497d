// Configuration that an earlier process has written.
import type { Host } from "./host.ts";
import { type CheckingParty, type Line, line, type Party, sent, sentJson } from "./line.ts";

const path = (key: string, rest = "") => `/config/kept:config:${key}${rest}`;

interface Shown {
  readonly value?: unknown;
  readonly source: string;
  readonly version?: number;
}

/** A key as the operators' API and a handler see it. */
async function read(host: Host, { ann, operator }: Pick<Party, "ann" | "operator">, key: string) {
  const { value, source, version } = await sentJson<Shown>(host, path(key), { as: operator });
  const values = await sentJson<Record<string, unknown>>(host, "/values", { as: ann });
  return { value, source, version, used: values[key] };
}

async function put(
  { host, operator }: Pick<Party, "host" | "operator">,
  key: string,
  body: object,
): Promise<Shown> {
  return sentJson<Shown>(host, path(key), { method: "PUT", as: operator, body });
}

const isRead =
  (key: string) =>
  async (party: CheckingParty, left: unknown): Promise<void> =>
    party.expect(JSON.parse(JSON.stringify(await read(party.host, party, key)))).toEqual(left);

/** Values of every type and level. */
const values: readonly (readonly [key: string, value: (party: Party) => unknown, body?: object])[] =
  [
    ["theme", () => "ünï ✓ \u2028"],
    ["flag", () => true],
    ["colour", () => "green"],
    ["limit", () => 42, { scope: "tenant" }],
    ["mode", ({ name }) => name, { scope: "system" }],
  ];

const secret = ({ name }: Party) => `the secret of ${name}`;
const token = (party: CheckingParty) =>
  sentJson<{ readonly token: unknown }>(party.host, "/token", { as: party.ann });

const keepToken = async (party: Party, host: Host) => {
  await put({ host, operator: party.operator }, "token", { value: secret(party) });
  return { token: secret(party) };
};
const isOpened = async (party: CheckingParty, left: { readonly token: string }) => {
  party.expect(await token(party)).toEqual(left);
  const shown = await sentJson<Shown>(party.host, path("token"), { as: party.operator });
  party.expect(shown).toMatchObject({ source: "tenant-row", version: 1 });
};

interface History {
  readonly items: readonly unknown[];
  readonly next?: number;
}

export const configLines: readonly Line[] = [
  ...values.map(([key, value, body]) =>
    line(
      `the value of ${key} is read`,
      async (party) => {
        await put(party, key, { value: value(party), ...body });
        return read(party.host, party, key);
      },
      isRead(key),
    ),
  ),
  line(
    "a user's own value is read",
    async (party) => {
      const { host, ann } = party;
      await put(party, "limit", { value: 20, scope: "tenant" });
      await sent(host, path("limit"), {
        method: "PUT",
        as: { ...ann, roles: ["admin"] },
        body: { value: 30 },
      });
      return sentJson(host, "/values", { as: ann });
    },
    async ({ expect, host, ann, operator }, left) => {
      expect(await sentJson(host, "/values", { as: ann })).toEqual(left);
      expect(left).toMatchObject({ limit: 30 });
      expect(await sentJson(host, "/values", { as: { ...operator, sub: "bob" } })).toMatchObject({
        limit: 20,
      });
    },
  ),
  line(
    "a value that was deleted stays deleted, and its version goes on",
    async (party) => {
      await put(party, "theme", { value: "dark" });
      await sent(party.host, path("theme"), { method: "DELETE", as: party.operator });
      return read(party.host, party, "theme");
    },
    async (party, left) => {
      await isRead("theme")(party, left);
      party.expect(left).toMatchObject({ value: "plain", source: "default" });
      party
        .expect(await put(party, "theme", { value: "light", expectedVersion: 2 }))
        .toMatchObject({ version: 3 });
    },
  ),
  line(
    "a value with an end counts until then",
    async (party) => {
      const expiresAt = new Date(Date.now() + 3_600_000).toISOString();
      await put(party, "theme", { value: "dark", expiresAt });
      return read(party.host, party, "theme");
    },
    isRead("theme"),
  ),
  line(
    "a value whose end has come does not count",
    async (party) => {
      await put(party, "theme", {
        value: "dark",
        expiresAt: new Date(Date.now() + 3_600_000).toISOString(),
      });
    },
    async (party) =>
      party
        .expect(await read(party.host, party, "theme"))
        .toMatchObject({ source: "default", used: "plain" }),
    { ageMs: 3_700_000 },
  ),
  line(
    "a version that was seen is the one that is expected",
    async (party) => (await put(party, "theme", { value: "dark" })).version,
    async (party, version) => {
      const { host, operator } = party;
      const body = { value: "light", expectedVersion: version };
      party.expect(await put(party, "theme", body)).toMatchObject({ version: 2 });
      const { status } = await host.send(path("theme"), { method: "PUT", as: operator, body });
      party.expect(status).toBe(409);
    },
  ),
  line(
    "what was changed is undone",
    async (party) => {
      await put(party, "theme", { value: "dark" });
      await put(party, "theme", { value: "light" });
    },
    async (party) => {
      const shown = await sentJson<Shown>(party.host, path("theme", "/undo"), {
        method: "POST",
        as: party.operator,
        body: {},
      });
      party.expect(shown).toMatchObject({ value: "dark", version: 3 });
    },
  ),
  line(
    "a history goes on at the page that a client has come to",
    async (party) => {
      const { host, operator } = party;
      for (const value of ["a", "b", "c", "d"]) await put(party, "theme", { value });
      await sent(host, path("theme"), { method: "DELETE", as: operator });
      const { next } = await sentJson<History>(host, path("theme", "/history?limit=2"), {
        as: operator,
      });
      const { items } = await sentJson<History>(host, path("theme", "/history"), { as: operator });
      return { next, rest: items.slice(2), all: items };
    },
    async ({ expect, host, operator }, { next, rest, all }) => {
      const read = (query: string) =>
        sentJson<History>(host, path("theme", `/history${query}`), { as: operator });
      expect(rest).toHaveLength(3);
      expect((await read(`?before=${next}`)).items).toEqual(rest);
      expect((await read("")).items).toEqual(all);
    },
  ),
  line("a secret is opened", (party) => keepToken(party, party.host), isOpened),
  line(
    "a secret of before the key was retired is opened",
    (party) => keepToken(party, party.earlier),
    isOpened,
  ),
  line(
    "a secret that is bound to its version is opened",
    (party) => keepToken(party, party.binding()),
    isOpened,
    {
      without: ["0.1.0"],
    },
  ),
  line(
    "a secret is sealed anew, goes on at the place where that was interrupted",
    async (party) => {
      const { earlier, store, operator } = party;
      const fillers = Array.from({ length: 120 }, (_, index) => ({
        pk: { S: "filler" },
        sk: { S: `${index}` },
      }));
      await keepToken(party, earlier);
      await store.put({ config: fillers });
      const body = { stops: true };
      const { next } = await sentJson<{ readonly next?: string }>(earlier, "/rotations", {
        as: operator,
        body,
      });
      await store.remove({ config: fillers });
      if (next === undefined) throw new Error("the rotation had a single page");
      return { next };
    },
    async (party, { next }) => {
      const { expect, host, operator } = party;
      const resumed = await sentJson(host, "/rotations", { as: operator, body: { from: next } });
      expect(resumed).toMatchObject({ isWhole: true });
      expect(await sentJson(host, "/rotations", { as: operator, body: {} })).toMatchObject({
        isWhole: true,
        locked: 0,
      });
      expect(await token(party)).toEqual({ token: secret(party) });
    },
  ),
];
