import { outboxTable, physicalTableName } from "../../../app/handlers/table.ts";
import {
  type AsideItem,
  type AsideStore,
  dynamoAsideStore,
} from "../../../aws/stores/aside-store.ts";
import {
  actionOf,
  defineCommand,
  listed,
  options,
  refuse,
  text,
  textOr,
} from "../setup/define-command.ts";
import { awsPlace, onItsStack, withDatabase } from "../setup/its-server.ts";

const actions = { list: "", "put-back": "put back", remove: "removed" };

const flags = {
  event: text("<id>", "only this event"),
  prefix: textOr("keelson", "<text>", "the server's dynamodb.prefix"),
};

export const command = defineCommand({
  name: "outbox",
  actions,
  usage: `Usage: keelson outbox <action> [options]

Manages events that were set aside because the bus permanently refuses them.

Actions:
${listed({
  list: "prints one JSON line per event: the time, the reason, and the event",
  "put-back": "puts them back; the next sweep dispatches them, or sets them aside again",
  "remove --event <id>": "removes one permanently",
})}

${options(flags)}

Region, credentials, endpoints and KEELSON_TABLE_OUTBOX come from the environment.`,
  flags,
  run: async ({ event, prefix }, [given], context) => {
    const name = actionOf(actions, given);
    if (name === "remove" && !event) refuse("--event is missing; use --event <id>");
    await onItsStack(context, undefined, ({ env, print, complain }) =>
      withDatabase(awsPlace(env, "DYNAMODB"), async (database) => {
        const tableName = physicalTableName(outboxTable.name, prefix, env);
        const store = dynamoAsideStore(database, tableName);
        let count = 0;
        for await (const item of store.list()) {
          if (event && event !== eventOf(item)) continue;
          count += 1;
          print(await handled(name, store, item));
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

async function handled(name: keyof typeof actions, store: AsideStore, item: AsideItem) {
  const { asideAt: setAsideAt, asideReason: reason, type, eventId, sk: key } = item;
  if (name === "list") return JSON.stringify({ setAsideAt, reason, type, eventId, key });
  await (name === "remove" ? store.remove(item) : store.putBack(item));
  const event = `${JSON.stringify(type ?? "unknown")} ${JSON.stringify(eventOf(item))}`;
  return `${event}: ${actions[name]}`;
}
