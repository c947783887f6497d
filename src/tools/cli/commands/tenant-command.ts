import { statSync } from "node:fs";
import type { ServerInternals } from "../../../app/server/server.ts";
import {
  openExportFile,
  type StateFile,
  stateFile,
  type WalkIdentity,
} from "../../../app/tenants/files.ts";
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
  listed,
  moduleArgument,
  moduleOf,
  oneLine,
  optionLines,
  options,
  refuse,
  refuseArgument,
  required,
  type ValuesOf,
} from "../setup/define-command.ts";
import { awsPlace, onItsStack, withDatabase } from "../setup/its-server.ts";
import { loadServer } from "../setup/load-server.ts";
import { registrationOf } from "./erased-registration.ts";
import {
  flags,
  type OptionName,
  ofAll,
  ofCreate,
  ofErase,
  ofExport,
  ofList,
  ofSuspend,
  ofWalks,
  optionNames,
  optionsOf,
} from "./tenant-flags.ts";
import type { RegistryAction, RegistryCall } from "./tenant-registry-command.ts";

export const command = defineCommand({
  name: "tenant",
  actions: optionsOf,
  usage: `Usage: keelson tenant list <module> [options]
       keelson tenant create <module> <id> [--name <text>] [--time-zone <name>]
       keelson tenant suspend <module> <id> --reason <text>
       keelson tenant resume <module> <id>
       keelson tenant export <module> <id> --out <file> [options]
       keelson tenant erase <module> <id> [--dry-run] [--yes] [options]

Lists, registers, suspends and resumes the tenants of a server with \`tenants: true\`. Running processes refuse a
suspended tenant within 5 seconds.

Exports or erases a tenant's rows: in tables with \`tenant: true\`, and in keelson's own tables. Scans each table
completely. Stop the tenant before you erase it: rows that it writes during the run are erased, or left and reported.
With \`tenants: true\`, a registered tenant has to be suspended.

${moduleArgument}
${listed({ "<id>": "the tenant, as tokens have it" })}

Options of list:
${optionLines(ofList)}

Options of create:
${optionLines(ofCreate)}

Option of suspend:
${optionLines(ofSuspend)}

Options of export:
${optionLines(ofExport)}

Options of erase:
${optionLines(ofErase)}

Option of export and erase:
${optionLines(ofWalks)}

${options(ofAll)}

Region, credentials, endpoints and names of tables come from the environment: run it with the server's variables.
Exit codes: 0 done, 1 failed, or rows of the tenant are left, 2 wrong usage.`,
  flags,
  maxArguments: 3,
  run: async (values, given, context) => {
    const asked = askedOf(values, given);
    if (isOnRegistry(asked)) {
      const { onRegistry } = await import("./tenant-registry-command.ts");
      return onRegistry(registryCallOf(values, asked), context);
    }
    const call = callOf(values, asked);
    const { action, yes, force, out, module } = call;
    const asks = action === "erase" && !yes;
    if (asks && context.ask === undefined)
      refuse(
        "erase cannot ask for confirmation without a terminal; use --yes, or --dry-run to count only",
      );
    const present = action === "export" ? statSync(out, { throwIfNoEntry: false }) : undefined;
    if (present?.isDirectory()) refuse(`${JSON.stringify(out)} is a directory; name a file`);
    if (present !== undefined && !force)
      refuse(`${JSON.stringify(out)} exists already; use --force to replace it`);
    const server = await loadServer(module);
    // Without the embedded stack's, whose port changes.
    const { endpoint } = awsPlace(context.env, "DYNAMODB", server.options.dynamodb?.endpoint);
    return onItsStack(context, server, (there) => {
      const on = { endpoint: withoutCredentials(endpoint), isEmbedded: there !== context };
      return carryOut({ ...call, on }, server, there, asks ? context.ask : undefined);
    });
  },
});

interface TenantCall extends ReturnType<typeof callOf> {
  readonly on: Pick<WalkIdentity, "endpoint" | "isEmbedded">;
}

