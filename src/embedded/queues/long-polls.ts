import { request } from "node:http";

export type LongPolls = ReturnType<typeof createLongPolls>;

export function createLongPolls() {
  const waiting = new Map<string, Set<(hasEnded: boolean) => void>>();
  const tell = (queue: string, hasEnded: boolean) => {
    for (const resolve of waiting.get(queue) ?? []) resolve(hasEnded);
  };
  return {
    /** Waits at most `ms` for a change. Resolves to `true` if the poll must end. */
    async wait(queue: string, ms: number, signal: AbortSignal) {
      if (signal.aborted) return true;
      const { promise, resolve } = Promise.withResolvers<boolean>();
      const look = () => resolve(false);
      const waiters = waiting.get(queue) ?? new Set();
      waiting.set(queue, waiters.add(resolve));
      const timer = setTimeout(look, ms);
      signal.addEventListener("abort", look);
      const hasEnded = await promise;
      signal.removeEventListener("abort", look);
      clearTimeout(timer);
      waiters.delete(resolve);
      if (waiters.size === 0) waiting.delete(queue);
      return hasEnded;
    },
    wake: (queue: string) => tell(queue, false),
    end: (queue: string) => tell(queue, true),
  };
}

export const endPollsOperation = "KeelsonEndPolls";

/** A stopping process has to receive no further message. Never fails. */
export async function endPolls(queueUrl: string) {
  const headers = {
    "x-amz-target": `AmazonSQS.${endPollsOperation}`,
    "content-type": "application/x-amz-json-1.0",
  };
  await new Promise<void>((resolve) => {
    // The first `fetch` would take 20 ms to load.
    const asking = request(new URL("/", queueUrl), { method: "POST", headers }, (response) => {
      response.resume().once("close", resolve);
    });
    asking.once("error", () => resolve());
    asking.end(JSON.stringify({ QueueUrl: queueUrl }));
  });
}
