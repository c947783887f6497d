import { messageClaim } from "../../../app/run/process-message.ts";
import type { AsideStore } from "../../../aws/stores/aside-store.ts";
import { inPool } from "../../../base/process/pool.ts";
import { deliveryJob } from "../../../parts/messages/delivery.ts";
import { duePlace, waitingJob } from "../../../parts/messages/due-jobs.ts";
import { objectOf } from "../../../parts/messages/envelope.ts";
import {
  type OutboxRow,
  type OutboxStore,
  shards,
  timeText,
} from "../../../parts/messages/outbox-store.ts";
import type { ClaimRecord } from "../../../parts/once/claim.ts";
import type { ClaimStore } from "../../../parts/once/claim-store.ts";
import { type StepStanding, type StepStore, stepStanding } from "../../../parts/once/step.ts";
import {
  type ClaimFact,
  noFacts,
  type RowFact,
  runKey,
  type TableFacts,
  type TraceNode,
} from "./node.ts";
import { nodesOf } from "./verdict.ts";

interface Messages {
  readonly outbox: Pick<OutboxStore, "pending">;
  readonly aside: Pick<AsideStore, "list">;
}

export interface TraceStores {
  /** Absent if the server has no messages. */
  readonly messages: Messages | undefined;
  readonly claims: Pick<ClaimStore, "read">;
  readonly steps: Pick<StepStore, "find">;
}

interface Asked {
  readonly id: string;
  readonly roots: readonly TraceNode[];
  readonly nowMs: number;
}

const limits = { reads: 200, atOnce: 10, rowsPerPage: 100, pages: 5, aside: 1_000 };
/** Maximum clock difference between processes. */
const skewMs = 5_000;

export async function askTables(stores: TraceStores, asked: Asked): Promise<TableFacts> {
  const nodes = ownNodes(asked.roots);
  const waiting = await askOutbox(stores.messages, asked, nodes);

  const claims = new Map<string, ClaimFact | undefined>();
  await eachOf(runsOf(nodes), async (run) => {
    const [, handler, subject] = run;
    const record = await stores.claims.read(messageClaim(...run));
    claims.set(runKey(subject, handler), record && claimFact(record));
  });

  const steps = new Map<string, StepStanding>();
  await eachOf(unknownSteps(nodes), async (key) => {
    const step = await stores.steps.find(key);
    if (step === undefined) return;
    const { record } = step;
    const claim = record.status === "STARTED" ? await stores.claims.read(step.claim) : undefined;
    steps.set(key, stepStanding(record, claim, asked.nowMs));
  });
  return { ...noFacts, ...waiting, claims, steps };
}

/** Whether claims or steps can tell more of these nodes than the logs. */
export function hasOpenRuns(roots: readonly TraceNode[]): boolean {
  const nodes = ownNodes(roots);
  return runsOf(nodes).length > 0 || unknownSteps(nodes).length > 0;
}

function ownNodes(roots: readonly TraceNode[]) {
  return [...nodesOf(roots)].filter(({ again }) => again !== true);
}

function unknownSteps(nodes: readonly TraceNode[]) {
  return idsOf(nodes, "step", new Set(["unknown"]));
}

function idsOf(
  nodes: readonly TraceNode[],
  kind: TraceNode["kind"],
  states?: ReadonlySet<string>,
): readonly string[] {
  return nodes.flatMap(({ kind: own, state, id }) => {
    const isAsked = own === kind && (states === undefined || states.has(state));
    return isAsked && id !== undefined ? [id] : [];
  });
}

async function askOutbox(
  messages: Messages | undefined,
  { id, roots, nowMs }: Asked,
  nodes: readonly TraceNode[],
): Promise<Partial<TableFacts>> {
  if (messages === undefined) return {};
  const rows = new Map<string, RowFact>();
  const asked = new Set<string>();
  const ids = new Set([id, ...nodes.flatMap((node) => node.id ?? [])]);
  const take = (row: RowFact) => {
    if (ids.has(row.id) || (row.origRequestId !== undefined && ids.has(row.origRequestId)))
      rows.set(row.id, row);
  };
  const begunMs = roots.map(({ at }) => (at === undefined ? 0 : Date.parse(at)));
  const fromMs = roots.length === 0 ? 0 : Math.min(nowMs, ...begunMs) - skewMs;

  const isWhole = await Promise.all(
    Array.from({ length: shards }, (_, shard) =>
      readShard(messages, `shard#${shard}`, fromMs, nowMs, (row) => take(rowFact("event", row))),
    ),
  );
  if (isWhole.every(Boolean)) for (const eventId of idsOf(nodes, "event")) asked.add(eventId);
  let count = 0;
  for await (const item of messages.aside.list()) {
    take(asideFact(item));
    count += 1;
    if (count >= limits.aside) break;
  }

  const dueIds = new Set([...idsOf(nodes, "job", unseen), ...(roots.length === 0 ? [id] : [])]);
  await eachOf([...dueIds], async (jobId) => {
    const fact = await dueFact(messages, jobId);
    asked.add(jobId);
    if (fact !== undefined) rows.set(jobId, fact);
  });
  return { rows, asked };
}

