// Versions on one stack, and the data that they leave there.
import { createHash } from "node:crypto";
import type { expect } from "vitest";
import type { Variant } from "./features.ts";
import { startHost } from "./host.ts";
import type { CheckingParty, Line, Party } from "./line.ts";
import { type Items, type KeptMessage, newItems, openStore, type Store, shifted } from "./store.ts";
import type { Version } from "./version.ts";
import { createWorld, type World } from "./world.ts";

/** Data that a line has left. */
export interface Left {
  /** Result of its `leave`. */
  readonly value: unknown;
  readonly items: Items;
  readonly messages: readonly KeptMessage[];
  /** In milliseconds since the epoch. */
  readonly leftMs: number;
}

/** A stack on which versions meet. */
export interface Session {
  readonly store: Store;
  readonly world: World;
  /** A version's part in a line, on behalf of a tenant that no other line has; `where` distinguishes uses of the same line. */
  party(version: Version, line: string, where: string): Party;
  /** Runs a line's first half, and returns the new rows and messages; takes the messages out of the queues. */
  record(line: Line, party: Party): Promise<Left>;
  /** Restores the left data, with the age that the line needs. */
  restore(line: Line, left: Left): Promise<void>;
  close(): void;
}

/** The servers of the tests, unless they say otherwise. */
export const usual: Variant = { keyRing: "rotated", waitMs: 10_000 };

/** Starts a session on the stack that `env` points at, for all versions of this process. */
export function beginSession(env: Readonly<Record<string, string>>): Session {
  const before = Object.keys(env).map((name) => [name, process.env[name]] as const);
  Object.assign(process.env, env);
  const store = openStore(String(env["AWS_ENDPOINT_URL"]));
  const world = createWorld();
  const hosts = new Map<string, Pick<Party, "host" | "earlier" | "hasty">>();

  const hostsOf = (version: Version) => {
    const known = hosts.get(version.name);
    if (known !== undefined) return known;
    const made = {
      host: startHost(version, world, store, usual),
      earlier: startHost(version, world, store, { ...usual, keyRing: "earlier" }),
      hasty: startHost(version, world, store, { ...usual, waitMs: 300 }),
    };
    hosts.set(version.name, made);
    return made;
  };

  return {
    store,
    world,
    party: (version, line, where) => {
      const name = nameOf(line, where);
      return {
        version,
        ...hostsOf(version),
        binding: () => startHost(version, world, store, { ...usual, bindVersion: true }),
        store,
        world,
        name,
        ann: { sub: "ann", tenantId: `tenant #${name}`, roles: [] },
        operator: { sub: "operator", tenantId: `tenant #${name}`, roles: ["admin", "systemAdmin"] },
        withoutBus: async (work) => {
          process.env["AWS_ENDPOINT_URL_EVENTBRIDGE"] = "http://127.0.0.1:1";
          try {
            return await work(startHost(version, world, store, usual));
          } finally {
            delete process.env["AWS_ENDPOINT_URL_EVENTBRIDGE"];
          }
        },
      };
    },
    record: async (line, party) => {
      const known = await store.items();
      const value = await line.leave(party);
      const leftMs = Date.now();
      const items = newItems(known, await store.items());
      return { value, items, messages: await takeAll(store), leftMs };
    },
    restore: async ({ ageMs = 0 }, { items, messages, leftMs }) => {
      await store.put(shifted(items, Date.now() - leftMs - ageMs));
      for (const message of messages) await store.send(message);
    },
    close: () => {
      store.close();
      for (const [name, value] of before) {
        if (value === undefined) delete process.env[name];
        else process.env[name] = value;
      }
    },
  };
}

/** A party that checks. */
export function checking(party: Party, check: typeof expect): CheckingParty {
  return { ...party, expect: check };
}

/** Runs a line in one version, and continues it in another immediately. */
export async function meetLive(
  line: Line,
  session: Session,
  by: readonly [Party, CheckingParty],
): Promise<void> {
  const [first, second] = by;
  const { ageMs } = line;
  const known = ageMs === undefined ? {} : await session.store.items("small");
  const left: unknown = await line.leave(first);
  if (ageMs !== undefined)
    await session.store.age(newItems(known, await session.store.items("small")), ageMs);
  await line.meet(second, left);
}

/** A name that an ID may contain. Kept data was recorded under it, so it must not change. */
function nameOf(line: string, where: string): string {
  const slug = line
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, "-")
    .slice(0, 60);
  return `${slug}-${createHash("sha256").update(`${line} ${where}`).digest("hex").slice(0, 12)}`;
}

async function takeAll(store: Store): Promise<readonly KeptMessage[]> {
  const taken: KeptMessage[] = [];
  while ((await store.waiting()) > 0) {
    for (const queue of ["events", "jobs"] as const) {
      for (const message of await store.receive(queue)) {
        taken.push(message.kept);
        await message.remove();
      }
    }
    await new Promise((resolve) => setTimeout(resolve, 50)); // what failed a moment ago is hidden
  }
  return taken;
}
