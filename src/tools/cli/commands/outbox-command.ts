import { outboxTable, physicalTableName } from "../../../app/handlers/table.ts";
import {
  type AsideItem,
  type AsideStore,
  dynamoAsideStore,
} from "../../../aws/stores/aside-store.ts";
import {
  actionOf,
  defineCommand,
  help,
  listed,
  optionLines,
  text,
  textOr,
  UsageError,
} from "../setup/define-command.ts";
import { awsPlace, onItsStack, withDatabase } from "../setup/its-server.ts";

const actions = Object.freeze({
  list: async (_store: AsideStore, { asideAt, asideReason, type, eventId, sk }: AsideItem) =>
    JSON.stringify({ setAsideAt: asideAt, reason: asideReason, type, eventId, key: sk }),
  "put-back": async (store: AsideStore, item: AsideItem) => {
    await store.putBack(item);
    return `${shown(item)}: put back`;
  },
  remove: async (store: AsideStore, item: AsideItem) => {
    await store.remove(item);
    return `${shown(item)}: removed`;
  },
});

const flags = {
  event: text("<id>", "only this event"),
  prefix: textOr("keelson", "<text>", "the server's dynamodb.prefix"),
};

export const { usage, run } = defineCommand({
  usage: `Usage: keelson outbox <action> [options]

Manages events that were set aside because the bus will never take them as they are.

Actions:
${listed({
  list: "prints one JSON line per event: when, why, and the event",
  "put-back": "puts them back; the next sweep dispatches them, or sets them aside again",
  "remove --event <id>": "removes one for good",
})}

Options:
${optionLines({ ...flags, help })}

Region, credentials, endpoints and KEELSON_TABLE_OUTBOX come from the environment.`,
  flags,
  run: async ({ event, prefix }, [given], context) => {
    const name = actionOf(actions, given);
    if (name === "remove" && !event) throw new UsageError("--event is missing; use --event <id>");
    await onItsStack(context, undefined, ({ env, print, complain }) =>
      withDatabase(awsPlace(env, "DYNAMODB"), async (database) => {
        const tableName = physicalTableName(outboxTable.name, prefix, env);
        const store = dynamoAsideStore(database, tableName);
        let count = 0;
        for await (const item of store.list()) {
          if (event && event !== eventOf(item)) continue;
          count += 1;
          print(await actions[name](store, item));
        }
        if (count === 0 && event)
          throw new Error(`no event ${JSON.stringify(event)} is set aside in ${tableName}`);
        if (count === 0) complain(`keelson: no event is set aside in ${tableName}`);
      }),
    );
    return 0;
  },
});

/** Every item has the sort key `<time>#<event ID>#shard#<n>`, even if it is not an event. */
function eventOf({ eventId, sk }: AsideItem): unknown {
  return eventId ?? String(sk).split("#")[1];
}

function shown(item: AsideItem): string {
  return `${JSON.stringify(item["type"] ?? "unknown")} ${JSON.stringify(eventOf(item))}`;
}
