import fc from "fast-check";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import type { Runtime } from "../../src/app/runtime/runtime.ts";
import type { SharedEvent } from "../../src/parts/messages/envelope.ts";
import { type Shelf, shelfServer, startShelf } from "../fixtures/shelf.ts";

let shelf: Shelf;
beforeAll(async () => {
  shelf = await startShelf();
});
afterAll(() => shelf.close());

let world = "";
beforeEach(() => {
  world = shelf.newWorld();
});

test("a rebuild that crashes at any call resumes, and counts each event once", async () => {
  const prepared = async () => {
    world = shelf.newWorld();
    const [one, two] = [shelfServer(world, 1), shelfServer(world, 2)];
    const { runtime } = shelf.start(one);
    await shelf.change(runtime, "a", 1);
    await shelf.change(runtime, "a", 2, "removed");
    await shelf.change(runtime, "b", 4);
    const [event] = await shelf.eventsOf(runtime, "a");
    if (event !== undefined) await shelf.consume(runtime, event);
    return two;
  };
  const whole = shelf.start(await prepared());
  await shelf.rebuildAt(whole.runtime);
  expect(whole.seen.calls).toBeGreaterThan(15);
  for (let call = 1; call <= whole.seen.calls; call += 1) {
    for (const moment of ["before", "after"] as const) {
      const two = await prepared();
      await expect(shelf.rebuildAt(shelf.start(two, { call, moment }).runtime)).rejects.toThrow();
      const { runtime } = shelf.start(two);
      await shelf.rebuildAt(runtime);
      shelf.app.clock.advance(5_000);
      expect(
        [await shelf.total(runtime, "a"), await shelf.total(runtime, "b")],
        `${moment} call ${call}`,
      ).toMatchObject([
        { key: expect.stringContaining("@2/"), total: -1, events: 2 },
        { total: 4, events: 1 },
      ]);
    }
  }
});

test("after any mix of publishing, consuming and crashes in a rebuild, both versions are the fold of all events", async () => {
  const event = fc.record({
    tenant: fc.constantFrom("a", "b"),
    n: fc.integer({ min: 1, max: 50 }),
    type: fc.constantFrom("added", "removed"),
  });
  const plan = fc.record({
    before: fc.array(fc.tuple(event, fc.boolean()), { maxLength: 5 }),
    during: fc.array(
      fc.record({ atCall: fc.integer({ min: 1, max: 45 }), event, isConsumed: fc.boolean() }),
      { maxLength: 6 },
    ),
    cuts: fc.array(
      fc.record({
        call: fc.integer({ min: 1, max: 45 }),
        moment: fc.constantFrom("before", "after"),
      }),
      {
        maxLength: 2,
      },
    ),
    repeated: fc.array(fc.nat(7), { maxLength: 4 }),
  });
  await fc.assert(
    fc.asyncProperty(plan, async ({ before, during, cuts, repeated }) => {
      world = shelf.newWorld();
      const [one, two] = [shelfServer(world, 1), shelfServer(world, 2)];
      const [old, live] = [shelf.start(one).runtime, shelf.start(two).runtime];
      const model = { a: { total: 0, events: 0 }, b: { total: 0, events: 0 } };
      const publish = async (
        runtime: Runtime,
        { tenant, n, type }: { tenant: string; n: number; type: string },
      ) => {
        await shelf.change(runtime, tenant, n, type as "added");
        const of = model[tenant as "a"];
        of.total += type === "added" ? n : -n;
        of.events += 1;
        shelf.app.clock.advance(1);
        return (await shelf.eventsOf(runtime, tenant)).at(-1) as SharedEvent;
      };
      /** What is still in the queue when the rebuild is done; the rest comes again only where it is repeated. */
      const queue: SharedEvent[] = [];
      const first = await publish(old, { tenant: "a", n: 7, type: "added" });
      await shelf.consume(old, first); // sets the active version
      for (const [given, isConsumed] of before) {
        const published = await publish(old, given);
        if (isConsumed) await shelf.consume(old, published);
        else queue.push(published);
      }
      const waiting = [...during];
      for (const cut of [...cuts, undefined]) {
        const { runtime, seen } = shelf.start(two, cut as never);
        // Calls for several tenants overlap. Without this chain, two events of a tenant would be published before the
        // last one is read twice, and the queue would never have the first.
        let publishing = Promise.resolve();
        seen.between = (call) => {
          publishing = publishing.then(async () => {
            for (const each of waiting.filter(({ atCall }) => atCall === call)) {
              waiting.splice(waiting.indexOf(each), 1);
              const published = await publish(live, each.event);
              if (each.isConsumed) await shelf.consume(live, published);
              else queue.push(published);
            }
          });
          return publishing;
        };
        const rebuilt = await shelf.rebuildAt(runtime).catch((error: unknown) => {
          if (cut === undefined) throw error;
        });
        if (rebuilt !== undefined) break; // another would find what this one has missed
      }
      shelf.app.clock.advance(400_000);
      for (const each of queue) await shelf.consume(live, each);
      for (const tenant of ["a", "b"]) {
        const all = await shelf.eventsOf(live, tenant);
        for (const each of repeated.flatMap((index) => all[index] ?? []))
          await shelf.consume(live, each);
      }
      shelf.app.clock.advance(5_000);
      for (const tenant of ["a", "b"] as const) {
        expect(await shelf.total(live, tenant)).toEqual({
          key: `${tenant}/page.usage-${world}@2/to~1tal`,
          ...model[tenant],
        });
      }
    }),
    { numRuns: 20 },
  );
});
