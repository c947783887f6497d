import { keptEventsTable } from "../../../app/handlers/table.ts";
import { oldestUncounted } from "../../../app/projections/projection-versions.ts";
import { type RebuildProgress, rebuild, type UncountedEvent } from "../../../app/run/rebuild.ts";
import type { Runtime } from "../../../app/runtime/runtime.ts";
import { timeOf } from "../../../parts/messages/kept-events.ts";
import {
  actionOf,
  type CommandContext,
  defineCommand,
  flag,
  itsEnvironment,
  listed,
  moduleArgument,
  moduleOf,
  oneLine,
  optionLines,
  options,
  refuse,
  refuseArgument,
  required,
  text,
  type ValuesOf,
} from "../setup/define-command.ts";
import { onItsServer } from "../setup/its-server.ts";
import { jsonFlag, printRows } from "../setup/print-rows.ts";
import { rowsRead } from "../setup/shown-scan.ts";

const ofRebuild = {
  tenant: text("<id>", "only this tenant, which then has its own version"),
  partial: flag("continues without the events that have expired"),
};
const flags = { ...ofRebuild, ...jsonFlag };

const actions = { rebuild: true, status: true };

export const command = defineCommand({
  name: "projection",
  actions,
  usage: `Usage: keelson projection rebuild <module> <name> [options]
       keelson projection status <module> [--json]

rebuild replays kept events into the declared version of a projection while the active version is still read, then
activates the new one. If it is interrupted, the next call continues. Deploy the new version everywhere first.
status prints the versions of each projection, and how far behind it is.

${moduleArgument}
${listed({ "<name>": "the projection: files.usage" })}

Options of rebuild:
${optionLines(ofRebuild)}

${options(jsonFlag)}

${itsEnvironment}
Exit codes: 0 done, 1 failed, stopped, or events of a tenant could not be counted, 2 wrong usage.`,
  flags,
  maxArguments: 3,
  run: async (values, [given, path, name], context) => {
    const action = actionOf(actions, given);
    const module = moduleOf(path, `projection ${action}`);
    const { tenant, partial, json } = values;
    if (action === "status") {
      refuseArgument(name);
      if (tenant !== undefined || partial) refuse("--tenant and --partial are options of rebuild");
      return onItsServer(module, context, async (runtime, there) => {
        await printRows(standings(runtime, there), values, there, "no projection is declared");
        return 0;
      });
    }
    if (json) refuse("--json is an option of status");
    if (tenant === "") refuse("--tenant is empty; use --tenant <id>");
    const wanted = required(name, "no projection is given; name one that the module declares");
    return onItsServer(module, context, (runtime, there) => make(runtime, wanted, values, there));
  },
});

const mostNamed = 20;

async function make(
  runtime: Runtime,
  name: string,
  { tenant: tenantId, partial: isPartial }: ValuesOf<typeof flags>,
  { print, complain, progress, stopping }: CommandContext,
) {
  const { projections } = runtime.server.registry;
  const projection = projections.get(name);
  if (projection === undefined) {
    const known = [...projections.keys()].join(", ") || "none";
    refuse(`the module declares no projection ${JSON.stringify(name)}; it declares ${known}`);
  }
  let uncounted = 0;
  const tell = ({ tenantId, type, eventId, reason }: UncountedEvent) => {
    uncounted += 1;
    if (uncounted > mostNamed) return;
    complain(
      `keelson: ${oneLine(type)} ${JSON.stringify(eventId)} of ${tenantText(tenantId)} is not counted: ${oneLine(reason)}`,
    );
  };
  const signal = stopping?.();
  const table = runtime.tableName(keptEventsTable.name);
  const rebuilt = await rebuild(runtime, {
    ...{ projection, tenantId, isPartial, signal, tell },
    onPage: (scanned) => progress?.(rowsRead(table, scanned)),
    onProgress: (reached) => progress?.(progressText(reached)),
  }).finally(() => progress?.(""));
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
  complain(
    `keelson: not whole: ${notWhole(lost).join("; ")}: fix the projection, or let the events expire, and rebuild again`,
  );
  return 1;
}

function progressText({ replayed, ended, tenants }: RebuildProgress): string {
  return `${ended} of ${tenants} tenants, ${replayed} events replayed`;
}

/** Says who is not whole, and which version they read. */
function notWhole(lost: readonly string[]) {
  const sorted = lost.toSorted(); // "" first
  const shown = sorted.slice(0, mostNamed).map((tenant) => tenantText(tenant || undefined));
  const more = lost.length > mostNamed ? ` and ${lost.length - mostNamed} more` : "";
  return [
    `${shown.join(", ")}${more}`,
    ...(sorted.at(-1) === "" ? [] : ["a tenant that is not keeps the version that it reads"]),
    ...(sorted[0] === "" ? ["reads without a tenant use the version of all tenants"] : []),
  ];
}

function tenantText(tenantId: string | undefined) {
  return tenantId === undefined ? "no tenant" : JSON.stringify(tenantId);
}

async function* standings(
  runtime: Pick<Runtime, "server" | "adapters">,
  { clock }: CommandContext,
) {
  const adapters = await runtime.adapters.open();
  const store = await adapters.projections.open();
  const nowMs = clock.now();
  const isoOf = (ms: number) => new Date(ms).toISOString();
  const placeAt = (ms: number) => ({
    position: isoOf(ms),
    lagSeconds: Math.max(0, Math.round((nowMs - ms) / 1_000)),
  });
  for (const projection of runtime.server.registry.projections.values()) {
    const { name, version: declared } = projection;
    const { all } = await store.active(name, undefined);
    const begun = await store.rebuild(name, undefined);
    const { events } = await adapters.messaging.open();
    const { visible, hidden } = await events.size();
    const waiting = visible + hidden;
    // Searched only if messages are waiting, because the search scans a table.
    const oldestMs = waiting === 0 ? undefined : await oldestUncounted(adapters, projection, nowMs);
    const facts = { projection: name, declared, active: all?.version ?? declared, waiting };
    const rebuild = begun && {
      version: begun.version,
      startedAt: isoOf(begun.startedMs),
      tenant: begun.tenant,
      replayed: begun.replayed,
      ...(begun.after !== "" && placeAt(timeOf(begun.after))),
    };
    yield { ...facts, ...placeAt(oldestMs ?? nowMs), rebuild };
  }
}
