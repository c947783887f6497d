// A rolling deployment to the fair queue of jobs: 0.1.0 with this version's first step, and its two steps.
import { afterEach, describe, expect, test, vi } from "vitest";
import { type Host, startHost } from "./host.ts";
import { type Party, patience } from "./line.ts";
import { usual } from "./session.ts";
import { useSession } from "./use-session.ts";
import { currentVersion, keptVersion, keptVersions, type Version } from "./version.ts";

type Step = "before" | "off" | "receive" | "send";

const current = await currentVersion();
const earlier = await Promise.all(keptVersions().map(keptVersion));
const session = useSession(current);
afterEach(() => vi.unstubAllEnvs());

const readBy = {
  before: ["events", "jobs"],
  off: ["events", "jobs"],
  receive: ["events", "jobs", "fair"],
  send: ["events", "jobs", "fair"],
} as const;

/** A process of a step, and the queues that it reads. */
async function hostIn(step: Step, version: Version, party: Party) {
  vi.stubEnv("KEELSON_FAIR_JOBS", step === "before" ? undefined : step);
  const host = startHost(version, party.world, party.store, usual);
  await tidy(host, party, `${party.name}-first-of-${step}`); // the step counts from the first message on
  vi.unstubAllEnvs();
  return { host, drain: () => host.drain(...readBy[step]) };
}

async function tidy(host: Host, { ann }: Party, name: string): Promise<void> {
  const headers = { "idempotency-key": crypto.randomUUID() };
  const answer = await host.send(`/tidying/${name}`, {
    as: ann,
    body: {},
    headers,
  });
  expect([200, 204]).toContain(answer.status);
}

const timesOf = ({ store, ann }: Party, name: string) => store.effect(ann.tenantId, "tidied", name);
const party = (name: string) => session().party(current, name, "fair");

/** Drains until the queues have no message, which a claim of another process may hide for a moment. */
async function done({ store }: Party, ...drains: readonly (() => Promise<number>)[]) {
  const left = async () => {
    for (const drain of drains) await drain();
    return store.waiting("events", "jobs", "fair");
  };
  await expect.poll(left, { ...patience, interval: 100 }).toBe(0);
}

const pairs: readonly (readonly [Step, Step, Version])[] = [
  ...earlier.flatMap((version): (readonly [Step, Step, Version])[] => [
    ["before", "receive", version],
    ["receive", "before", version],
  ]),
  ["off", "receive", current],
  ["receive", "off", current],
  ["receive", "send", current],
  ["send", "receive", current],
];

describe.each(pairs)("%s, then %s:", (first, second, version) => {
  const start = async (name: string) => {
    const own = party(`${name} ${first} ${second}`);
    const versionOf = (step: Step) => (step === "before" ? version : current);
    const one = await hostIn(first, versionOf(first), own);
    const other = await hostIn(second, versionOf(second), own);
    await done(own, one.drain, other.drain);
    return { own, one, other };
  };

  test("jobs that the first sent are run by the second, each once", async () => {
    const { own, one, other } = await start("sent");
    const names = ["a", "b", "c"].map((name) => `${own.name}-${name}`);
    for (const name of names) await tidy(one.host, own, name);
    await done(own, other.drain);
    for (const name of names) expect(await timesOf(own, name)).toBe(1);
  });

  test("both together lose and double no job, and equal jobs of the two merge", async () => {
    const { own, one, other } = await start("both");
    const names = ["a", "b", "c", "d"].map((name) => `${own.name}-${name}`);
    await Promise.all(
      names.flatMap((name) => [one, other].map(({ host }) => tidy(host, own, name))),
    );
    await Promise.all([one.drain(), other.drain()]);
    await done(own, one.drain, other.drain);
    for (const name of names) expect(await timesOf(own, name)).toBe(1);
  });

  test("a job that was done in the one merges with an equal one of the other", async () => {
    const { own, one, other } = await start("done");
    const name = `${own.name}-a`;
    await tidy(one.host, own, name);
    await done(own, one.drain);
    await tidy(other.host, own, name);
    await done(own, other.drain);
    expect(await timesOf(own, name)).toBe(1);
    expect(own.world.runs.filter((run) => run.endsWith(`tidy ${name}`))).toHaveLength(1);
  });
});

test("only send leaves messages in the queue that older versions do not read", async () => {
  const own = party("left");
  for (const [step, left] of [
    ["off", 0],
    ["receive", 0],
    ["send", 2],
  ] as const) {
    const { host, drain } = await hostIn(step, current, own);
    await tidy(host, own, `${own.name}-${step}`);
    expect(await own.store.waiting("fair")).toBe(left);
    await done(own, drain, () => host.drain("fair"));
  }
});
