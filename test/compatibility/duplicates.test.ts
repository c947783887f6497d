// The same work in processes of an earlier version and of this one, at the same time.
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { idempotent } from "./claim-layer-lines.ts";
import type { HostRequest } from "./host.ts";
import { type Party, patience } from "./line.ts";
import { newItems } from "./store.ts";
import { useSession } from "./use-session.ts";
import { currentVersion, versionPairs } from "./version.ts";

const current = await currentVersion();
const session = useSession(current);
/** Calls of AWS so far: one of the duplicates runs, so these are the calls of the one that waits. */
let calls = 0;
const count = () => {
  calls += 1;
};
beforeAll(() => subscribe("http.client.request.start", count));
afterAll(() => void unsubscribe("http.client.request.start", count));

const write = ({ ann }: Party, body: object = {}): HostRequest => ({
  as: ann,
  body,
  headers: { "idempotency-key": "duplicates" },
});

describe.each(await versionPairs(current))("%s:", (pair, first, second) => {
  const meet = (name: string) =>
    [session().party(first, name, pair), session().party(second, name, pair)] as const;

  /** Begins a write of the first's, and stays in its handler. */
  const begin = async ({ host, world, name, ann }: Party, request: HostRequest) => {
    world.hold(name);
    const answer = host.send(`/commits/${name}`, { ...request, as: ann });
    await expect.poll(() => world.runs, patience).toContain(`${host.version} commit ${name}`);
    return { answer }; // as it is: it is waited for later
  };

  test("a duplicate of a write in flight waits, and gets its answer", async () => {
    const [one, duplicate] = meet("duplicates");
    const { answer } = await begin(one, write(one));
    const other = await duplicate.host.send(`/commits/${one.name}`, write(one, { other: "input" }));
    calls = 0;
    const repeat = duplicate.host.send(`/commits/${one.name}`, write(one));
    await expect.poll(() => calls, patience).toBeGreaterThan(2);
    one.world.release(one.name);
    expect(await repeat).toMatchObject({
      status: 200,
      body: (await answer).body,
      headers: { "idempotent-replayed": "true" },
    });
    expect(other.status).toBe(422);
    expect(one.world.runs).not.toContain(`${second.name} commit ${one.name}`);
    expect(await one.store.effect(one.ann.tenantId, "commit", one.name)).toBe(1);
  });

  test("a run that lost its lease commits nothing, and answers with its duplicate's commit", async () => {
    const [late, duplicate] = meet("late");
    const known = await late.store.items("small");
    const { answer } = await begin(late, write(late));
    await late.store.age(newItems(known, await late.store.items("small")), 40_000);
    const { version } = duplicate;
    const repeat = duplicate.host.send(`/commits/${late.name}`, write(late));
    await expect
      .poll(() => late.world.runs, patience)
      .toContain(`${version.name} commit ${late.name}`);
    late.world.release(late.name);
    const [before, after] = [await answer, await repeat];
    expect(after.headers["idempotent-replayed"]).toBeUndefined();
    expect(before).toMatchObject({
      status: 200,
      body: after.body,
      headers: { "idempotent-replayed": "true" },
    });
    expect(JSON.parse(after.body)).toMatchObject({ by: version.name });
    expect(await late.store.effect(late.ann.tenantId, "commit", late.name)).toBe(1);
  });

  test("an event in progress elsewhere is handed back, and skipped once it is done", async () => {
    const [one, other] = meet("events");
    const { store, world, name, ann } = one;
    await one.host.send(`/things/${name}`, { as: ann, body: {} });
    const [message] = await store.receive("events");
    if (message === undefined) throw new Error("there is no message");
    await message.remove();
    world.hold(name);
    await store.send(message.kept);
    const work = one.host.drain();
    await expect.poll(() => world.runs, patience).toContain(`${first.name} follow ${name}`);
    await store.send(message.kept);
    expect(await other.host.drain()).toBe(0);
    world.release(name);
    await work;
    await store.send(message.kept);
    expect(await other.host.drain()).toBeGreaterThan(0);
    expect(world.runs).not.toContain(`${second.name} count ${name}`);
    expect(await store.effect(ann.tenantId, "counted", name)).toBe(1);
  });

  test("a duplicate of a function in flight waits, and gets its result", async () => {
    const [one, duplicate] = meet("functions");
    const gate = Promise.withResolvers<string>();
    const began = Promise.withResolvers<void>();
    const call = { waitMs: 10_000 };
    const result = idempotent(one, call, () => {
      began.resolve();
      return gate.promise;
    })({ id: one.name, amount: 1 });
    await began.promise;
    calls = 0;
    const repeat = idempotent(duplicate, call, () => "ran again")({ id: one.name, amount: 1 });
    await expect.poll(() => calls, patience).toBeGreaterThan(2);
    gate.resolve("done");
    expect(await Promise.all([result, repeat])).toEqual(["done", "done"]);
  });
});
