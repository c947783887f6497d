import { existsSync } from "node:fs";
import type { ServerInternals } from "../../../app/server/server.ts";
import { openExportFile, type StateFile, stateFile } from "../../../app/tenants/files.ts";
import {
  participles,
  receiptLines,
  receiptOf,
  type TenantAction,
} from "../../../app/tenants/receipt.ts";
import { type TenantSources, tenantSources } from "../../../app/tenants/tenant-source.ts";
import {
  eraseTenant,
  exportTenant,
  headerLine,
  type TenantRows,
  type WalkState,
} from "../../../app/tenants/walk.ts";
import { dynamoTenantRows } from "../../../aws/stores/tenant-rows.ts";
import { isIdentifier, maxNameLength } from "../../../base/identity/access.ts";
import {
  actionOf,
  type CommandContext,
  defineCommand,
  flag,
  listed,
  moduleArgument,
  moduleOf,
  oneLine,
  optionLines,
  options,
  refuse,
  required,
  text,
  type ValuesOf,
} from "../setup/define-command.ts";
import { awsPlace, onItsStack, withDatabase } from "../setup/its-server.ts";
import { loadServer } from "../setup/load-server.ts";

const ofExport = {
  out: text(
    "<file>",
    "the file for the rows, one line of JSON each; has this name once it is complete",
  ),
  force: flag("replaces an existing file"),
};
const ofErase = {
  "dry-run": flag("only counts"),
  yes: flag("does not ask; required without a terminal"),
};
const ofBoth = {
  state: text("<file>", "a file for the progress, from which an interrupted run continues"),
  json: flag("prints the receipt as JSON"),
};
const flags = { ...ofExport, ...ofErase, ...ofBoth };

const actions = { export: true, erase: true };

export const command = defineCommand({
  name: "tenant",
  actions,
  usage: `Usage: keelson tenant export <module> <id> --out <file> [options]
       keelson tenant erase <module> <id> [--dry-run] [--yes] [options]

Exports or erases a tenant's rows: in tables with \`tenant: true\`, and in keelson's own tables. Scans each table
completely. Stop the tenant before you erase it: rows that it writes during the run are erased, or left and reported.

${moduleArgument}
${listed({ "<id>": "the tenant, as tokens have it" })}

Options of export:
${optionLines(ofExport)}

Options of erase:
${optionLines(ofErase)}

${options(ofBoth)}

Region, credentials, endpoints and names of tables come from the environment: run it with the server's variables.
Exit codes: 0 done, 1 failed, or rows of the tenant are left, 2 wrong usage.`,
  flags,
  maxArguments: 3,
  run: async (values, given, context) => {
    const call = callOf(values, given);
    const { action, yes, force, out, module } = call;
    const asks = action === "erase" && !yes;
    if (asks && context.ask === undefined)
      refuse(
        "erase cannot ask for confirmation without a terminal; use --yes, or --dry-run to count only",
      );
    if (action === "export" && !force && existsSync(out))
      refuse(`${JSON.stringify(out)} exists already; use --force to replace it`);
    const server = await loadServer(module);
    return onItsStack(context, server, (there) =>
      carryOut(call, server, there, asks ? context.ask : undefined),
    );
  },
});

type TenantCall = ReturnType<typeof callOf>;