function claimFact(record: ClaimRecord): ClaimFact {
  if (record.status !== "INPROGRESS") return { isDone: true };
  return { isDone: false, leaseUntilMs: record.leaseUntilMs };
}

const unseen: ReadonlySet<string> = new Set(["not-seen", "unended", "waiting", "taken-back"]);

function eachOf<Item>(items: readonly Item[], work: (item: Item) => Promise<void>) {
  return inPool(items.slice(0, limits.reads), limits.atOnce, work);
}

async function readShard(
  { outbox }: Pick<Messages, "outbox">,
  shard: string,
  fromMs: number,
  nowMs: number,
  take: (row: OutboxRow) => void,
) {
  const until = timeText(nowMs + skewMs);
  let after: string | undefined = fromMs > 0 ? timeText(fromMs) : undefined;
  for (let page = 0; page < limits.pages; page += 1) {
    const rows: readonly OutboxRow[] = await outbox.pending(
      shard,
      until,
      limits.rowsPerPage,
      after,
    );
    for (const row of rows) take(row);
    // Reads on after a short page, because DynamoDB ends a page at 1 MB.
    if (rows.length === 0) return true;
    after = rows.at(-1)?.sort;
  }
  return false;
}

/** A scheduled job's ID contains the key of its outbox row. */
async function dueFact(
  { outbox }: Pick<Messages, "outbox">,
  jobId: string,
): Promise<RowFact | undefined> {
  const place = duePlace(jobId);
  if (place === undefined) return undefined;
  const { shard, sort } = place;
  const rows = await outbox.pending(shard, `${sort} `, 1, sort.slice(0, -1));
  const row = rows.find(({ eventId }) => eventId === jobId);
  return row && rowFact("job", row);
}

function rowFact(kind: RowFact["kind"], row: OutboxRow): RowFact {
  const { eventId: id, type: name, sort, tenantId } = row;
  const text = kind === "event" ? row.text : (waitingJob(row)?.text ?? "");
  return { kind, id, name, atMs: Number(sort.split("#")[0]), ...messageFacts(text), tenantId };
}

function asideFact(item: Readonly<Record<string, unknown>>): RowFact {
  const { sk, eventId, type, tenantId, envelope, asideReason } = item;
  const [time = "", inKey = ""] = String(sk).split("#");
  const row: OutboxRow = {
    ...{ shard: "", sort: time, text: String(envelope ?? "") },
    eventId: String(eventId ?? inKey),
    type: String(type ?? "unknown"),
    tenantId: textOf(tenantId),
  };
  const kind = /#due#\d+$/.test(String(sk)) ? "job" : "event";
  return { ...rowFact(kind, row), aside: String(asideReason) };
}

function messageFacts(text: string) {
  try {
    const { causedBy, origRequestId, trace } = objectOf(text, "the row");
    // Safe cast: the member stays `unknown`.
    const traceparent = (trace as Readonly<Record<string, unknown>> | undefined)?.["traceparent"];
    return {
      causedBy: textOf(causedBy),
      origRequestId: textOf(origRequestId),
      traceId: textOf(traceparent)?.split("-")[1],
    };
  } catch {
    return {};
  }
}

function textOf(value: unknown) {
  return typeof value === "string" ? value : undefined;
}

const open: ReadonlySet<string> = new Set(["not-seen", "unended", "failed", "retrying"]);

type AskedRun = Parameters<typeof messageClaim>;

function runsOf(nodes: readonly TraceNode[]): readonly AskedRun[] {
  return nodes.flatMap(({ kind, id: subject, name, tenantId, state, children }): AskedRun[] => {
    if (subject === undefined) return [];
    if (kind === "event") {
      const consumers = children.filter((one) => one.kind === "consumer" && open.has(one.state));
      return consumers.map((one) => [kind, one.name, subject, tenantId]);
    }
    if ((kind !== "job" && kind !== "delivery") || !open.has(state)) return [];
    return [["job", kind === "delivery" ? deliveryJob : name, subject, tenantId]];
  });
}
