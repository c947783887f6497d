import { messageClaim } from "../../../app/run/consume.ts";
import type { AsideStore } from "../../../aws/stores/aside-store.ts";
import { deliveryJob } from "../../../parts/messages/delivery.ts";
import { objectOf } from "../../../parts/messages/envelope.ts";
import { duePlace, waitingJob } from "../../../parts/messages/later.ts";
import {
  type OutboxRow,
  type OutboxStore,
  shards,
  timeText,
} from "../../../parts/messages/outbox-store.ts";
import type { ClaimStore } from "../../../parts/once/claim-store.ts";
import { stepStanding } from "../../../parts/once/step.ts";
import type { StepStore } from "../../../parts/once/step-store.ts";
import { type ClaimFact, type RowFact, runKey, type TableFacts, type TraceNode } from "./node.ts";
import { nodesOf } from "./verdict.ts";

export interface TraceStores {
  readonly outbox: Pick<OutboxStore, "pending">;
  readonly aside: Pick<AsideStore, "list">;
  readonly claims: Pick<ClaimStore, "read">;
  readonly steps: Pick<StepStore, "find">;
}

const limits = Object.freeze({ reads: 200, atOnce: 10, rowsPerPage: 100, pages: 5, aside: 1_000 });
/** Clock difference between processes. */
const skewMs = 5_000;

/** Looks up what the logs leave open, by keys alone. */
export async function askTables(
  stores: TraceStores,
  {
    id,
    roots,
    nowMs,
  }: { readonly id: string; readonly roots: readonly TraceNode[]; readonly nowMs: number },
): Promise<TableFacts> {
  const nodes = [...nodesOf(roots)].filter(({ again }) => again !== true);
  const rows = new Map<string, RowFact>();
  const asked = new Set<string>();
  const ids = new Set([id, ...nodes.flatMap((node) => node.id ?? [])]);
  const isOurs = (row: RowFact) =>
    ids.has(row.id) || (row.origRequestId !== undefined && ids.has(row.origRequestId));
  const firstMs = roots.reduce(
    (least, { at }) => Math.min(least, at === undefined ? 0 : Date.parse(at)),
    nowMs,
  );

  const isWhole = await Promise.all(
    Array.from({ length: shards }, (_, shard) =>
      readShard(
        stores,
        `shard#${shard}`,
        roots.length === 0 ? 0 : firstMs - skewMs,
        nowMs,
        (row) => {
          const fact = eventFact(row);
          if (isOurs(fact)) rows.set(fact.id, fact);
        },
      ),
    ),
  );
  for (const node of nodes)
    if (node.kind === "event" && node.id !== undefined && isWhole.every(Boolean))
      asked.add(node.id);
  let count = 0;
  for await (const item of stores.aside.list()) {
    const fact = asideFact(item);
    if (isOurs(fact)) rows.set(fact.id, fact);
    count += 1;
    if (count >= limits.aside) break;
  }

  const dueIds = nodes.flatMap(({ kind, state, id: jobId }) =>
    kind === "job" && jobId !== undefined && unseen.has(state) ? [jobId] : [],
  );
  await eachOf([...new Set([...dueIds, ...(roots.length === 0 ? [id] : [])])], async (jobId) => {
    const fact = await dueFact(stores, jobId);
    asked.add(jobId);
    if (fact !== undefined) rows.set(jobId, fact);
  });

  const claims = new Map<string, ClaimFact | undefined>();
  await eachOf(runsOf(nodes), async ({ kind, handler, subject, tenantId }) => {
    const record = await stores.claims.read(messageClaim(kind, handler, subject, tenantId));
    const fact =
      record?.status === "INPROGRESS"
        ? { isDone: false as const, leaseUntilMs: record.leaseUntilMs }
        : { isDone: true as const };
    claims.set(runKey(subject, handler), record === undefined ? undefined : fact);
  });

  const steps = new Map<string, ReturnType<typeof stepStanding>>();
  await eachOf(
    nodes.flatMap(({ kind, state, id: key }) =>
      kind === "step" && state === "unknown" && key !== undefined ? [key] : [],
    ),
    async (key) => {
      const step = await stores.steps.find(key);
      if (step === undefined) return;
      const claim =
        step.record.status === "STARTED" ? await stores.claims.read(step.claim) : undefined;
      steps.set(key, stepStanding(step.record, claim, nowMs));
    },
  );
  return { rows, asked, claims, steps };
}

const unseen: ReadonlySet<string> = new Set(["not-seen", "unended", "waiting", "taken-back"]);

