import type { Readable } from "node:stream";
import { usesMessages } from "../../../app/registry/registry.ts";
import type { ServerInternals } from "../../../app/server/server.ts";
import { type CommandContext, inTime, messageOf } from "../setup/define-command.ts";
import { buildTrace } from "./build-trace.ts";
import { noFacts, type TableFacts, type TraceNode } from "./node.ts";
import { withTables } from "./open-tables.ts";
import { openLogs } from "./read-logs.ts";
import { askTables } from "./tables.ts";
import { type Verdict, verdictOf } from "./verdict.ts";

export interface TraceDocument extends Verdict {
  readonly id: string;
  readonly roots: readonly TraceNode[];
  /** Number of nodes beyond the limits. */
  readonly leftOut: number;
  /** Messages about lines and tables that could not be read. */
  readonly notes: readonly string[];
  readonly logs: { readonly lines: number; readonly broken: number };
  readonly tables: boolean;
}

export interface Asked {
  readonly server: ServerInternals;
  readonly module: string;
  readonly paths: readonly string[];
  readonly stdin: Readable | undefined;
  /** Default: the last request of the logs. */
  readonly asked: string | undefined;
  /** Whether a running server writes the logs. */
  readonly isLive: boolean;
  /** Time limit for the tables; 0 skips them. */
  readonly tablesMs: number;
}

/** Returns `undefined` if no ID is asked for and the logs have no request. */
export async function traceDocument(
  { server, module, paths, stdin, asked, isLive, tablesMs }: Asked,
  { env, clock, progress }: CommandContext,
): Promise<TraceDocument | undefined> {
  const logs = await openLogs(paths, stdin);
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

/** Escapes control characters, which could act on a terminal. */
export function jsonOf(document: TraceDocument): string {
  return JSON.stringify(document, undefined, 2).replaceAll(/[^\n\P{C}]/gu, (character) =>
    character
      .split("")
      .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`)
      .join(""),
  );
}
