import { parseArgs } from "node:util";
import { openAwsAdapters } from "../aws/adapters.ts";
import { timeOf } from "../events/kept-events.ts";
import { rebuild } from "../run/rebuild.ts";
import type { Runtime } from "../run/runtime.ts";
import { createRuntime } from "../server/create-runtime.ts";
import type { CommandContext } from "./command-context.ts";
import { findServer } from "./load-server.ts";
import { runCommand, UsageError } from "./run-command.ts";

/** What `keelson projection --help` prints. */
export const projectionUsage = `Usage: keelson projection rebuild <module> <name> [options]
       keelson projection status <module>

rebuild replays kept events into the declared version of a projection, beside the one that is read, and makes it the active one.
Stopped or cut, the next call goes on from there. Deploy the new version everywhere before.
status prints one JSON line per projection.

  <module>                    exports the result of buildServer as \`server\`; it must not start anything
  <name>                      the projection: files.usage

Options of rebuild:
  --tenant <id>               only this tenant, which then has a version of its own
  --partial                   goes on without the events that have expired

Options:
  --help                      print this text

Region, credentials, endpoints and names come from the environment: run it with the server's variables.
Exit codes: 0 done, 1 failed or stopped, 2 wrong usage.`;

type Values = ReturnType<typeof parse>["values"];

/** Runs `keelson projection` and returns its exit code: 0, 1 where it failed or was stopped, 2 where it was used wrongly. */
export function runProjectionCommand(args: readonly string[], context: CommandContext): Promise<number> {
  const run = async (values: Values, action: string | undefined, [module, name, unexpected]: readonly string[]) => {
    if (action === undefined) throw new UsageError("no action is given");
    if (action !== "rebuild" && action !== "status") throw new UsageError(`there is no action ${JSON.stringify(action)}`);
    if (module === undefined) throw new UsageError(`no module is given; use keelson projection ${action} <module>`);
    const more = action === "status" ? name : unexpected;
    if (more !== undefined) throw new UsageError(`unexpected argument ${JSON.stringify(more)}`);
    const { tenant, partial } = values;
    if (action === "status" && (tenant !== undefined || partial)) {
      throw new UsageError("--tenant and --partial are options of rebuild");
    }
    if (tenant === "") throw new UsageError("--tenant is empty; use --tenant <id>");
    if (action === "rebuild" && name === undefined)
      throw new UsageError("no projection is given; name one that the module declares");
    const runtime = await bind(module, context);
    try {
      await (name === undefined ? tell(runtime, context) : make(runtime, name, values, context));
      return 0;
    } finally {
      await runtime.close();
    }
  };
  return runCommand({ usage: projectionUsage, parse, maxArguments: 3, run }, args, context);
}

async function bind(module: string, { env, clock, complain }: CommandContext): Promise<Runtime> {
  const server = await findServer(module);
  return createRuntime(server, {
    variables: env,
    clock,
    write: complain,
    openAdapters: (runtime) => openAwsAdapters(runtime, env),
  });
}

async function make(runtime: Runtime, name: string, values: Values, { print, stopping }: CommandContext): Promise<void> {
  const { projections } = runtime.server.registry;
  const projection = projections.get(name);
  if (projection === undefined) {
    const known = [...projections.keys()].join(", ") || "none";
    throw new UsageError(`the module declares no projection ${JSON.stringify(name)}; it declares ${known}`);
  }
  const { tenant: tenantId, partial: isPartial } = values;
  const { replayed, hasSwitched } = await rebuild(runtime, { projection, tenantId, isPartial, signal: stopping?.() });
  const whose = tenantId === undefined ? "" : ` for ${JSON.stringify(tenantId)}`;
  const state = hasSwitched ? "is active now" : "was active already";
  print(`${name}: version ${projection.version} ${state}${whose}; ${replayed} events were replayed`);
}

async function tell(runtime: Runtime, { print, clock }: CommandContext): Promise<void> {
  const adapters = await runtime.adapters();
  const store = await adapters.projections.open();
  for (const { name, version } of runtime.server.registry.projections.values()) {
    const { all } = await store.active(name, undefined);
    const begun = await store.rebuild(name, undefined);
    const { events } = await adapters.messaging.open();
    const { visible, hidden } = await events.size();
    const position = begun === undefined || begun.after === "" ? undefined : timeOf(begun.after);
    const rebuilding = begun && {
      version: begun.version,
      startedAt: new Date(begun.startedMs).toISOString(),
      tenant: begun.tenant,
      replayed: begun.replayed,
      ...(position === undefined
        ? {}
        : {
            position: new Date(position).toISOString(),
            lagSeconds: Math.max(0, Math.round((clock.now() - position) / 1_000)),
          }),
    };
    print(
      JSON.stringify({
        projection: name,
        declared: version,
        active: all?.version ?? version,
        waiting: visible + hidden,
        rebuild: rebuilding,
      }),
    );
  }
}

function parse(args: readonly string[]) {
  return parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      tenant: { type: "string" },
      partial: { type: "boolean", default: false },
      help: { type: "boolean", default: false },
    },
  });
}
