import { expect, test } from "vitest";
import type { MessageQueue, QueueMessage } from "../../parts/messages/message-queue.ts";
import type { Adapters } from "../runtime/adapters.ts";
import type { Runtime } from "../runtime/runtime.ts";
import type { EventOutcome } from "./event-outcome.ts";
import { endMessage } from "./message-end.ts";

const message: QueueMessage = {
  ...{ id: "m1", body: '{"eventId":"e1"}', receipt: "r", group: "acme" },
  ...{ receives: 5, sentMs: 1_700_000_000_000 },
};
const failed = { kind: "failed", error: new Error("no paper") } as const;
const waits = { kind: "handed-back", afterMs: 0, mustWait: true } as const;
const outcome: EventOutcome = {
  ...failed,
  consumed: [
    { name: "shop.failed", outcome: failed, hasReusableKey: false },
    { name: "shop.waits", outcome: waits, hasReusableKey: false },
  ],
};

/** Ends an event, and returns the calls of its queue. */
async function ended(maxReceives: () => Promise<number | undefined>, of = outcome) {
  const calls: string[] = [];
  const lines: string[] = [];
  const log = (line: string) => void lines.push(line);
  const queue: Partial<MessageQueue> = {
    name: "work",
    isOrdered: false,
    maxReceives,
    sendLater: async (body) => void calls.push(`send ${body.includes("shop.failed")}`),
    changeVisibility: async () => void calls.push("hand back"),
    deadLetter: async (_message, reason) => calls.push(`dead-letter: ${reason}`) > 0,
  };
  const processed = await endMessage(
    // Safe casts: only the members that ending reads.
    {
      clock: { now: () => 1_700_000_000_000 },
      log: { warn: log, error: log },
      server: { registry: { jobs: new Map() } },
    } as unknown as Runtime,
    {} as unknown as Adapters,
    { queue: queue as MessageQueue, message, read: {} },
    of,
    { kind: "event", receives: message.receives, ids: {} },
  );
  return { kind: processed.kind, calls, lines };
}

test("a consumer that has failed lets another one wait once it has no attempts left", async () => {
  expect(await ended(async () => 5)).toEqual({ kind: "done", calls: ["send true"], lines: [] });
});

test.each([6, undefined])(
  "it is retried in a queue that allows %s receives, since it has attempts left",
  async (most) => {
    const retried = { kind: "later", calls: ["hand back"], lines: ["queue.retry"] };
    expect(await ended(async () => most)).toEqual(retried);
  },
);

test("it is retried if the queue does not tell how many receives it allows", async () => {
  expect(await ended(() => Promise.reject(new Error("denied")))).toEqual({
    ...{ kind: "later", calls: ["hand back"] },
    lines: ["queue.dead_letter_failed", "queue.retry"],
  });
});

test("a dead letter has the error of the consumer that failed first, while another one waited", async () => {
  const of = { kind: "failed", error: new Error("not yet"), reason: "no paper" } as const;
  const calls = ["dead-letter: no paper"];
  const lines = ["queue.dead_lettered"];
  expect(await ended(async () => 5, of)).toEqual({ kind: "dead-lettered", calls, lines });
});
