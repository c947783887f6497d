import { outboxTable, physicalTableName } from "../../../app/handlers/table.ts";
import { accountOf, endpointOf } from "../../../aws/adapters/adapters.ts";
import { openDatabase } from "../../../aws/clients/dynamodb.ts";
import type { AsideItem } from "../../../aws/stores/aside-item.ts";
import { type AsideStore, dynamoAsideStore } from "../../../aws/stores/aside-store.ts";
import type { CommandContext } from "../setup/command-context.ts";
import { actionOf, defineCommand, text, UsageError } from "../setup/define-command.ts";
import { onItsStack } from "../setup/embedded-stack.ts";

export const outboxUsage = `Usage: keelson outbox <action> [options]

Manages events that were set aside because the bus will never take them as they are.

Actions:
  list                        prints one JSON line per event: when, why, and the event
  put-back                    puts them back; the next sweep dispatches them, or sets them aside again
  remove --event <id>         removes one for good

Options:
  --event <id>                only this event
  --prefix <text>             the server's dynamodb.prefix (default: keelson)
  --help                      print this text

Region, credentials, endpoints and KEELSON_TABLE_OUTBOX come from the environment.`;

interface OutboxCall {
  readonly action: OutboxAction;
  readonly event: string | undefined;
  readonly prefix: string;
}

type OutboxAction = (store: AsideStore, item: AsideItem) => Promise<string>;

const actions = Object.freeze({
  list: async (_store, { asideAt, asideReason, type, eventId, sk }) =>
    JSON.stringify({ setAsideAt: asideAt, reason: asideReason, type, eventId, key: sk }),
  "put-back": async (store, item) => {
    await store.putBack(item);
    return `${shown(item)}: put back`;
  },
  remove: async (store, item) => {
    await store.remove(item);
    return `${shown(item)}: removed`;
  },
} satisfies Record<string, OutboxAction>);
// Safe: the keys of a constant.
const actionNames = Object.keys(actions) as (keyof typeof actions)[];

export const run = defineCommand({
  usage: outboxUsage,
  flags: { event: text, prefix: { type: "string", default: "keelson" } },
  run: async ({ event, prefix }, [given], context) => {
    const name = actionOf(actionNames, given);
    if (name === "remove" && !event) throw new UsageError("--event is missing; use --event <id>");
    const call = { action: actions[name], event: event || undefined, prefix };
    return onItsStack(context, undefined, (there) => act(call, there));
  },
});

async function act(call: OutboxCall, { env, print, complain }: CommandContext): Promise<number> {
  const database = await openDatabase({ endpoint: endpointOf(env, "DYNAMODB"), ...accountOf(env) });
  try {
    const tableName = physicalTableName(outboxTable.name, call.prefix, env);
    const count = await actOn(dynamoAsideStore(database, tableName), call, print);
    if (count === 0 && call.event !== undefined)
      throw new Error(`no event ${JSON.stringify(call.event)} is set aside in ${tableName}`);
    if (count === 0) complain(`keelson: no event is set aside in ${tableName}`);
    return 0;
  } finally {
    database.destroy();
  }
}

async function actOn(
  store: AsideStore,
  { action, event }: OutboxCall,
  print: (line: string) => void,
): Promise<number> {
  let count = 0;
  for await (const item of store.list()) {
    if (event !== undefined && event !== eventOf(item)) continue;
    count += 1;
    print(await action(store, item));
  }
  return count;
}

/** The key is `<time>#<event ID>#shard#<n>`, also for an item that is not an event. */
function eventOf({ eventId, sk }: AsideItem): unknown {
  return eventId ?? String(sk).split("#")[1];
}

function shown(item: AsideItem): string {
  return `${JSON.stringify(item["type"] ?? "unknown")} ${JSON.stringify(eventOf(item))}`;
}