async function eachOf<Item>(
  items: readonly Item[],
  work: (item: Item) => Promise<void>,
): Promise<void> {
  const left = items.slice(0, limits.reads).reverse();
  const next = async (): Promise<void> => {
    for (let item = left.pop(); item !== undefined; item = left.pop()) await work(item);
  };
  await Promise.all(Array.from({ length: limits.atOnce }, next));
}

/** Returns whether it read all rows of the shard. */
async function readShard(
  { outbox }: TraceStores,
  shard: string,
  fromMs: number,
  nowMs: number,
  take: (row: OutboxRow) => void,
): Promise<boolean> {
  let after: string | undefined = fromMs > 0 ? timeText(fromMs) : undefined;
  for (let page = 0; page < limits.pages; page += 1) {
    const rows: readonly OutboxRow[] = await outbox.pending(
      shard,
      timeText(nowMs + skewMs),
      limits.rowsPerPage,
      after,
    );
    for (const row of rows) take(row);
    // A short page can have a successor, because DynamoDB ends a page at 1 MB.
    if (rows.length === 0) return true;
    after = rows.at(-1)?.sort;
  }
  return false;
}

/** The ID of a job contains its place. */
async function dueFact({ outbox }: TraceStores, jobId: string): Promise<RowFact | undefined> {
  const place = duePlace(jobId);
  if (place === undefined) return undefined;
  const { shard, sort } = place;
  const rows = await outbox.pending(shard, `${sort} `, 1, sort.slice(0, -1));
  const row = rows.find(({ eventId }) => eventId === jobId);
  return row === undefined ? undefined : jobFact(row);
}

function eventFact(row: OutboxRow): RowFact {
  return {
    kind: "event",
    id: row.eventId,
    name: row.type,
    atMs: timeOf(row.sort),
    ...messageFacts(row.text),
    tenantId: row.tenantId,
  };
}

function jobFact(row: OutboxRow): RowFact {
  const text = waitingJob(row)?.text ?? "";
  return {
    kind: "job",
    id: row.eventId,
    name: row.type,
    atMs: timeOf(row.sort),
    ...messageFacts(text),
    tenantId: row.tenantId,
  };
}

function asideFact(item: Readonly<Record<string, unknown>>): RowFact {
  const { sk, eventId, type, tenantId, envelope, asideReason } = item;
  const [time = "", inKey = ""] = String(sk).split("#");
  const isJob = /#due#\d+$/.test(String(sk));
  const row: OutboxRow = {
    ...{
      shard: "",
      sort: time,
      eventId: String(eventId ?? inKey),
      type: String(type ?? "unknown"),
      text: String(envelope ?? ""),
    },
    tenantId: typeof tenantId === "string" ? tenantId : undefined,
  };
  return {
    ...(isJob ? jobFact(row) : eventFact(row)),
    atMs: Number(time),
    aside: String(asideReason),
  };
}

function messageFacts(text: string): Pick<RowFact, "causedBy" | "origRequestId" | "traceId"> {
  try {
    const { causedBy, origRequestId, trace } = objectOf(text, "the row");
    const traceparent = (trace as Readonly<Record<string, unknown>> | undefined)?.["traceparent"]; // safe: only one member is read, as `unknown`
    return {
      ...texts({
        causedBy,
        origRequestId,
        traceId: typeof traceparent === "string" ? traceparent.split("-")[1] : undefined,
      }),
    };
  } catch {
    return {};
  }
}

function texts(given: Readonly<Record<string, unknown>>): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Object.entries(given).filter(
      (entry): entry is [string, string] => typeof entry[1] === "string",
    ),
  );
}

function timeOf(sort: string): number {
  return Number(sort.split("#")[0]);
}

interface AskedRun {
  readonly kind: "event" | "job";
  readonly handler: string;
  readonly subject: string;
  readonly tenantId: string | undefined;
}

function runsOf(nodes: readonly TraceNode[]): readonly AskedRun[] {
  const open: ReadonlySet<string> = new Set(["not-seen", "unended", "failed", "retrying"]);
  return nodes.flatMap(({ kind, id, name, tenantId, state, children }) => {
    if (id === undefined) return [];
    if (kind === "event") {
      const consumers = children.filter(
        (child) => child.kind === "consumer" && open.has(child.state),
      );
      return consumers.map(
        ({ name: handler }): AskedRun => ({ kind: "event", handler, subject: id, tenantId }),
      );
    }
    if ((kind !== "job" && kind !== "delivery") || !open.has(state)) return [];
    return [
      {
        kind: "job",
        handler: kind === "delivery" ? deliveryJob : name,
        subject: id,
        tenantId,
      } satisfies AskedRun,
    ];
  });
}
