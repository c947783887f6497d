import type { Runtime } from "../../../app/runtime/runtime.ts";
import {
  type DeadLetter,
  type DeadLetters,
  openDeadLetters,
} from "../../../aws/messaging/dead-letters.ts";
import { isOrdered, type MessageQueue } from "../../../parts/messages/message-queue.ts";
import { needsOf } from "../../infra/needs.ts";
import {
  actionOf,
  type CommandContext,
  defineCommand,
  flag,
  itsEnvironment,
  listed,
  moduleArgument,
  moduleOf,
  options,
  refuse,
  required,
  type ValuesOf,
} from "../setup/define-command.ts";
import { onItsServer } from "../setup/its-server.ts";
import { jsonFlag, printRows } from "../setup/print-rows.ts";
import { factsOf } from "./letter-facts.ts";

const flags = {
  all: flag("move-back and delete: all dead letters of the queue"),
  yes: flag("delete --all: does not ask; required without a terminal"),
  ...jsonFlag,
} as const;
type Values = ValuesOf<typeof flags>;

const actions = { list, show, "move-back": moveBack, delete: remove };

export const command = defineCommand({
  name: "queue",
  actions,
  usage: `Usage: keelson queue list <module> [<queue>] [--json]
       keelson queue show <module> <queue> <id>
       keelson queue move-back <module> <queue> <id> | --all
       keelson queue delete <module> <queue> <id> | --all [--yes]

Manages dead letters: messages that failed too often, or that can never be processed.

${moduleArgument}
${listed({
  "<queue>": "a queue of the server; keelson queue list shows its name",
  "<id>": "of a message, or of its event or job",
})}

Actions:
${listed({
  list: "prints each dead letter with its tenant, type, age and last error; without\na queue, those of all queues. SQS hides what it has shown from others for a moment,\nand shows only ten letters of a group of a FIFO queue",
  show: "prints one whole",
  "move-back": "sends one or all to the queue again, where they are handled as new messages",
  delete: "deletes one or all permanently",
})}

${options(flags)}

${itsEnvironment}
Exit codes: 0 done, 1 failed, or there is no such message, 2 wrong usage.`,
  flags,
  maxArguments: 4,
  run: async (values, [given, path, queue, id], context) => {
    const action = actionOf(actions, given);
    const module = moduleOf(path, `queue ${action}`);
    refuseMixture(action, values, queue, id);
    if (action === "delete" && values.all && !values.yes && !(await agreed(queue, context)))
      throw new Error("nothing was deleted");
    return await onItsServer(module, context, (runtime, there) =>
      actions[action]({ runtime, queue, id, values }, there),
    );
  },
});

function refuseMixture(
  action: keyof typeof actions,
  { all, yes, json }: Values,
  queue: string | undefined,
  id: string | undefined,
): void {
  if (json && action !== "list") refuse("--json is an option of list");
  if (yes && action !== "delete") refuse("--yes is an option of delete");
  if (all && (action === "list" || action === "show"))
    refuse("--all is an option of move-back and delete");
  if (action === "list") {
    if (id !== undefined) refuse(`unexpected argument ${JSON.stringify(id)}`);
    return;
  }
  required(queue, `no queue is given; use keelson queue ${action} <module> <queue>`);
  if (all && id !== undefined) refuse("an ID and --all are given; use one of the two");
  if (!all) required(id, `no message is given; use its ID${action === "show" ? "" : " or --all"}`);
}

async function agreed(queue: string | undefined, { ask }: CommandContext): Promise<boolean> {
  if (ask === undefined)
    refuse("delete --all cannot ask for confirmation without a terminal; use --yes");
  const answer = await ask(`Delete all dead letters of ${queue}? Type its name: `);
  return answer.trim() === queue;
}

interface Call {
  readonly runtime: Runtime;
  readonly queue: string | undefined;
  readonly id: string | undefined;
  readonly values: Values;
}

async function list({ runtime, queue, values }: Call, context: CommandContext): Promise<number> {
  const opened = await lettersOf(runtime, queue);
  const nowMs = context.clock.now();
  const rows: Record<string, unknown>[] = [];
  let waiting = 0;
  for (const { name, letters, holds } of opened) {
    waiting += await letters.count();
    await visit(letters, context, async (letter) => {
      rows.push({ queue: name, ...factsOf(letter, holds, nowMs), error: letter.reason });
      return "kept";
    });
  }
  const names = opened.map(({ name }) => name).join(", ");
  await printRows(rows, values, context, `no dead letter in ${names}`);
  if (waiting > rows.length)
    context.complain(
      `keelson: ${rows.length} of about ${waiting} are listed; SQS shows ten letters of a group of a FIFO queue, and hides what others are reading`,
    );
  return 0;
}

