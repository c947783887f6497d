import { openTenants } from "../../../app/server/open-tenants.ts";
import { ValidationError } from "../../../base/errors/errors.ts";
import { defined } from "../../../base/types/defined.ts";
import type { Tenant, Tenants } from "../../../parts/tenant-registry/tenant.ts";
import { type CommandContext, oneLine, refuse } from "../setup/define-command.ts";
import { onItsServer } from "../setup/its-server.ts";

export type RegistryAction = "list" | "create" | "suspend" | "resume";

export interface RegistryCall {
  readonly action: RegistryAction;
  readonly module: string;
  /** The tenant. Absent for `list`. */
  readonly id: string | undefined;
  readonly name: string | undefined;
  readonly timeZone: string | undefined;
  readonly reason: string | undefined;
  readonly limit: string | undefined;
  readonly cursor: string | undefined;
  readonly json: boolean;
}

/** Runs `keelson tenant list | create | suspend | resume`. */
export async function onRegistry(call: RegistryCall, context: CommandContext): Promise<number> {
  const run = actions[call.action];
  await onItsServer(call.module, context, async (runtime, { print, complain }) => {
    const tenants = await openTenants({ ...runtime, log: silent });
    const show = (tenant: Tenant, verb?: string) =>
      print(call.json ? JSON.stringify(tenant) : lineOf(tenant, verb));
    try {
      await run(tenants, call, show, complain);
    } catch (error) {
      if (!(error instanceof ValidationError)) throw error;
      refuse(error.fields.map(({ field, error: problem }) => `${field} ${problem}`).join("; "));
    }
  });
  return 0;
}

/** The command prints the result instead. */
const silent = { info: () => undefined };

type Action = (
  tenants: Tenants,
  call: RegistryCall,
  show: (tenant: Tenant, verb?: string) => void,
  complain: (line: string) => void,
) => Promise<void>;

const actions: Readonly<Record<RegistryAction, Action>> = {
  list: async (tenants, { limit: given, cursor: start }, show, complain) => {
    const limit = given === undefined ? undefined : Number(given);
    let cursor = start;
    do {
      const page = await tenants.list(defined({ limit, cursor }));
      for (const tenant of page.items) show(tenant);
      ({ cursor } = page);
    } while (limit === undefined && cursor !== undefined);
    if (cursor !== undefined) complain(`there are more: --cursor ${cursor}`);
  },
  create: async (tenants, { id, name, timeZone }, show) => {
    const { create } = tenants;
    show(await create({ id: String(id), ...defined({ name, timeZone }) }), "created");
  },
  suspend: async (tenants, { id, reason = "" }, show) =>
    show(await tenants.suspend(String(id), { reason }), "suspended"),
  resume: async (tenants, { id }, show) => show(await tenants.resume(String(id)), "resumed"),
};

function lineOf({ id, name, timeZone, status, suspended }: Tenant, verb = ""): string {
  const named = name === undefined ? "" : ` (${oneLine(name)})`;
  const since =
    suspended === undefined ? "" : ` since ${suspended.at}: ${oneLine(suspended.reason)}`;
  return `${verb === "" ? "" : `${verb} `}${oneLine(id)}${named}, ${timeZone}, ${status}${since}`;
}
