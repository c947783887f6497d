import { oldestUncounted } from "../../../app/projections/projection-position.ts";
import { rebuild, type UncountedEvent } from "../../../app/run/rebuild.ts";
import type { Runtime } from "../../../app/runtime/runtime.ts";
import { timeOf } from "../../../parts/messages/kept-events.ts";
import type { CommandContext } from "../setup/command-context.ts";
import {
  actionOf,
  defineCommand,
  flag,
  helpOption,
  itsEnvironment,
  moduleArgument,
  moduleOf,
  refuse,
  required,
  text,
  UsageError,
  type ValuesOf,
} from "../setup/define-command.ts";
import { onItsServer } from "../setup/its-server.ts";
import { oneLine } from "../setup/one-line.ts";

export const projectionUsage = `Usage: keelson projection rebuild <module> <name> [options]
       keelson projection status <module>

rebuild replays kept events into the declared version of a projection, beside the one that is read, and makes it the active one.
Stopped or cut, the next call goes on from there. Deploy the new version everywhere before.
status prints one JSON line per projection.

${moduleArgument}
  <name>                      the projection: files.usage

Options of rebuild:
  --tenant <id>               only this tenant, which then has a version of its own
  --partial                   goes on without the events that have expired

Options:
${helpOption}

${itsEnvironment}
Exit codes: 0 done, 1 failed, stopped, or events of a tenant could not be counted, 2 wrong usage.`;

const flags = { tenant: text, partial: flag };

export const run = defineCommand({
  usage: projectionUsage,
  flags,
  maxArguments: 3,
  run: async (values, [given, path, name], context) => {
    const action = actionOf({ rebuild: make, status: tell }, given);
    const module = moduleOf(path, `projection ${action}`);
    const { tenant, partial } = values;
    if (action === "status") {
      refuse(name);
      if (tenant !== undefined || partial)
        throw new UsageError("--tenant and --partial are options of rebuild");
      return onItsServer(module, context, tell);
    }
    if (tenant === "") throw new UsageError("--tenant is empty; use --tenant <id>");
    const wanted = required(name, "no projection is given; name one that the module declares");
    return onItsServer(module, context, (runtime, there) => make(runtime, wanted, values, there));
  },
});

const mostNamed = 20;

async function make(
  runtime: Runtime,
  name: string,
  values: ValuesOf<typeof flags>,
  context: CommandContext,
): Promise<number> {
  const { print, complain, stopping } = context;
  const { projections } = runtime.server.registry;
  const projection = projections.get(name);
  if (projection === undefined) {
    const known = [...projections.keys()].join(", ") || "none";
    throw new UsageError(
      `the module declares no projection ${JSON.stringify(name)}; it declares ${known}`,
    );
  }
  const { tenant: tenantId, partial: isPartial } = values;
  let uncounted = 0;
  const tell = ({ tenantId, type, eventId, reason }: UncountedEvent) => {
    uncounted += 1;
    if (uncounted > mostNamed) return;
    complain(
      `keelson: ${oneLine(type)} ${JSON.stringify(eventId)} of ${tenantText(tenantId)} is not counted: ${oneLine(reason)}`,
    );
  };
  const signal = stopping?.();
  const rebuilt = await rebuild(runtime, { projection, tenantId, isPartial, signal, tell });
  const { replayed, hasSwitched, lost = [] } = rebuilt;
  const whose = tenantId === undefined ? "" : ` for ${JSON.stringify(tenantId)}`;
  const unswitched = lost.length === 0 ? "was active already" : "was not switched to";
  const state = hasSwitched ? "is active now" : unswitched;
  print(
    `${name}: version ${projection.version} ${state}${whose}; ${replayed} events were replayed`,
  );
  if (lost.length === 0) return 0;
  if (uncounted > mostNamed)
    complain(`keelson: ${uncounted - mostNamed} more events are not counted`);
  const shown = lost.slice(0, mostNamed).map((tenant) => tenantText(tenant || undefined));
  const more = lost.length > mostNamed ? ` and ${lost.length - mostNamed} more` : "";
  complain(
    `keelson: not whole: ${shown.join(", ")}${more}; a tenant that is not keeps the version that it reads: fix the projection, or let the events expire, and rebuild again`,
  );
  return 1;
}

function tenantText(tenantId: string | undefined): string {
  return tenantId === undefined ? "no tenant" : JSON.stringify(tenantId);
}

async function tell(runtime: Runtime, { print, clock }: CommandContext): Promise<number> {
  const adapters = await runtime.adapters.open();
  const store = await adapters.projections.open();
  const nowMs = clock.now();
  const placeAt = (ms: number) => ({
    position: new Date(ms).toISOString(),
    lagSeconds: Math.max(0, Math.round((nowMs - ms) / 1_000)),
  });
  for (const projection of runtime.server.registry.projections.values()) {
    const { name, version } = projection;
    const { all } = await store.active(name, undefined);
    const begun = await store.rebuild(name, undefined);
    const { events } = await adapters.messaging.open();
    const { visible, hidden } = await events.size();
    const waiting = visible + hidden;
    // Searched only if messages are waiting, because the search scans a table.
    const oldestMs = waiting === 0 ? undefined : await oldestUncounted(adapters, projection, nowMs);
    const rebuilding = begun && {
      version: begun.version,
      startedAt: new Date(begun.startedMs).toISOString(),
      tenant: begun.tenant,
      replayed: begun.replayed,
      ...(begun.after === "" ? {} : placeAt(timeOf(begun.after))),
    };
    const facts = { projection: name, declared: version, active: all?.version ?? version, waiting };
    print(JSON.stringify({ ...facts, ...placeAt(oldestMs ?? nowMs), rebuild: rebuilding }));
  }
  return 0;
}
