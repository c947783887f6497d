import { describe, expect, test } from "vitest";
import { type Counted, countedName, startCounted } from "../../../test/fixtures/counted.ts";
import type { CommitItem } from "../../base/types/database.ts";
import type { SharedEvent } from "../../parts/messages/envelope.ts";
import { consumeEvent } from "./process-message.ts";

const event: SharedEvent = {
  ...{ kind: "shared", type: "counted.added", eventId: "e-1", payload: { n: 1 } },
  ...{ causedBy: "c-1", origRequestId: "o-1", tenantId: "acme" },
};
const row = (version: number): CommitItem => ({
  Put: { TableName: "sums", Item: { pk: `of ${version}` } },
});
const consume = ({ runtime, adapters }: Counted, given = event) =>
  consumeEvent(runtime, adapters, given);

/** A projection that is declared with version 2 and writes a row of each version. */
function start(activeVersion?: number): Counted {
  const shelf = startCounted((_ctx, _event, { version }) => [row(version)]);
  if (activeVersion !== undefined)
    shelf.active.set("all", { version: activeVersion, revision: "r" });
  return shelf;
}

const notes = ({ lines }: Counted) =>
  lines.filter(({ msg }) => String(msg).startsWith("projection."));

describe("an event of a projection", () => {
  test("is counted in the declared version, which it makes the active one", async () => {
    const shelf = start();
    expect(await consume(shelf)).toEqual({ kind: "processed" });
    expect(shelf.counted).toEqual(["2 acme e-1"]);
    expect([...shelf.active.values()]).toEqual([expect.objectContaining({ version: 2 })]);
    expect(notes(shelf)).toEqual([]);
  });

  test("is counted in the commit of its consumer if the declared version is active", async () => {
    const shelf = start(2);
    expect(await consume(shelf)).toEqual({ kind: "processed" });
    expect(shelf.counted).toEqual(["2 acme e-1"]);
    expect(shelf.calls).toEqual(["take", "commit"]);
  });

  test("is counted in the active and the declared version, in separate commits", async () => {
    const shelf = start(1);
    expect(await consume(shelf)).toEqual({ kind: "processed" });
    expect(shelf.counted).toEqual(["1 acme e-1", "2 acme e-1"]);
    const [first = [], second = [], ...more] = shelf.world.transactions;
    expect([first[1], second[1], more]).toEqual([row(1), row(2), []]);
  });

  test.each([
    ["the active", "1 acme e-1"],
    ["the declared", "2 acme e-1"],
  ])("that %s version has counted before is counted in the other alone", async (_, mark) => {
    const shelf = start(1);
    shelf.counted.push(mark);
    expect(await consume(shelf)).toEqual({ kind: "processed" });
    expect(shelf.counted.toSorted()).toEqual(["1 acme e-1", "2 acme e-1"]);
    expect(notes(shelf)).toEqual([]);
  });

  test.each([[1], [2]])(
    "that is counted in each version is only noted, if version %i is active",
    async (active) => {
      const shelf = start(active);
      const before = ["1 acme e-1", "2 acme e-1"];
      shelf.counted.push(...before);
      expect(await consume(shelf)).toEqual({ kind: "processed" });
      expect([shelf.counted, shelf.world.transactions]).toEqual([before, []]);
      expect(notes(shelf)).toEqual([
        expect.objectContaining({
          ...{ level: "debug", msg: "projection.counted_before", projection: countedName },
        }),
      ]);
    },
  );

  test("is counted in the version that is active by then if the clock was set back", async () => {
    const shelf = start(1);
    shelf.world.nowMs += 3_600_000;
    await consume(shelf);
    shelf.world.nowMs -= 3_600_000;
    shelf.active.set("all", { version: 2, revision: "s" });
    await consume(shelf, { ...event, eventId: "e-2" });
    expect(shelf.counted).toEqual(["1 acme e-1", "2 acme e-1", "2 acme e-2"]);
  });

  test("fails with the index that the item has in the projection's list if its condition fails", async () => {
    const given: CommitItem[] = [row(2)];
    const shelf = startCounted(() => given);
    await consume(shelf);
    const [mark] = shelf.marks.keys();
    // The condition of this item fails: its mark exists.
    given.push({ Put: mark } as CommitItem); // safe: the key of `marks` is the action of a mark
    const done = await consume(shelf, { ...event, eventId: "e-2" });
    expect(done).toMatchObject({ kind: "failed", error: { code: "condition_failed", index: 1 } });
    expect(shelf.counted).toEqual(["2 acme e-1"]);
  });

  // Safe cast: code without types may give it.
  const malformed = {} as CommitItem;
  const large: CommitItem = { Put: { TableName: "sums", Item: { pk: "x".repeat(500_000) } } };
  test.each([
    ["the item", "malformed", [row(2), malformed], "item 1 is not one of Put"],
    ["the item", "too large", [row(2), large], "item 1 has some 500"],
    ["the list", "too long", Array.from({ length: 99 }, () => row(2)), "100 items and 1 of"],
  ])("fails with the number that %s has for the projection if it is %s", async (...given) => {
    const [, , items, message] = given;
    const shelf = startCounted(() => items);
    expect(await consume(shelf)).toMatchObject({
      error: { message: expect.stringContaining(message) },
    });
    expect(shelf.counted).toEqual([]);
  });

  test("fails, and is counted in no version, if that of its active version fails", async () => {
    const failure = new Error("the projection does not like it");
    const shelf = startCounted((_ctx, _event, { version }) => {
      if (version === 1) throw failure;
      return [];
    });
    shelf.active.set("all", { version: 1, revision: "r" });
    expect(await consume(shelf)).toEqual({ kind: "failed", error: failure });
    expect(shelf.counted).toEqual([]);
  });
});