async function carryOut(
  { action, tenant, out, state, json }: TenantCall,
  server: ServerInternals,
  { env, clock, print, progress, wait }: CommandContext,
  ask: CommandContext["ask"],
) {
  const found = tenantSources(server, tenant, env);
  const tables = found.sources.map(({ tableName }) => tableName);
  const place = awsPlace(env, "DYNAMODB", server.options.dynamodb?.endpoint);
  if (ask !== undefined) await assertMeant(tenant, tables.join(", "), place.endpoint, ask);
  const at = new Date(clock.now()).toISOString();
  const kept = state === undefined ? undefined : stateFile(state, { action, tenant, tables });
  const show = (walk: WalkState) => progress?.(progressText(action, tables, walk));
  const ended = await withDatabase(place, async (database) => {
    const rows = dynamoTenantRows(database, {
      wait: (attempt) => wait(Math.min(5_000, 50 * 2 ** attempt) * Math.random()),
    });
    if (action === "export") return exported({ tenant, out, at }, { rows, found, kept, show });
    const keep = async (walk: WalkState) => {
      show(walk);
      await kept?.write({ state: walk });
    };
    const begun = (await kept?.read())?.state;
    return eraseTenant({ ...found, rows, keep, begun, isDryRun: action === "count" });
  }).finally(() => progress?.(""));
  await kept?.remove();
  const receipt = receiptOf({ ...found, action, tenant, at, ...ended });
  for (const line of json ? [JSON.stringify(receipt, undefined, 2)] : receiptLines(receipt))
    print(line);
  return receipt.isDone ? 0 : 1;
}

interface Work {
  readonly rows: TenantRows;
  readonly found: TenantSources;
  readonly kept: StateFile | undefined;
  readonly show: (state: WalkState) => void;
}

async function exported(
  { tenant, out, at }: Pick<TenantCall, "tenant" | "out"> & { readonly at: string },
  { rows, found: { sources, notCovered }, kept, show }: Work,
) {
  const begun = await kept?.read();
  const file = await openExportFile(out, begun?.bytes);
  let isWhole = false;
  try {
    if (begun === undefined) {
      const tables = sources.map(({ table }) => table);
      await file.write(headerLine({ tenant, exportedAt: at, tables, notCovered }));
    }
    const keep = async (state: WalkState) => {
      show(state);
      await kept?.write({ state, bytes: file.bytes });
    };
    const { write } = file;
    const state = await exportTenant({ sources, rows, keep, write, begun: begun?.state });
    await file.finish();
    isWhole = true;
    return { isDone: true, state };
  } finally {
    if (!isWhole) await file.close();
  }
}

async function assertMeant(
  tenant: string,
  tables: string,
  endpoint: string | undefined,
  ask: NonNullable<CommandContext["ask"]>,
) {
  const where = endpoint === undefined ? "AWS" : oneLine(endpoint);
  const answer = await ask(
    `Every row of ${JSON.stringify(tenant)} in ${tables} at ${where} will be gone. Type the tenant's ID: `,
  );
  if (answer !== tenant) throw new Error("that is another ID; nothing was erased");
}

function progressText(
  action: TenantAction,
  tables: readonly string[],
  { pass, at, counts }: WalkState,
) {
  const table = tables[at];
  const where = table === undefined ? "all tables" : `${table} (${at + 1} of ${tables.length})`;
  const sum = (of: "scanned" | "rows") => counts.reduce((total, count) => total + count[of], 0);
  return `pass ${pass}, ${where}: ${sum("scanned")} rows looked at, ${sum("rows")} ${participles[action]}`;
}

function callOf(values: ValuesOf<typeof flags>, [given, path, id]: readonly string[]) {
  const name = actionOf(actions, given);
  const isExport = name === "export";
  const module = moduleOf(path, `tenant ${name}`, " <id>");
  const tenant = required(id, `no tenant is given; use keelson tenant ${name} ${module} <id>`);
  if (!isIdentifier(tenant))
    refuse(
      `the tenant is not a string of 1 to ${maxNameLength} characters without control characters`,
    );
  const { out = "", state, "dry-run": isDryRun } = values;
  const others = isExport ? (["yes", "dry-run"] as const) : (["out", "force"] as const);
  const strange = others.find((option) => values[option]);
  if (strange !== undefined) refuse(`--${strange} is not an option of ${name}`);
  if (isExport && !out) refuse("--out is missing; use --out <file>");
  if (isDryRun && state !== undefined)
    refuse("--dry-run does not change rows, so --state has no effect");
  const action: TenantAction = isDryRun ? "count" : name;
  return { ...values, action, module, tenant, out, state: state || undefined };
}