async function carryOut(
  { action, tenant, out, state, json, on }: TenantCall,
  server: ServerInternals,
  { env, clock, print, progress, wait }: CommandContext,
  ask: CommandContext["ask"],
) {
  const found = tenantSources(
    server,
    tenant,
    env,
    server.options.tenants === true && action !== "export",
  );
  const tables = found.sources.map(({ tableName }) => tableName);
  const place = awsPlace(env, "DYNAMODB", server.options.dynamodb?.endpoint);
  const asked = { server, env, tenant, action };
  // Before the question, which is pointless for an active tenant.
  const registration = await withDatabase(place, (database) => registrationOf(database, asked));
  if (ask !== undefined) await assertMeant(tenant, tables.join(", "), place.endpoint, ask);
  const at = new Date(clock.now()).toISOString();
  const { suspendedMs } = registration ?? { suspendedMs: undefined };
  const identity = { ...on, action, tenant, tables, suspendedMs };
  const kept =
    state === undefined
      ? undefined
      : await withDatabase(place, async ({ config }) =>
          stateFile(state, { ...identity, region: await config.region() }),
        );
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
    const isDryRun = action === "count";
    const erased = await eraseTenant({ ...found, rows, keep, begun, isDryRun });
    if (registration === undefined) return erased;
    const isLast = erased.isDone && !isDryRun;
    // Before a failure, whose next attempt has to read every table again.
    if (isLast) await kept?.remove();
    if (isLast) await registration.remove();
    return { ...erased, registration: isLast ? ("erased" as const) : ("kept" as const) };
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

function withoutCredentials(endpoint: string | undefined): string {
  return String(endpoint).replace(/\/\/[^/]*@/, "//");
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

interface AskedAction<Name extends keyof typeof optionsOf = keyof typeof optionsOf> {
  readonly name: Name;
  readonly module: string;
  readonly id: string | undefined;
}

/** @throws UsageError for a missing tenant, or an option of another action. */
function askedOf(
  values: ValuesOf<typeof flags>,
  [given, path, id]: readonly string[],
): AskedAction {
  const name = actionOf(optionsOf, given);
  const module = moduleOf(path, `tenant ${name}`, name === "list" ? "" : " <id>");
  if (name === "list") refuseArgument(id);
  else {
    const tenant = required(id, `no tenant is given; use keelson tenant ${name} ${module} <id>`);
    if (!isIdentifier(tenant))
      refuse(
        `the tenant is not a string of 1 to ${maxNameLength} characters without control characters`,
      );
  }
  const own: readonly OptionName[] = ["json", ...optionsOf[name]];
  const strange = optionNames(flags).find((option) => values[option] && !own.includes(option));
  if (strange !== undefined) refuse(`--${strange} is not an option of ${name}`);
  return { name, module, id };
}

function isOnRegistry(asked: AskedAction): asked is AskedAction<RegistryAction> {
  return asked.name !== "export" && asked.name !== "erase";
}

function registryCallOf(
  values: ValuesOf<typeof flags>,
  { name: action, module, id }: AskedAction<RegistryAction>,
): RegistryCall {
  const { name, "time-zone": timeZone, reason, limit, cursor, json } = values;
  if (action === "suspend" && !reason) refuse("--reason is missing; use --reason <text>");
  return { action, module, id, name, timeZone, reason, limit, cursor, json };
}

function callOf(values: ValuesOf<typeof flags>, { name, module, id }: AskedAction) {
  const { out = "", state, "dry-run": isDryRun } = values;
  if (name === "export" && !out) refuse("--out is missing; use --out <file>");
  if (isDryRun && state !== undefined)
    refuse("--dry-run does not change rows, so --state has no effect");
  // Safe cast: the registry has the other actions.
  const action: TenantAction = isDryRun ? "count" : (name as "export" | "erase");
  return { ...values, action, module, tenant: String(id), out, state: state || undefined };
}
