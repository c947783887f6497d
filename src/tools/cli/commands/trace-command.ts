import { existsSync, statSync } from "node:fs";
import { usesMessages } from "../../../app/registry/registry.ts";
import type { ServerInternals } from "../../../app/server/server.ts";
import { idForm } from "../../../base/request/trace.ts";
import type { CommandContext } from "../setup/command-context.ts";
import {
  defineCommand,
  flag,
  helpOption,
  itsEnvironment,
  messageOf,
  moduleArgument,
  moduleOf,
  timeoutMsOf,
  UsageError,
  type ValuesOf,
} from "../setup/define-command.ts";
import { inTime } from "../setup/in-time.ts";
import { loadServer } from "../setup/load-server.ts";
import type { TraceDocument } from "../trace/document.ts";
import type { TableFacts } from "../trace/node.ts";

export const traceUsage = `Usage: keelson trace <module> [<id>] [options]

Prints what became of a request: its commit, its events, their consumers, jobs and deliveries, as one tree, and the one thing
that is stuck. From logs; tables confirm, by keys alone. It changes nothing.

${moduleArgument}
  <id>                        of a request, an event, a job, a delivery or a trace (default: the logs' last request)

Options:
  --logs <file>               reads log lines, with whatever a collector puts around them; may be repeated; - is standard input
                              (default: in development what the running server has logged)
  --no-tables                 asks no tables
  --timeout-seconds <n>       limit for the tables (default: 10)
  --json                      prints one JSON document
${helpOption}

${itsEnvironment}
Exit codes: 0 nothing is stuck, 1 something is, or it failed, 2 wrong usage, or the ID is not found.`;

const flags = {
  logs: { type: "string", multiple: true, default: [] as string[] },
  "timeout-seconds": { type: "string", default: "10" },
  "no-tables": flag,
  json: flag,
} as const;

export const run = defineCommand({ usage: traceUsage, flags, maxArguments: 2, run: trace });

async function trace(
  { logs, json, "no-tables": isWithoutTables, "timeout-seconds": seconds }: ValuesOf<typeof flags>,
  [given, asked]: readonly string[],
  context: CommandContext,
): Promise<number> {
  const module = moduleOf(given, "trace", " <id>");
  if (asked !== undefined && !new RegExp(`^${idForm}$`).test(asked))
    throw new UsageError("the ID is none: it has 1 to 128 letters, digits and .-_:=+/@");
  const timeoutMs = timeoutMsOf(seconds);
  const [inputs, files] = [
    logs.filter((path) => path === "-"),
    logs.filter((path) => path !== "-"),
  ];
  const missing = files.find((path) => !(existsSync(path) && statSync(path).isFile()));
  if (missing !== undefined)
    throw new UsageError(`there is no file ${JSON.stringify(missing)}; use --logs <file>`);
  if (inputs.length > 1) throw new UsageError("--logs - is given twice");
  if (inputs.length > 0 && context.input === undefined)
    throw new UsageError("nothing comes in on standard input");
  const server = await loadServer(module);
  // Loaded lazily: a usage error does not need AWS code.
  const { developmentDirectory } = await import("../trace/open-tables.ts");
  const { developmentLogFiles } = await import("../../../embedded/stack/development-log.ts");
  const directory = developmentDirectory(server, context.env);
  const kept = directory === undefined ? [] : developmentLogFiles(directory).filter(existsSync);
  const isLive = logs.length === 0;
  const paths = isLive ? kept : logs;
  if (asked === undefined && paths.length === 0)
    throw new UsageError("no ID is given, and no logs that have a last request");
  const tablesMs = isWithoutTables ? 0 : timeoutMs;
  const document = await found({ server, module, paths, asked, isLive, tablesMs }, context);
  if (document === undefined) {
    context.complain(`keelson: no request is in ${paths.join(", ")}`);
    return 2;
  }
  if (document.roots.length === 0) {
    const where =
      paths.length === 0
        ? "no logs were read; give them by --logs <file>"
        : `it is not in ${paths.join(", ")}`;
    const says = `keelson: ${JSON.stringify(document.id)} is not found: ${where}`;
    context.complain([says, ...document.notes].join("\n"));
    return 2;
  }
  const { jsonOf } = await import("../trace/document.ts");
  const { textOf } = await import("../trace/text.ts");
  for (const line of json ? [jsonOf(document)] : textOf(document)) context.print(line);
  return document.stuck === undefined ? 0 : 1;
}

interface Asked {
  readonly server: ServerInternals;
  readonly module: string;
  readonly paths: readonly string[];
  readonly asked: string | undefined;
  /** Whether a running server writes the logs. */
  readonly isLive: boolean;
  /** Time limit for the tables; 0 skips them. */
  readonly tablesMs: number;
}

async function found(
  { server, module, paths, asked, isLive, tablesMs }: Asked,
  context: CommandContext,
): Promise<TraceDocument | undefined> {
  const { env, clock, progress } = context;
  const { openLogs } = await import("../trace/read-logs.ts");
  const { buildTrace } = await import("../trace/build-trace.ts");
  const { withTables } = await import("../trace/open-tables.ts");
  const { askTables } = await import("../trace/tables.ts");
  const { noFacts } = await import("../trace/node.ts");
  const { verdictOf } = await import("../trace/verdict.ts");
  const logs = await openLogs(paths, paths.includes("-") ? context.input?.() : undefined);
  try {
    const id = asked ?? (await logs.lastRequest());
    if (id === undefined) return undefined;
    const { lines, broken, leftOut, lastMs } = await logs.find(id, progress);
    const mentions = broken === 1 ? "line mentions" : "lines mention";
    const notes = broken > 0 ? [`${broken} ${mentions} it and cannot be read.`] : [];
    const consumers = Map.groupBy(server.registry.consumers.values(), ({ type }) => type);
    const build = (nowMs: number, facts: TableFacts) =>
      buildTrace({ id, lines, consumers, facts, nowMs });
    const nowMs = clock.now();
    let facts: TableFacts | undefined;
    if (tablesMs > 0 && usesMessages(server.registry)) {
      try {
        const { roots } = build(nowMs, noFacts);
        const asking = withTables(server, env, (stores) => askTables(stores, { id, roots, nowMs }));
        facts = await inTime(asking, tablesMs, `no answer within ${tablesMs / 1_000} s`);
      } catch (error) {
        const why = messageOf(error);
        notes.push(`The tables are out of reach, so this is what the logs say: ${why}`);
      }
    }
    // Without tables, log files show the state at the time of their last line.
    const isNow = facts !== undefined || isLive;
    const atMs = isNow ? nowMs : Math.min(lastMs ?? nowMs, nowMs);
    const { roots, leftOut: untold } = build(atMs, facts ?? noFacts);
    return {
      id,
      ...verdictOf(roots, { nowMs: atMs, module }),
      roots,
      leftOut: untold + leftOut,
      notes,
      logs: { lines: lines.length, broken },
      tables: facts !== undefined,
    };
  } finally {
    await logs.close();
  }
}
