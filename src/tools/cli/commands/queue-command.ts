import type { Runtime } from "../../../app/runtime/runtime.ts";
import type { DeadLetter, DeadLetters } from "../../../aws/messaging/dead-letters.ts";
import { factsOf } from "../queue/letter-facts.ts";
import { type OpenLetters, openLetters } from "../queue/open-letters.ts";
import { type Visited, visit } from "../queue/visit-letters.ts";
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
  list: "prints each dead letter with its tenant, type, age and last error; without\na queue, those of all queues. SQS hides what it has shown from others for up to a\nminute, and shows only ten letters of a group of a FIFO queue",
  show: "prints one whole",
  "move-back": "sends one or all to the queue again, where they are handled as new messages",
  delete: "deletes one or all permanently. With --all, both leave letters that come meanwhile",
})}

${options(flags)}

${itsEnvironment}
Exit codes: 0 done; 1 failed, there is no such message, newer ones are left, or all are hidden; 2 wrong usage.`,
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
  const opened = await openLetters(runtime, queue);
  const nowMs = context.clock.now();
  const rows: Record<string, unknown>[] = [];
  let there = 0;
  for (const { name, letters, holds } of opened) {
    const counted = await letters.count();
    const seen = await visit(letters, context, async (letter) => {
      rows.push({ queue: name, ...factsOf(letter, holds, nowMs), error: letter.reason });
      return "kept";
    });
    there += Math.max(counted, seen);
  }
  const unseen = unseenText(rows.length, there, "are listed");
  if (rows.length === 0 && unseen !== undefined) {
    context.complain(`keelson: ${unseen}`);
    return 1;
  }
  const names = opened.map(({ name }) => name).join(", ");
  await printRows(rows, values, context, `no dead letter in ${names}`);
  if (unseen !== undefined) context.complain(`keelson: ${unseen}`);
  return 0;
}

/** Returns `undefined` if all letters were seen. */
function unseenText(seen: number, there: number, what = "were seen"): string | undefined {
  if (seen >= there) return undefined;
  return `${seen} of about ${there} ${what}; SQS shows ten letters of a group of a FIFO queue, and hides a letter for up to a minute once it is read`;
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
  let [there, seen, count, newer] = [0, 0, 0, 0];
  const visitAll = async ({ letters }: Pick<OpenLetters, "letters">) => {
    there += await letters.count();
    seen += await visit(letters, context, async (letter) => {
      // A letter that has failed again in the meantime: moving it again would never end. If the clock is ahead of
      // SQS's, only the count ends it.
      if (letter.sentMs > startedMs || count >= there) {
        newer += 1;
        return "kept";
      }
      const visited = await changed(letters, letter);
      count += 1;
      return visited;
    });
  };
  for (const opened of await openLetters(runtime, queue))
    await visitAll(opened).catch((error: unknown) => {
      context.print(`${queue}: ${count} ${done} before the command stopped`);
      throw error;
    });
  const unseen = unseenText(seen, there);
  context.print(`${queue}: ${count} ${done}${newer > 0 ? `, ${newer} left` : ""}`);
  if (newer > 0)
    context.complain(
      `keelson: ${newer} left: they came after ${new Date(startedMs).toISOString()}, or SQS had not counted them yet, which takes it up to a minute; list them and run the command again. If older ones are left each time, set this machine's clock`,
    );
  if (unseen !== undefined) context.complain(`keelson: ${unseen}`);
  return newer > 0 || (seen === 0 && unseen !== undefined) ? 1 : 0;
}

/** Visits the letter with the ID of the call. @throws Error if no letter has it. */
async function withOne(
  { runtime, queue, id }: Call,
  context: CommandContext,
  act: (letters: DeadLetters, letter: DeadLetter) => Promise<Visited>,
): Promise<number> {
  let [isFound, there, seen] = [false, 0, 0];
  for (const { letters, holds } of await openLetters(runtime, queue)) {
    there += await letters.count();
    seen += await visit(letters, context, async (letter) => {
      if (letter.id !== id && factsOf(letter, holds, 0).of !== id) return "kept";
      isFound = true;
      return (await act(letters, letter)) === "gone" ? "last" : "last kept";
    });
  }
  if (isFound) return 0;
  const unseen = unseenText(seen, there);
  const says = `no dead letter of ${queue} has the ID ${JSON.stringify(id)}`;
  throw new Error(unseen === undefined ? says : `${says}; ${unseen}`);
}
