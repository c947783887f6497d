// Secrets that are sealed for the versions of their rows, beside processes that seal them as 0.1.0 does.
import { describe, expect, test } from "vitest";
import { startHost } from "./host.ts";
import { type CheckingParty, type Line, sent, sentJson } from "./line.ts";
import { lines } from "./lines.ts";
import { keptJson } from "./packed.ts";
import { checking, type Left, meetLive, usual } from "./session.ts";
import { useSession } from "./use-session.ts";
import { currentVersion, keptFile, keptVersion } from "./version.ts";

const [current, before] = [await currentVersion(), await keptVersion("0.1.0")];
const session = useSession(current);
const secretLines = lines.filter(
  ({ name }) => name.startsWith("a secret") || name.startsWith("an encrypted answer"),
);
const named = (chosen: readonly Line[]) => chosen.map((line) => [line.name, line] as const);
const known = secretLines.filter(({ without = [] }) => !without.includes(before.name));

/** The current version, with the option on. */
function binding(line: string, where: string): CheckingParty {
  const party = checking(session().party(current, line, where), expect);
  return { ...party, host: party.binding() };
}

const tokenPath = "/config/kept:config:token";

/** How a tenant's secret lies in the table. */
async function sealedForm({ store, ann }: Pick<CheckingParty, "store" | "ann">) {
  const { config = [] } = await store.items();
  const partition = `config#tenant#${ann.tenantId.replace("#", "%23")}`;
  const row = config.find(({ pk, sk }) => pk?.S === partition && sk?.S === "kept:config:token");
  const { bound, key } = row?.["value"]?.M ?? {};
  return [bound?.S, key?.S];
}

describe("a server that binds reads data stored by 0.1.0:", () => {
  const stored = keptJson<readonly (Left & { readonly name: string })[]>(
    keptFile("0.1.0", "stored.json"),
  );

  test.each(named(known))("%s", async (name, line) => {
    const left = stored.find((candidate) => candidate.name === name);
    if (left === undefined) throw new Error("0.1.0 has not left it");
    await session().restore(line, left);
    await line.meet(binding(name, "kept"), left.value);
  });
});

test.each(named(known))("0.1.0, then a server that binds: %s", async (name, line) => {
  const where = "before";
  await meetLive(line, session(), [session().party(before, name, where), binding(name, where)]);
});

test.each(named(secretLines))(
  "a server that binds, then one that does not: %s",
  async (name, line) => {
    const where = "binding";
    await meetLive(line, session(), [
      binding(name, where),
      checking(session().party(current, name, where), expect),
    ]);
  },
);

test("an encrypted answer stored by a binding server is replayed by 0.1.0", async () => {
  const line = lines.find(({ name }) => name === "an encrypted answer is replayed") as Line; // safe: it is there
  const where = "answer";
  await meetLive(line, session(), [
    binding(line.name, where),
    checking(session().party(before, line.name, where), expect),
  ]);
});

describe("a secret that is bound to its version, in a process of 0.1.0,", () => {
  const name = "bound";
  const party = () => binding(name, name);
  const old = () => session().party(before, name, name);
  const read = (of: Pick<CheckingParty, "host" | "ann">) => of.host.send("/token", { as: of.ann });

  test("fails the read with 503, without a fallback to a broader level or a default", async () => {
    const { host, operator } = party();
    const put = (body: object) => sent(host, tokenPath, { method: "PUT", as: operator, body });
    await sent(old().host, tokenPath, {
      method: "PUT",
      as: operator,
      body: { value: "for all", scope: "system" },
    });
    expect(JSON.parse((await read(old())).body)).toEqual({ token: "for all" });
    await put({ value: "acme's" });
    expect(await sealedForm(party())).toEqual(["version", "2026"]);

    const { status, body } = await read(old());
    expect([status, JSON.parse(body)]).toMatchObject([503, { error: "config_unavailable" }]);
    expect(await sentJson(old().host, tokenPath, { as: operator })).toMatchObject({
      source: "tenant-row",
      isSet: true,
    });
    expect(JSON.parse((await read(party())).body)).toEqual({ token: "acme's" });
  });

  test("is counted as locked by a rotation there, and left unchanged", async () => {
    const { operator, world, store } = party();
    const earlier = startHost(current, world, store, {
      ...usual,
      keyRing: "earlier",
      bindVersion: true,
    });
    await sent(earlier, tokenPath, { method: "PUT", as: operator, body: { value: "acme's" } });
    const rotate = (of: Pick<CheckingParty, "host">) =>
      sentJson(of.host, "/rotations", { as: operator, body: {} });
    expect(await rotate(old())).toMatchObject({ locked: 1 });
    expect(await sealedForm(party())).toEqual(["version", "2025"]);
    expect(await rotate(party())).toMatchObject({ locked: 0 });
    expect(await sealedForm(party())).toEqual(["version", "2026"]);
    expect(JSON.parse((await read(party())).body)).toEqual({ token: "acme's" });
  });

  test("can be set again, and is then readable for both versions", async () => {
    await sent(old().host, tokenPath, {
      method: "PUT",
      as: old().operator,
      body: { value: "set again" },
    });
    expect(await sealedForm(party())).toEqual([undefined, "2026"]);
    for (const of of [old(), party()])
      expect(JSON.parse((await read(of)).body)).toEqual({ token: "set again" });
  });
});
