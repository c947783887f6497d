import { allRates } from "../../../app/registry/rate-limits.ts";
import type { Runtime } from "../../../app/runtime/runtime.ts";
import type { ListedRate } from "../../../parts/limits/rate-store.ts";
import { windowMs } from "../../../parts/limits/rate-window.ts";
import {
  actionOf,
  type CommandContext,
  defineCommand,
  itsEnvironment,
  listed,
  moduleArgument,
  moduleOf,
  options,
  refuseArgument,
  required,
} from "../setup/define-command.ts";
import { onItsServer } from "../setup/its-server.ts";
import { quotaLines } from "./quota-lines.ts";

const actions = { list, show, reset };

export const command = defineCommand({
  name: "limits",
  actions,
  usage: `Usage: keelson limits list <module>
       keelson limits show <module> <tenant>
       keelson limits reset <module> <tenant>

Shows which callers the rate limits and quotas of a server count in the current windows: one line of JSON for each, with the
limit, its configuration key, what has been taken, the number, and the end of the window.

${moduleArgument}
${listed({ "<tenant>": "the ID of a tenant" })}

list    shows the callers and quotas whose number is used up, of all tenants, and the slots of concurrency that runs hold. It
        reads the whole table of claims.
show    shows all callers and quotas of the tenant, and the slots that its runs hold.
reset   removes the rows of the tenant's current windows. Processes that have refused it ask again when a window of a second or
        a minute ends, or within a minute. Until then they use the tokens that they hold. Quotas stay: a handler corrects them with \`quota.set\`. So do
        slots: each becomes free when its run or its lease ends.

${options({})}

${itsEnvironment}`,
  flags: {},
  maxArguments: 4,
  run: async (_values, [given, path, tenant, ...others], context) => {
    const action = actionOf(actions, given);
    const module = moduleOf(path, `limits ${action}`);
    refuseArgument(action === "list" ? tenant : others[0]);
    if (action !== "list")
      required(tenant, `no tenant is given; use keelson limits ${action} <module> <tenant>`);
    await onItsServer(module, context, (runtime, there) => actions[action](runtime, tenant, there));
    return 0;
  },
});

async function list(
  runtime: Runtime,
  _tenant: string | undefined,
  context: CommandContext,
): Promise<void> {
  for await (const row of currentRows(runtime, undefined, context))
    if (row.taken >= row.number) context.print(lineOf(row));
  for (const line of await quotaLines(runtime, undefined)) context.print(line);
  for (const line of await slotLines(runtime, undefined)) context.print(line);
}

async function show(
  runtime: Runtime,
  tenant: string | undefined,
  context: CommandContext,
): Promise<void> {
  for await (const row of currentRows(runtime, tenant, context)) context.print(lineOf(row));
  for (const line of await quotaLines(runtime, tenant)) context.print(line);
  for (const line of await slotLines(runtime, tenant)) context.print(line);
}

async function reset(
  runtime: Runtime,
  tenant: string | undefined,
  context: CommandContext,
): Promise<void> {
  const rates = await (await runtime.adapters.open()).rates.open();
  let count = 0;
  for await (const row of currentRows(runtime, tenant, context)) {
    await rates.remove(row);
    count += 1;
  }
  context.print(`rows removed: ${count}`);
}

/** Returns the places whose slots are held, of one tenant or of all. */
async function slotLines(
  { adapters, server: { registry } }: Runtime,
  tenant: string | undefined,
): Promise<string[]> {
  const limited = [...registry.jobs.values(), ...registry.consumers.values()].filter(
    ({ concurrency }) => concurrency !== undefined,
  );
  if (limited.length === 0) return [];
  const slots = await (await adapters.open()).slots.open();
  const rows = await Promise.all(limited.map(({ name }) => slots.list(name)));
  return rows.flat().flatMap(({ place: { handler, limit, tenantId }, row: { holders } }) => {
    if (holders.length === 0 || (tenant !== undefined && tenantId !== tenant)) return [];
    const sinceMs = Math.min(...holders.map((holder) => holder.sinceMs));
    const since = new Date(sinceMs).toISOString();
    const found = { limit: `${handler} ${limit}`, kind: "concurrency", tenantId };
    return [JSON.stringify({ ...found, taken: holders.length, since })];
  });
}

/** Reads the rows of limits that the server declares, in windows that have not ended. */
async function* currentRows(
  { adapters, server }: Runtime,
  tenant: string | undefined,
  { clock }: CommandContext,
): AsyncGenerator<ListedRate> {
  const declared = new Set(allRates(server).map(({ facts }) => facts.id));
  const rates = await (await adapters.open()).rates.open();
  for await (const row of rates.list(tenant))
    if (declared.has(row.limit.id) && endOf(row) > clock.now()) yield row;
}

function endOf({ startMs, limit }: ListedRate): number {
  return startMs + windowMs[limit.window];
}

function lineOf(row: ListedRate): string {
  const { limit, tenantId, text, number } = row;
  const { id, key, window } = limit;
  const until = new Date(endOf(row)).toISOString();
  const taken = Math.min(row.taken, number);
  return JSON.stringify({ limit: id, key, tenantId, of: text, window, taken, number, until });
}
