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
import { jsonFlag, printRows } from "../setup/print-rows.ts";

const actions = { list: true, "put-back": true, remove: true };

const flags = {
  event: text("<id>", "only this event; for a job or delivery, its jobId"),
  prefix: textOr("keelson", "<text>", "the server's dynamodb.prefix"),
  ...jsonFlag,
};

export const command = defineCommand({
  name: "outbox",
  actions,
  usage: `Usage: keelson outbox <action> [options]

Manages events, jobs and deliveries that were set aside because the bus or a queue permanently refuses them.

Actions:
${listed({
  list: "prints them, with the time and the reason",
  "put-back": "puts them back; the next sweep dispatches them, or sets them aside again",
  "remove --event <id>": "removes one permanently",
})}

${options(flags)}

Region, credentials, endpoints and KEELSON_TABLE_OUTBOX come from the environment.`,
  flags,
  run: async ({ event, prefix, json }, [given], context) => {
    const name = actionOf(actions, given);
    if (json && name !== "list") refuse("--json is an option of list");
    if (event === "") refuse("--event is empty; use --event <id>");
    if (name === "remove" && !event) refuse("--event is missing; use --event <id>");
    return onItsStack(context, undefined, (there) =>
      withDatabase(awsPlace(there.env, "DYNAMODB"), async (database) => {
        const tableName = physicalTableName(outboxTable.name, prefix, there.env);
        const store = dynamoAsideStore(database, tableName);
        const none = `no message ${event ? `${JSON.stringify(event)} ` : ""}is set aside in ${tableName}`;
        if (name === "list") {
          await printRows(rows(chosen(store, event)), { json }, there, none);
          return 0;
        }
        let [count, foreign] = [0, 0];
        for await (const item of chosen(store, event)) {
          count += 1;
          const done = name === "remove" ? await removed(store, item) : await store.putBack(item);
          const shown = `${JSON.stringify(item["type"] ?? "unknown")} ${JSON.stringify(eventOf(item))}`;
          if (done !== "foreign") there.print(`${shown}: ${texts[done]}`);
          else {
            foreign += 1;
            const key = JSON.stringify(item["sk"]);
            there.complain(
              `keelson: ${key} does not name its shard, and stays; keelson did not write this row of ${tableName}, so delete it there`,
            );
          }
        }
        if (count === 0 && event) throw new Error(none);
        if (count === 0) there.complain(`keelson: ${none}`);
        return foreign > 0 ? 1 : 0;
      }),
    );
  },
});

const texts = {
  "put back": "put back",
  gone: "was put back or removed in the meantime",
  removed: "removed",
};

async function removed(store: AsideStore, item: AsideItem) {
  await store.remove(item);
  return "removed" as const;
}

/** Every item has the sort key `<time>#<event ID>#shard#<n>`, even if it is not an event. */
function eventOf({ eventId, sk }: AsideItem): unknown {
  return eventId ?? String(sk).split("#")[1];
}

async function* chosen(store: AsideStore, event: string | undefined) {
  for await (const item of store.list()) if (!event || event === eventOf(item)) yield item;
}

async function* rows(items: AsyncIterable<AsideItem>) {
  for await (const { asideAt: setAsideAt, asideReason: reason, type, eventId, sk: key } of items)
    yield { setAsideAt, reason, type, eventId, key };
}
