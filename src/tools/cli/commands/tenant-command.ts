import { existsSync } from "node:fs";
import type { ServerInternals } from "../../../app/server/server.ts";
import { eraseTenant } from "../../../app/tenants/erase-tenant.ts";
import { openExportFile } from "../../../app/tenants/export-file.ts";
import { exportTenant, headerLine } from "../../../app/tenants/export-tenant.ts";
import {
  receiptLines,
  receiptOf,
  type TenantAction,
  type TenantReceipt,
} from "../../../app/tenants/receipt.ts";
import { type StateFile, stateFile } from "../../../app/tenants/state-file.ts";
import { type TenantSources, tenantSources } from "../../../app/tenants/tenant-source.ts";
import type { TenantRows, WalkState } from "../../../app/tenants/walk.ts";
import { accountOf, endpointOf } from "../../../aws/adapters/adapters.ts";
import { openDatabase } from "../../../aws/clients/dynamodb.ts";
import { dynamoTenantRows } from "../../../aws/stores/tenant-rows.ts";
import { isIdentifier, maxNameLength } from "../../../base/identity/claims.ts";
import type { Database } from "../../../base/types/database.ts";
import type { CommandContext } from "../setup/command-context.ts";
import {
  actionOf,
  defineCommand,
  flag,
  required,
  text,
  UsageError,
  type ValuesOf,
} from "../setup/define-command.ts";
import { onItsStack } from "../setup/embedded-stack.ts";
import { loadServer } from "../setup/load-server.ts";
import { oneLine } from "../setup/one-line.ts";

export const tenantUsage = `Usage: keelson tenant export <module> <id> --out <file> [options]
       keelson tenant erase <module> <id> [--dry-run] [--yes] [options]

Exports or erases a tenant's rows: those of tables with \`tenant: true\`, and keelson's own. Reads every table as a
whole. Stop the tenant before you erase it: what it writes meanwhile is erased too, or left and told of.

  <module>                    exports the result of buildServer as \`server\`; it must not start anything
  <id>                        the tenant, as tokens have it

Options of export:
  --out <file>                gets a line of JSON for each row; has its name once it is whole
  --force                     replaces a file that is there

Options of erase:
  --dry-run                   only counts
  --yes                       does not ask; needed where nobody sits at a terminal

Options:
  --state <file>              keeps where it is in a file, and goes on from there if it was cut
  --json                      prints the receipt as JSON
  --help                      print this text

Region, credentials, endpoints and names of tables come from the environment: run it with the server's variables.
Exit codes: 0 done, 1 failed, or rows of the tenant are left, 2 wrong usage.`;

const flags = {
  out: text,
  force: flag,
  "dry-run": flag,
  yes: flag,
  state: text,
  json: flag,
} as const;

type TenantCall = ReturnType<typeof callOf>;

/** Returns 1 if rows are left. */
export const run = defineCommand({
  usage: tenantUsage,
  flags,
  maxArguments: 3,
  run: async (values, given, context) => {
    const call = callOf(values, given);
    const asks = call.action === "erase" && !call.yes;
    if (asks && context.ask === undefined) {
      throw new UsageError(
        "nobody can be asked whether to erase; use --yes, or --dry-run to count only",
      );
    }
    if (call.action === "export" && !call.force && existsSync(call.out)) {
      throw new UsageError(
        `${JSON.stringify(call.out)} is there already; use --force to replace it`,
      );
    }
    const server = await loadServer(call.module);
    return onItsStack(context, server, (there) =>
      carryOut(call, server, there, asks ? context.ask : undefined),
    );
  },
});

async function carryOut(
  call: TenantCall,
  server: ServerInternals,
  context: CommandContext,
  ask: CommandContext["ask"],
): Promise<number> {
  const { env, print } = context;
  const found = tenantSources(server, call.tenant, env);
  const endpoint = server.options.dynamodb?.endpoint ?? endpointOf(env, "DYNAMODB");
  if (ask !== undefined) await assertMeant(call.tenant, found, endpoint, ask);
  const receipt = await receiptFor(
    call,
    found,
    await openDatabase({ endpoint, ...accountOf(env) }),
    context,
  );
  for (const line of call.json ? [JSON.stringify(receipt, undefined, 2)] : receiptLines(receipt))
    print(line);
  return receipt.isDone ? 0 : 1;
}

async function receiptFor(
  call: TenantCall,
  found: TenantSources,
  database: Database,
  context: CommandContext,
): Promise<TenantReceipt> {
  const { clock, wait } = context;
  try {
    const rows = dynamoTenantRows(database, {
      wait: (attempt) => wait(Math.min(5_000, 50 * 2 ** attempt) * Math.random()),
    });
    const work = {
      call,
      rows,
      found,
      at: new Date(clock.now()).toISOString(),
      show: showing(call, found, context),
    };
    return call.action === "export" ? await exported(work) : await erased(work);
  } finally {
    context.progress?.("");
    database.destroy();
  }
}

