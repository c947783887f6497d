// The calls and listeners of concurrent duplicates in one process, by their number.
import { getEventListeners } from "node:events";
import { expect, test } from "vitest";
import { createServerLogger } from "../../src/base/log/server-logger.ts";
import { systemClock } from "../../src/base/process/clock.ts";
import { claimKey } from "../../src/parts/once/claim.ts";
import type { ClaimStore } from "../../src/parts/once/claim-store.ts";
import { createOnce } from "../../src/parts/once/once.ts";

const log = createServerLogger({ env: {}, environment: "test", write: () => {} });
const answer = { status: 200, headers: {}, cookies: [], body: "{}" };

test.each([100, 5_000])(
  "%i concurrent duplicates of a write share two calls and one listener",
  async (count) => {
    const calls: string[] = [];
    const store: Pick<ClaimStore, "take" | "complete"> = {
      take: async () => void calls.push("take"),
      complete: async () => calls.push("complete") > 0,
    };
    const draining = new AbortController();
    const once = createOnce({
      store: store as ClaimStore, // safe: a run without failures calls nothing else
      clock: systemClock,
      ...{ waitMs: 60_000, draining: draining.signal },
    });
    const end = Promise.withResolvers<typeof answer>();
    const run = () =>
      once.run({
        claim: {
          ...{ kind: "write", key: claimKey(["growth"], "r-1"), replayedHeaders: [] },
          deadlineMs: undefined,
        },
        ...{ logPrefix: "once", log, signal: undefined },
        work: () => end.promise,
        answerOf: (result) => result,
      });
    const all = Promise.all(Array.from({ length: count }, run));
    await new Promise((done) => setImmediate(done));
    expect(getEventListeners(draining.signal, "abort")).toHaveLength(1);
    end.resolve(answer);
    const kinds = (await all).map(({ kind }) => kind);

    expect(kinds.filter((kind) => kind === "done")).toHaveLength(1);
    expect(kinds.filter((kind) => kind === "replayed")).toHaveLength(count - 1);
    expect(calls).toEqual(["take", "complete"]);
  },
);
