import { onceTable } from "../../../app/handlers/table.ts";
import { allRates } from "../../../app/registry/rate-limits.ts";
import { longestReason } from "../../../app/run/outside-run.ts";
import type { Runtime } from "../../../app/runtime/runtime.ts";
import { quoted } from "../../../base/errors/quoted.ts";
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
  refuse,
  refuseArgument,
  required,
  text,
} from "../setup/define-command.ts";
import { onItsServer } from "../setup/its-server.ts";
import { jsonFlag, printRows } from "../setup/print-rows.ts";
import { shownScan } from "../setup/shown-scan.ts";
import { correctQuota, type QuotaCorrection } from "./quota-correction.ts";
import { quotaRows } from "./quota-rows.ts";

const flags = {
  reason: text("<text>", "for correct: the purpose, for the log; at most 500 characters"),
  ...jsonFlag,
};

const actions = { list, show, reset, correct };

export const command = defineCommand({
  name: "limits",
  actions,
  usage: `Usage: keelson limits list <module> [--json]
       keelson limits show <module> <tenant> [--json]
       keelson limits reset <module> <tenant>
       keelson limits correct <module> <tenant> <quota> <used> --reason <text>

Shows which callers the rate limits and quotas of a server count in the current windows, with the limit, its configuration
key, the amount used, the limit's number, and the end of the window.

${moduleArgument}
${listed({
  "<tenant>": "the ID of a tenant",
  "<quota>": "the full name of a quota, such as files.storage",
  "<used>": "a whole number from 0",
})}

list    shows the callers and quotas whose number is used up, of all tenants, and the slots of concurrency that runs hold. It
        reads the whole table of claims.
show    shows all callers and quotas of the tenant, and the slots that its runs hold.
reset   removes the rows of the tenant's current windows. Processes that have refused it ask again when a window of a second or
        a minute ends, or within a minute. Until then they use the tokens that they hold. Quotas and slots
        stay: a slot becomes free when its run or its lease ends.
correct sets the tenant's usage of the quota in the current period, even above its limit, and prints the quota's line.
        The lines \`run.started\` and \`quota.corrected\` record it, with the reason.

${options(flags)}

${itsEnvironment}`,
  flags,
  maxArguments: 6,
  run: async ({ reason, json }, [given, path, tenant, ...others], context) => {
    const action = actionOf(actions, given);
    const module = moduleOf(path, `limits ${action}`);
    const most = action === "correct" ? 2 : 0;
    refuseArgument(action === "list" ? tenant : others[most]);
    if (action !== "list")
      required(tenant, `no tenant is given; use keelson limits ${action} <module> <tenant>`);
    if (action !== "correct" && reason !== undefined)
      refuse(`--reason is only for keelson limits correct; leave it out of ${action}`);
    if (json && action !== "list" && action !== "show")
      refuse("--json is an option of list and show");
    const asked = {
      tenant,
      json,
      correction: action === "correct" ? correctionOf(others, reason) : undefined,
    };
    return onItsServer(module, context, (runtime, there) => actions[action](runtime, asked, there));
  },
});

interface Asked {
  readonly json: boolean;
  readonly tenant: string | undefined;
  readonly correction: Omit<QuotaCorrection, "tenantId"> | undefined;
}

function correctionOf(
  [quota, used]: readonly string[],
  reason: string | undefined,
): NonNullable<Asked["correction"]> {
  const form = "use keelson limits correct <module> <tenant> <quota> <used> --reason <text>";
  const named = required(quota, `no quota is given; ${form}`);
  if (used === undefined || !/^\d{1,15}$/.test(used))
    refuse(`the usage is ${quoted(used)}; use a whole number from 0`);
  const purpose = required(reason, `no reason is given; ${form}`);
  if (purpose.trim() === "" || purpose.length > longestReason)
    refuse(
      `the reason is ${quoted(purpose)}; use 1 to ${longestReason} characters, not only blanks`,
    );
  return { quota: named, used: Number(used), reason: purpose };
}

