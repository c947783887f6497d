import type { Readable } from "node:stream";
import { onceTable, outboxTable, physicalTableName } from "../../../app/handlers/table.ts";
import { usesMessages } from "../../../app/registry/registry.ts";
import type { ServerInternals } from "../../../app/server/server.ts";
import { dynamoAsideStore } from "../../../aws/stores/aside-store.ts";
import { dynamoClaimStore } from "../../../aws/stores/claim-store.ts";
import { dynamoOutbox } from "../../../aws/stores/outbox-store.ts";
import { dynamoSteps } from "../../../aws/stores/step-store.ts";
import { embeddedDirectory, type Variables } from "../../../base/process/environment.ts";
import { servedFrom } from "../../../embedded/service/data-directory.ts";
import { receivedName } from "../../../parts/messages/received-event.ts";
import { type CommandContext, inTime, messageOf } from "../setup/define-command.ts";
import { awsPlace, withDatabase } from "../setup/its-server.ts";
import { buildTrace } from "./build-trace.ts";
import { noFacts, type TableFacts, type TraceNode } from "./node.ts";
import { openLogs } from "./read-logs.ts";
import { askTables, hasOpenRuns, type TraceStores } from "./tables.ts";
import { type Verdict, verdictOf } from "./verdict.ts";

export interface TraceDocument extends Verdict {
  readonly id: string;
  readonly roots: readonly TraceNode[];
  /** Number of nodes beyond the limits. */
  readonly leftOut: number;
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
    const { consumers: own, receivers } = server.registry;
    const consumers = new Map<string, readonly { readonly name: string }[]>([
      ...Map.groupBy(own.values(), ({ type }) => type),
      ...Map.groupBy(receivers.values(), receivedName),
    ]);
    const build = (nowMs: number, facts: TableFacts) =>
      buildTrace({ id, lines, consumers, facts, nowMs });
    const nowMs = clock.now();
    let facts: TableFacts | undefined;
    const logged = tablesMs > 0 ? build(nowMs, noFacts).roots : [];
    if (tablesMs > 0 && (usesMessages(server.registry) || hasOpenRuns(logged))) {
      try {
        const question = { id, roots: logged, nowMs };
        const asking = withTables(server, env, (stores) => askTables(stores, question));
        facts = await inTime(asking, tablesMs, `no answer within ${tablesMs / 1_000} s`);
      } catch (error) {
        const why = messageOf(error);
        notes.push(`The tables cannot be read, so this is based only on the logs: ${why}`);
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

/** Escapes control characters: they could act on a terminal. */
export function jsonOf(document: TraceDocument): string {
  return JSON.stringify(document, undefined, 2).replaceAll(/[^\n\P{C}]/gu, (character) =>
    character
      .split("")
      .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`)
      .join(""),
  );
}

export function developmentDirectory(
  { environment }: Pick<ServerInternals, "environment">,
  env: Variables,
): string | undefined {
  return environment === "development" ? embeddedDirectory(env, environment) : undefined;
}

/**
 * Runs `work` on the server's tables: at the endpoint of the options or environment; without one,
 * in development, in the process that runs on the data directory; otherwise in AWS. Does not create tables.
 *
 * @throws Error if no process runs on the data directory.
 */
async function withTables<Result>(
  server: ServerInternals,
  env: Variables,
  work: (stores: TraceStores) => Promise<Result>,
): Promise<Result> {
  const { endpoint, prefix = "keelson" } = server.options.dynamodb ?? {};
  const place = awsPlace(env, "DYNAMODB", endpoint);
  const directory = place.endpoint === undefined ? developmentDirectory(server, env) : undefined;
  const once = physicalTableName(onceTable.name, prefix, env);
  const outbox = physicalTableName(outboxTable.name, prefix, env);
  return withDatabase(directory === undefined ? place : placeOf(directory), (database) =>
    work({
      messages: usesMessages(server.registry)
        ? { outbox: dynamoOutbox(database, outbox), aside: dynamoAsideStore(database, outbox) }
        : undefined,
      claims: dynamoClaimStore(database, once),
      steps: dynamoSteps(database, once),
    }),
  );
}

function placeOf(directory: string) {
  const served = servedFrom(directory);
  if (served === undefined) throw new Error(`no process runs on ${directory}`);
  const { port, region } = served;
  return {
    endpoint: `http://127.0.0.1:${port}`,
    region,
    credentials: { accessKeyId: "embedded", secretAccessKey: "embedded" },
  };
}
