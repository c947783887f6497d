import { existsSync, statSync } from "node:fs";
import { idForm } from "../../../base/request/trace.ts";
import { developmentLogFiles } from "../../../embedded/stack/development-log.ts";
import {
  type CommandContext,
  defineCommand,
  flag,
  itsEnvironment,
  listed,
  moduleArgument,
  moduleOf,
  options,
  refuse,
  textOr,
  texts,
  timeoutMsOf,
  type ValuesOf,
} from "../setup/define-command.ts";
import { loadServer } from "../setup/load-server.ts";
import { textOf } from "../trace/text.ts";

const flags = {
  logs: texts(
    "<file>",
    "reads log lines, with or without a collector's wrapping; may be repeated; - is standard input\n(default: in development, the log of the running server)",
  ),
  "no-tables": flag("does not read tables"),
  "timeout-seconds": textOr("10", "<n>", "limit for the tables"),
  json: flag("prints one JSON document"),
} as const;

const id = "of a request, an event, a job, a delivery or a trace (default: the logs' last request)";

export const command = defineCommand({
  name: "trace",
  usage: `Usage: keelson trace <module> [<id>] [options]

Prints a request and its effects as one tree: its commit, its events, their consumers, jobs and deliveries, and the
message that is stuck. It reads logs, and confirms them with the tables, by key only. It is read-only.

${moduleArgument}
${listed({ "<id>": id })}

${options(flags)}

${itsEnvironment}
Exit codes: 0 nothing is stuck; 1 something is, the ID is not found, or it failed; 2 wrong usage.`,
  flags,
  maxArguments: 2,
  run: trace,
});

async function trace(
  { logs, json, "no-tables": isWithoutTables, "timeout-seconds": seconds }: ValuesOf<typeof flags>,
  [given, asked]: readonly string[],
  context: CommandContext,
) {
  const module = moduleOf(given, "trace", " <id>");
  if (asked !== undefined && !new RegExp(`^${idForm}$`).test(asked))
    refuse("the ID is not valid: use 1 to 128 letters, digits and .-_:=+/@");
  const timeoutMs = timeoutMsOf(seconds);
  const files = logs.filter((path) => path !== "-");
  const inputs = logs.length - files.length;
  const missing = files.find((path) => !existsSync(path));
  if (missing !== undefined)
    refuse(`there is no file ${JSON.stringify(missing)}; use --logs <file>`);
  const other = files.find((path) => !statSync(path).isFile());
  if (other !== undefined)
    refuse(
      `${JSON.stringify(other)} is not a regular file, and a log is read several times; pipe it in with --logs -`,
    );
  if (inputs > 1) refuse("--logs - is given twice");
  if (inputs > 0 && context.input === undefined) refuse("nothing comes in on standard input");
  const server = await loadServer(module);
  // Loaded lazily: a usage error does not need AWS code.
  const { developmentDirectory, jsonOf, traceDocument } = await import("../trace/document.ts");
  const directory = developmentDirectory(server, context.env);
  const kept = directory === undefined ? [] : developmentLogFiles(directory).filter(existsSync);
  const isLive = logs.length === 0;
  const paths = isLive ? kept : logs;
  if (asked === undefined && paths.length === 0)
    refuse("no ID is given, and no logs that have a last request");
  const tablesMs = isWithoutTables ? 0 : timeoutMs;
  const stdin = inputs > 0 ? context.input?.() : undefined;
  const document = await traceDocument(
    { server, module, paths, stdin, asked, isLive, tablesMs },
    context,
  );
  if (document === undefined) {
    context.complain(`keelson: no request is in ${paths.join(", ")}`);
    return 1;
  }
  if (document.roots.length === 0) {
    const where =
      paths.length === 0
        ? "no logs were read; give them by --logs <file>"
        : `it is not in ${paths.join(", ")}`;
    const says = `keelson: ${JSON.stringify(document.id)} is not found: ${where}`;
    context.complain([says, ...document.notes].join("\n"));
    return 1;
  }
  for (const line of json ? [jsonOf(document)] : textOf(document)) context.print(line);
  return document.stuck === undefined ? 0 : 1;
}
