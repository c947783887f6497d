import { describe, expect, test } from "vitest";
import { callsOf, hooksWith, recordedCommits } from "../../../test/support/recorded-commits.ts";
import { noAnswer, type WriteAnswer } from "../../parts/once/answer.ts";
import type { WallCaller } from "../../parts/wall/wall.ts";

const put = { Put: { TableName: "t", Item: { pk: "a" } } };
const hookPut = { Put: { TableName: "t", Item: { pk: "hook" } } };
const ownItem = { Update: "end of the run" };
const answer: WriteAnswer = { status: 200, headers: {}, cookies: [], body: "done" };

describe("ctx.commit", () => {
  test("writes its items with the answer of its result, and gives back the result as it was", async () => {
    const { commits, done } = recordedCommits({
      work: { committing: (result) => ({ result, answer: { ...answer, body: String(result) } }) },
    });

    expect(await commits.commit("handler", [put], 7)).toBe(7);
    expect(done()).toEqual([["commit", [put], { ...answer, body: "7" }, []]]);
    expect(await commits.settle(7)).toBe(7);
    expect(done()).toHaveLength(1);
  });

  test("stores no answer where nobody waits for one", async () => {
    const { commits, done } = recordedCommits();
    await commits.commit("handler", [], undefined);
    expect(done()).toEqual([["commit", [], noAnswer, []]]);
  });

  test("adds the rows of effects, each with the item of its kept event, and the items of the run, in this order", async () => {
    const keep = async (_event: unknown, keptDays: number) => ({ Kept: keptDays });
    const { commits, did, publish, deliver } = recordedCommits({
      adapters: { keptEvents: { value: { keep } } },
      work: { own: () => [ownItem] },
    });
    await publish();
    await commits.start("handler", (effects) => effects.publish("note.kept", {}));
    await deliver();
    await commits.commit("handler", [put], undefined);

    const [written, kept, sent, ...more] = callsOf(did, "named").map(([id]) => ({ Put: id }));
    expect(more).toEqual([]);
    expect(callsOf(did, "commit")).toEqual([
      [[put], noAnswer, [written, kept, { Kept: 3 }, sent, ownItem]],
    ]);
    await commits.settle(undefined);
    expect(callsOf(did, "commit")).toHaveLength(1);
  });

  test("writes before it sends: events to the bus, deliveries and jobs to the queue, a line for each", async () => {
    const { commits, did, done, publish, deliver } = recordedCommits();
    await publish();
    await deliver();
    await commits.start("handler", (effects) =>
      effects.enqueue("notes.note.print", {}, { delaySeconds: 60 }),
    );
    await commits.start("handler", (effects) => effects.enqueue("notes.note.print", {}));
    await commits.commit("handler", [], undefined);

    const [event, delivery, later, job] = callsOf(did, "named").flat();
    expect(done().slice(1)).toEqual([
      ["log.info", "event.published", { event: "note.written", publishedId: event }],
      ["log.info", "delivery.enqueued", { channel: "wall", deliveryId: delivery }],
      [
        "log.info",
        "job.scheduled",
        { job: "notes.note.print", scheduledId: later, dueAt: "2023-11-14T22:14:20.000Z" },
      ],
      ["log.info", "job.enqueued", { job: "notes.note.print", enqueuedId: job }],
      ["dispatch", [expect.objectContaining({ eventId: event })]],
      [
        "sendCommitted",
        [expect.objectContaining({ eventId: delivery }), expect.objectContaining({ eventId: job })],
      ],
    ]);
  });

  test("asks neither the bus nor the queue when only a job waits for its time", async () => {
    const { commits, done } = recordedCommits();
    await commits.start("handler", (effects) =>
      effects.enqueue("notes.note.print", {}, { delaySeconds: 60 }),
    );
    await commits.commit("handler", [], undefined);
    expect(done().map(([what, message]) => [what, message])).toEqual([
      ["commit", []],
      ["log.info", "job.scheduled"],
    ]);
  });

  test("answers only after the bus has its events", async () => {
    let dispatched: () => void = () => undefined;
    const dispatching = Promise.withResolvers<void>();
    const { commits, done, publish } = recordedCommits({
      runs: {
        outbox: {
          row: (event: object) => ({ ...event, sort: "0" }),
          dispatch: () =>
            new Promise<void>((resolve) => {
              dispatched = resolve;
              dispatching.resolve();
            }),
        },
      },
    });
    await publish();
    const steps: string[] = [];
    const committed = commits
      .commit("handler", [], undefined)
      .then(() => void steps.push("answered"));
    await dispatching.promise;
    await new Promise(setImmediate);
    expect(done()[0]?.[0]).toBe("commit");
    steps.push("dispatched");
    dispatched();
    await committed;
    expect(steps).toEqual(["dispatched", "answered"]);
  });

  test("writes deliveries with the same key once, with the message of the first", async () => {
    const { commits, did, deliver } = recordedCommits();
    await deliver("other");
    await deliver("order-1", "first");
    await deliver("order-1", "second");
    await commits.commit("handler", [], undefined);

    const [other, first] = callsOf(did, "named").flat();
    expect(callsOf(did, "commit")).toEqual([[[], noAnswer, [{ Put: other }, { Put: first }]]]);
    const [rows] = callsOf(did, "sendCommitted").flat() as [{ eventId: string; text: string }[]]; // safe: rows are sent
    expect(rows.map(({ eventId }) => eventId)).toEqual([other, first]);
    expect(rows[1]?.text).toContain('{"text":"first"}');
  });

  test("lets the wall check its items for the tenant of the run, and writes what the wall returns", async () => {
    const asked: unknown[] = [];
    const { commits, did } = recordedCommits({
      adapters: {
        wall: {
          checkItems: (items: readonly unknown[], { assertActions, ...caller }: WallCaller) => {
            asked.push([items, { ...caller, log: undefined }]);
            expect(() => assertActions?.([put, undefined] as never)).toThrow(
              "item 1 is not one of",
            );
            return items.map(() => "checked");
          },
        },
      },
      work: { hooks: hooksWith(async () => [hookPut]) },
    });
    commits.open();
    await commits.commit("handler", [put], undefined);
    const caller = { tenantId: "acme", log: undefined, handler: "notes.note.do" };
    expect(asked).toEqual([
      [[put], caller],
      [[hookPut], caller],
    ]);
    expect(callsOf(did, "commit")).toEqual([[["checked", "checked"], noAnswer, []]]);
  });

  test("adds the items and effects of `commit` hooks, which see the converted result", async () => {
    const seen: unknown[] = [];
    const { commits, did, publish } = recordedCommits({
      work: {
        committing: () => ({ result: "converted", answer }),
        hooks: hooksWith(async (result) => {
          seen.push(result);
          await publish(2, "hook");
          await expect(publish(3)).rejects.toThrow("the run is committing");
          return [hookPut];
        }),
      },
    });
    commits.open();
    await commits.commit("handler", [put], "returned");
    const [id] = callsOf(did, "named").flat();
    expect(seen).toEqual(["converted"]);
    expect(callsOf(did, "commit")).toEqual([[[put, hookPut], answer, [{ Put: id }]]]);
  });

  test("throws the error of a hook's effect that the hook has not awaited, and writes nothing", async () => {
    const { commits, done } = recordedCommits({
      work: {
        hooks: hooksWith(async () => {
          commits.start("hook", async () => {
            throw new Error("forgotten");
          });
          return [];
        }),
      },
    });
    commits.open();
    await expect(commits.commit("handler", [], undefined)).rejects.toThrow("forgotten");
    expect(done()).toEqual([]);
  });
});