interface Work {
  readonly call: TenantCall;
  readonly rows: TenantRows;
  readonly found: TenantSources;
  readonly at: string;
  readonly show: (state: WalkState) => void;
}

async function exported({ call, rows, found, at, show }: Work): Promise<TenantReceipt> {
  const { sources, notCovered } = found;
  const { tenant, out } = call;
  const kept = keptState(call, found);
  const begun = await kept?.read();
  const file = await openExportFile(out, begun?.bytes);
  let isWhole = false;
  try {
    if (begun === undefined) {
      await file.write(
        headerLine({
          tenant,
          exportedAt: at,
          tables: sources.map(({ table }) => table),
          notCovered,
        }),
      );
    }
    const keep = async (state: WalkState) => {
      show(state);
      await kept?.write({ state, bytes: file.bytes });
    };
    const state = await exportTenant({
      sources,
      rows,
      keep,
      write: file.write,
      begun: begun?.state,
    });
    await file.finish();
    isWhole = true;
    await kept?.remove();
    return receiptOf({ ...found, action: "export", tenant, at, isDone: true, state });
  } finally {
    if (!isWhole) await file.close();
  }
}

async function erased({ call, rows, found, at, show }: Work): Promise<TenantReceipt> {
  const { action, tenant } = call;
  const kept = keptState(call, found);
  const keep = async (state: WalkState) => {
    show(state);
    await kept?.write({ state });
  };
  const begun = (await kept?.read())?.state;
  const { state, isDone } = await eraseTenant({
    ...found,
    rows,
    keep,
    begun,
    isDryRun: action === "count",
  });
  await kept?.remove();
  return receiptOf({ ...found, action, tenant, at, isDone, state });
}

function keptState(
  { state, action, tenant }: TenantCall,
  { sources }: TenantSources,
): StateFile | undefined {
  if (state === undefined) return undefined;
  return stateFile(state, { action, tenant, tables: sources.map(({ tableName }) => tableName) });
}

async function assertMeant(
  tenant: string,
  { sources }: TenantSources,
  endpoint: string | undefined,
  ask: NonNullable<CommandContext["ask"]>,
): Promise<void> {
  const tables = sources.map(({ tableName }) => tableName).join(", ");
  const where = endpoint === undefined ? "AWS" : oneLine(endpoint);
  const answer = await ask(
    `Every row of ${JSON.stringify(tenant)} in ${tables} at ${where} will be gone. Type the tenant's ID: `,
  );
  if (answer !== tenant) throw new Error("that is another ID; nothing was erased");
}

const doings = { export: "exported", erase: "erased", count: "found" } as const;

function showing(
  { action }: TenantCall,
  { sources }: TenantSources,
  { progress }: CommandContext,
): (state: WalkState) => void {
  return ({ pass, at, counts }) => {
    const where =
      at < sources.length
        ? `${sources[at]?.tableName} (${at + 1} of ${sources.length})`
        : "all tables";
    const sum = (of: "scanned" | "rows") => counts.reduce((total, count) => total + count[of], 0);
    progress?.(
      `pass ${pass}, ${where}: ${sum("scanned")} rows looked at, ${sum("rows")} ${doings[action]}`,
    );
  };
}

function callOf(values: ValuesOf<typeof flags>, [given, path, id]: readonly string[]) {
  const name = actionOf(["export", "erase"], given, "; use export or erase");
  const isExport = name === "export";
  const module = required(path, `no module is given; use keelson tenant ${name} <module> <id>`);
  const tenant = required(id, `no tenant is given; use keelson tenant ${name} ${module} <id>`);
  if (!isIdentifier(tenant)) {
    throw new UsageError(
      `the tenant is not a text of 1 to ${maxNameLength} characters without control characters`,
    );
  }
  const { out, force, yes, state, "dry-run": isDryRun } = values;
  const strange = Object.entries(isExport ? { yes, "dry-run": isDryRun } : { out, force }).find(
    ([, value]) => value,
  );
  if (strange !== undefined) throw new UsageError(`--${strange[0]} is no option of ${name}`);
  if (isExport && !out) throw new UsageError("--out is missing; use --out <file>");
  if (isDryRun && state !== undefined)
    throw new UsageError("--dry-run changes nothing, so it has no --state");
  const action: TenantAction = isDryRun ? "count" : name;
  return { ...values, action, module, tenant, out: out ?? "", state: state || undefined };
}