async function correct(runtime: Runtime, asked: Asked, context: CommandContext): Promise<number> {
  // Safe cast: `run` has checked both.
  const { tenant, correction } = asked as {
    readonly [Name in keyof Asked]-?: NonNullable<Asked[Name]>;
  };
  context.print(await correctQuota(runtime, { tenantId: tenant, ...correction }));
  return 0;
}

async function list(runtime: Runtime, asked: Asked, context: CommandContext): Promise<number> {
  return printed(runtime, asked, context, "no caller is limited");
}

async function show(runtime: Runtime, asked: Asked, context: CommandContext): Promise<number> {
  return printed(runtime, asked, context, `no limit counts ${asked.tenant}`);
}

async function printed(runtime: Runtime, asked: Asked, context: CommandContext, none: string) {
  const problems: string[] = [];
  const complain = (line: string) => {
    problems.push(line);
    context.complain(line);
  };
  const rows = rowsOf(runtime, asked.tenant, { ...context, complain });
  // Without a row, an unreadable one may still be limited.
  const whenNone = (line: string) => void (problems.length > 0 || context.complain(line));
  await printRows(rows, asked, { ...context, complain: whenNone }, none);
  return problems.length === 0 ? 0 : 1;
}

/** All rows of one tenant; without a tenant, the rows that are used up or held. */
async function* rowsOf(runtime: Runtime, tenant: string | undefined, context: CommandContext) {
  for await (const row of currentRows(runtime, tenant, context))
    if (tenant !== undefined || row.taken >= row.number) yield rateRow(row);
  yield* quotaRows(runtime, tenant, context);
  yield* await slotRows(runtime, tenant);
}

async function reset(
  runtime: Runtime,
  { tenant }: Asked,
  context: CommandContext,
): Promise<number> {
  const rates = await (await runtime.adapters.open()).rates.open();
  let count = 0;
  for await (const row of currentRows(runtime, tenant, context)) {
    await rates.remove(row);
    count += 1;
  }
  context.print(`rows removed: ${count}`);
  return 0;
}

/** Returns the places whose slots are held, of one tenant or of all. */
async function slotRows(
  { adapters, server: { registry } }: Runtime,
  tenant: string | undefined,
): Promise<Readonly<Record<string, unknown>>[]> {
  const limited = [...registry.jobs.values(), ...registry.consumers.values()].filter(
    ({ concurrency }) => concurrency !== undefined,
  );
  if (limited.length === 0) return [];
  const slots = await (await adapters.open()).slots.open();
  const rows = await Promise.all(limited.map(({ name }) => slots.list(name)));
  return rows.flat().flatMap(({ place: { handler, limit, tenantId }, holders }) => {
    if (holders.length === 0 || (tenant !== undefined && tenantId !== tenant)) return [];
    const sinceMs = Math.min(...holders.map((holder) => holder.sinceMs));
    const since = Number.isFinite(sinceMs) ? new Date(sinceMs).toISOString() : undefined;
    const found = { limit: `${handler} ${limit}`, kind: "concurrency", tenantId };
    return [{ ...found, taken: holders.length, since }];
  });
}

/** Reads the rows of limits that the server declares, in windows that have not ended. */
async function* currentRows(
  { adapters, server, tableName }: Runtime,
  tenant: string | undefined,
  context: CommandContext,
): AsyncGenerator<ListedRate> {
  const declared = new Set(allRates(server).map(({ facts }) => facts.id));
  const rates = await (await adapters.open()).rates.open();
  const what = `rate limits, ${tableName(onceTable.name)}`;
  for await (const row of shownScan(context, what, (onPage) => rates.list(tenant, onPage)))
    if (declared.has(row.limit.id) && endOf(row) > context.clock.now()) yield row;
}

function endOf({ startMs, limit }: ListedRate): number {
  return startMs + windowMs[limit.window];
}

function rateRow(row: ListedRate) {
  const { limit, tenantId, text, number } = row;
  const { id, key, window } = limit;
  const until = new Date(endOf(row)).toISOString();
  const taken = Math.min(row.taken, number);
  const found = {
    limit: id,
    kind: undefined,
    key,
    tenantId,
    of: text,
    window,
    taken,
    number,
    until,
  };
  return { ...found, since: undefined };
}
