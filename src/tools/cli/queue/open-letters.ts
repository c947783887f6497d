import type { Runtime } from "../../../app/runtime/runtime.ts";
import { type DeadLetters, openDeadLetters } from "../../../aws/messaging/dead-letters.ts";
import type { MessageQueue } from "../../../parts/messages/message-queue.ts";
import { needsOf } from "../../infra/needs.ts";
import { refuse } from "../setup/define-command.ts";

export interface OpenLetters extends Pick<MessageQueue, "name" | "holds"> {
  readonly letters: DeadLetters;
}

/**
 * Opens the dead letters of one queue of the server, or of all that it needs.
 *
 * @throws Error if none of them has a dead-letter queue.
 */
export async function openLetters(
  { adapters, server }: Runtime,
  queue: string | undefined,
): Promise<OpenLetters[]> {
  const messaging = await (await adapters.open()).messaging.open();
  const { events, others, jobs, fairJobs, fairMode, sqs } = messaging;
  const needs = needsOf(server);
  const needed = [
    ...(needs.events === undefined ? [] : [events]),
    ...(needs.jobs === undefined ? [] : [jobs, fairJobs]),
    ...(needs.received === undefined ? [] : [others]),
  ];
  // A queue that it does not need may still hold letters of an earlier version.
  const all = queue === undefined ? needed : [events, jobs, fairJobs, ...needed];
  const queues = [...new Map(all.map((one) => [one.name, one])).values()];
  const wanted = queues.filter(({ name }) => queue === undefined || name === queue);
  if (wanted.length === 0) {
    const names = queues.map(({ name }) => name).join(", ");
    refuse(
      queue
        ? `the server has no queue ${JSON.stringify(queue)}; it has ${names}`
        : "the server has no queue",
    );
  }
  const opened = await Promise.all(
    // Without fair queues a server may have no queue for fair jobs, or one from before a rollback.
    wanted.map(async (one) => {
      const { name, holds } = one;
      const opening = openDeadLetters(sqs, one);
      const mayMiss = one === fairJobs && fairMode === "off";
      const letters = await (mayMiss ? opening.catch(() => undefined) : opening);
      return letters === undefined ? [] : [{ name, holds, letters }];
    }),
  );
  const found = opened.flat();
  if (found.length > 0) return found;
  const names = wanted.map(({ name }) => name).join(", ");
  throw new Error(`${names}: there is no dead-letter queue; run keelson doctor`);
}
