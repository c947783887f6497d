import { openTenants } from "../../../app/server/open-tenants.ts";
import { ValidationError } from "../../../base/errors/errors.ts";
import { defined } from "../../../base/types/defined.ts";
import type { Tenant, Tenants } from "../../../parts/tenant-registry/tenant.ts";
import { type CommandContext, oneLine, refuse } from "../setup/define-command.ts";
import { onItsServer } from "../setup/its-server.ts";
import { printRows } from "../setup/print-rows.ts";

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
  await onItsServer(call.module, context, async (runtime, there) => {
    const tenants = await openTenants({ ...runtime, log: silent });
    try {
      await run(tenants, call, there);
    } catch (error) {
      if (!(error instanceof ValidationError)) throw error;
      refuse(error.fields.map(({ field, error: problem }) => `${field} ${problem}`).join("; "));
    }
  });
  return 0;
}

/** The command prints the result instead. */
const silent = { info: () => undefined };

type Action = (tenants: Tenants, call: RegistryCall, context: CommandContext) => Promise<void>;

const actions: Readonly<Record<RegistryAction, Action>> = {
  list: async (tenants, call, context) => {
    const limit = call.limit === undefined ? undefined : Number(call.limit);
    let { cursor } = call;
    const rows = async function* () {
      do {
        const page = await tenants.list(defined({ limit, cursor }));
        for (const tenant of page.items) yield call.json ? { ...tenant } : rowOf(tenant);
        ({ cursor } = page);
      } while (limit === undefined && cursor !== undefined);
    };
    await printRows(rows(), call, context, "no tenant is registered");
    if (cursor !== undefined) context.complain(`keelson: there are more: --cursor ${cursor}`);
  },
  create: async ({ create }, call, context) => {
    const { id, name, timeZone } = call;
    const tenant = await create({ id: String(id), ...defined({ name, timeZone }) });
    show(tenant, "created", call, context);
  },
  suspend: async (tenants, call, context) => {
    const { id, reason = "" } = call;
    show(await tenants.suspend(String(id), { reason }), "suspended", call, context);
  },
  resume: async (tenants, call, context) =>
    show(await tenants.resume(String(call.id)), "resumed", call, context),
};

function rowOf({ id, name, timeZone, createdAt, status, suspended }: Tenant) {
  const { at: since, reason } = suspended ?? {};
  return { id, name, timeZone, createdAt, status, since, reason };
}

function show(
  tenant: Tenant,
  verb: string,
  { json }: RegistryCall,
  { print }: CommandContext,
): void {
  const { id, name, timeZone, status, suspended } = tenant;
  const named = name === undefined ? "" : ` (${oneLine(name)})`;
  const since =
    suspended === undefined ? "" : ` since ${suspended.at}: ${oneLine(suspended.reason)}`;
  const line = `${verb} ${oneLine(id)}${named}, ${timeZone}, ${status}${since}`;
  print(json ? JSON.stringify(tenant) : line);
}
