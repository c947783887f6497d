import { afterEach, expect, test, vi } from "vitest";
import { systemClock } from "../process/clock.ts";
import type { ClaimStore } from "./claim-store.ts";
import { loadedClaims, openedOnce } from "./opened-once.ts";

afterEach(() => {
  vi.doUnmock("./claims.ts");
  vi.doUnmock("./once.ts");
});

test("what cannot be loaded is loaded again with the next call", async () => {
  const store = { take: async () => undefined } as unknown as ClaimStore; // safe: nothing else is called
  const claims = loadedClaims({ store, clock: systemClock });
  const take = () => claims.take({ partition: "p", sort: "s" }, { waitMs: 0, stop: [] });
  vi.doMock("./claims.ts", () => {
    throw new Error("too many open files");
  });
  await expect(take()).rejects.toThrow();
  vi.doUnmock("./claims.ts");

  const taken = await take();
  expect(taken.kind).toBe("taken");
  if (taken.kind === "taken") taken.claim.abandon();
});

test("what does writes is made once", async () => {
  const made = vi.fn(() => ({ pause: async () => {}, run: async () => ({}) }));
  vi.doMock("./once.ts", () => ({ createOnce: made }));
  const options = { store: {} as ClaimStore, clock: systemClock, waitMs: 0, draining: new AbortController().signal }; // safe: never asked
  const once = openedOnce(options);
  await Promise.all([once.pause(1), once.pause(2)]);
  await once.pause(1);

  expect(made).toHaveBeenCalledExactlyOnceWith(options);
});
