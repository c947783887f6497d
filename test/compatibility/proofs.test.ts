// Messages of an earlier version, which may have no proof, and those of this one, which do.
import { describe, expect, test } from "vitest";
import { startHost } from "./host.ts";
import { type Party, patience, sent } from "./line.ts";
import { usual } from "./session.ts";
import { useSession } from "./use-session.ts";
import { currentVersion, keptVersion, keptVersions } from "./version.ts";

const current = await currentVersion();
const session = useSession(current);
const done = { counted: 1, followed: 1, worked: 2, paged: 1 };
const undone = { counted: 0, followed: 0, worked: 0, paged: 0 };
/** The kept versions that do not sign what they send. */
const unsigned: readonly string[] = ["0.1.0"];

/** Sends an event, a job and a delivery. */
async function sendAll({ host, ann, name }: Party): Promise<void> {
  await sent(host, `/things/${name}`, { as: ann, body: {} });
  await sent(host, `/jobs/${name}`, {
    as: ann,
    body: { order: "another job than that of the event" },
  });
  await sent(host, `/deliveries/${name}`, { as: ann, body: {} });
}

async function effects({ store, ann, name }: Party) {
  const names = Object.keys(done);
  const counts = await Promise.all(names.map((what) => store.effect(ann.tenantId, what, name)));
  return Object.fromEntries(names.map((what, index) => [what, counts[index]]));
}

/** Lets a host consume until the queues are empty. */
async function drained(party: Party): Promise<void> {
  const left = async () => {
    await party.host.drain();
    return party.store.waiting();
  };
  await expect.poll(left, { ...patience, interval: 100 }).toBe(0);
}

describe.each(keptVersions())("%s and this version:", (kept) => {
  const hostOf = (proof: "off" | "sign" | "require") => {
    const { world, store } = session();
    return startHost(current, world, store, { ...usual, proof });
  };
  const parties = async (name: string, proof: "off" | "sign" | "require") => {
    const where = `${kept} ${proof}`;
    const version = await keptVersion(kept);
    return [
      session().party(version, name, where),
      { ...session().party(current, name, where), host: hostOf(proof) },
    ] as const;
  };

  test.each(["off", "sign"] as const)(
    "with %s, events, jobs and deliveries of the earlier version are processed",
    async (proof) => {
      const [earlier, own] = await parties("taken", proof);
      await sendAll(earlier);
      await drained(own);
      expect(await effects(own)).toEqual(done);
    },
  );

  const isSigned = !unsigned.includes(kept);
  test(`with require, events, jobs and deliveries of the earlier version are ${isSigned ? "done" : "refused"}`, async () => {
    const [earlier, own] = await parties("refused", "require");
    await sendAll(earlier);
    await drained(own);
    expect(await effects(own)).toEqual(isSigned ? done : undone);
  });

  test.each(["sign", "require"] as const)(
    "with %s, the earlier version processes the messages of this one",
    async (proof) => {
      const [earlier, own] = await parties("proven", proof);
      await sendAll(own);
      await drained(earlier);
      expect(await effects(own)).toEqual(done);
    },
  );
});