async function show(call: Call, context: CommandContext): Promise<number> {
  return await withOne(call, context, async (_letters, { body }) => {
    context.print(body);
    return "kept";
  });
}

async function moveBack(call: Call, context: CommandContext): Promise<number> {
  return await change(call, context, "moved back", (letters, letter) => letters.moveBack(letter));
}

async function remove(call: Call, context: CommandContext): Promise<number> {
  return await change(call, context, "deleted", (letters, letter) => letters.remove(letter));
}

type Act = (letters: DeadLetters, letter: DeadLetter) => Promise<void>;

async function change(call: Call, context: CommandContext, done: string, act: Act) {
  const { runtime, queue, values } = call;
  const changed = async (letters: DeadLetters, letter: DeadLetter): Promise<Visited> => {
    await act(letters, letter);
    return "gone";
  };
  if (!values.all) {
    const code = await withOne(call, context, changed);
    context.print(`${call.id}: ${done}`);
    return code;
  }
  const startedMs = context.clock.now();
  let count = 0;
  for (const { letters } of await lettersOf(runtime, queue))
    await visit(letters, context, async (letter) => {
      // A letter that has failed again in the meantime: moving it again would never end.
      if (letter.sentMs > startedMs) return "kept";
      count += 1;
      return await changed(letters, letter);
    });
  context.print(`${queue}: ${count} ${done}`);
  return 0;
}

/** Visits the letter with the ID of the call. @throws Error if no letter has it. */
async function withOne(
  { runtime, queue, id }: Call,
  context: CommandContext,
  act: (letters: DeadLetters, letter: DeadLetter) => Promise<Visited>,
): Promise<number> {
  let isFound = false;
  for (const { letters, holds } of await lettersOf(runtime, queue))
    await visit(letters, context, async (letter) => {
      if (letter.id !== id && factsOf(letter, holds, 0).of !== id) return "kept";
      isFound = true;
      return (await act(letters, letter)) === "gone" ? "last" : "last kept";
    });
  if (isFound) return 0;
  const unseen = isOrdered(String(queue))
    ? "; SQS shows ten letters of a group at a time, and none that others are reading"
    : "";
  throw new Error(`no dead letter of ${queue} has the ID ${JSON.stringify(id)}${unseen}`);
}

/** Whether the letter stays in its queue, and whether it was the last one to visit. */
type Visited = "kept" | "gone" | "last kept" | "last";

/**
 * Reads letters until one was the last, then makes those that stay visible again. A letter that
 * is redelivered during a long read is not visited again, and a batch of only such letters ends it.
 */
export async function visit(
  letters: Pick<DeadLetters, "read" | "release">,
  { progress, stopping }: Pick<CommandContext, "progress" | "stopping">,
  act: (letter: DeadLetter) => Promise<Visited>,
): Promise<void> {
  const kept = new Map<string, DeadLetter>();
  const visited = new Set<string>();
  const signal = stopping?.();
  try {
    for await (const batch of letters.read()) {
      for (const letter of batch) kept.set(letter.id, letter);
      const unknown = batch.filter(({ id }) => !visited.has(id));
      if (unknown.length === 0) return;
      for (const letter of unknown) {
        signal?.throwIfAborted();
        visited.add(letter.id);
        progress?.(`${visited.size} dead letters read`);
        const end = await act(letter);
        if (!end.endsWith("kept")) kept.delete(letter.id);
        if (end.startsWith("last")) return;
      }
    }
  } finally {
    progress?.("");
    // A letter that cannot be released becomes visible by itself.
    await Promise.allSettled([...kept.values()].map((letter) => letters.release(letter)));
  }
}

interface Opened extends Pick<MessageQueue, "name" | "holds"> {
  readonly letters: DeadLetters;
}

/**
 * Opens the dead letters of one queue of the server, or of all that it needs.
 *
 * @throws Error if none of them has a dead-letter queue.
 */
async function lettersOf(
  { adapters, server }: Runtime,
  queue: string | undefined,
): Promise<Opened[]> {
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
