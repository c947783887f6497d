import { describe, expect, test } from "vitest";
import { messageClaim } from "../../../app/run/process-message.ts";
import { dueId, dueRow } from "../../../parts/messages/due-jobs.ts";
import { type OutboxRow, timeText } from "../../../parts/messages/outbox-store.ts";
import { type ClaimRecord, keyText } from "../../../parts/once/claim.ts";
import type { ListedStep } from "../../../parts/once/step.ts";
import { runKey, type TraceNode } from "./node.ts";
import { askTables, hasOpenRuns, type TraceStores } from "./tables.ts";

const nowMs = 1_700_000_000_000;

interface Stored {
  readonly rows?: readonly OutboxRow[];
  readonly aside?: readonly Readonly<Record<string, unknown>>[];
  readonly claims?: Readonly<Record<string, ClaimRecord>>;
  readonly steps?: Readonly<Record<string, Partial<ListedStep>>>;
}

function stores({ rows = [], aside = [], claims = {}, steps = {} }: Stored) {
  const asked: string[] = [];
  const made: TraceStores = {
    messages: {
      outbox: {
        pending: async (shard, before, limit, after = "") => {
          asked.push(`${shard} ${after}`);
          const found = rows.filter(
            (row) => row.shard === shard && row.sort < before && row.sort > after,
          );
          return found.sort((one, other) => (one.sort < other.sort ? -1 : 1)).slice(0, limit);
        },
      },
      aside: {
        list: async function* () {
          yield* aside;
        },
      },
    },
    claims: {
      read: async (key) => {
        asked.push(`claim ${key.sort}`);
        return claims[keyText(key)];
      },
    },
    steps: { find: async (key) => steps[key] as ListedStep | undefined }, // safe: what is asked of it is there
  };
  return { stores: made, asked };
}

const envelope = {
  eventId: "e1",
  type: "order.placed",
  causedBy: "r1",
  origRequestId: "r1",
  trace: { traceparent: "00-aaa-bbb-01" },
};
const row = (
  id: string,
  atMs: number,
  message: unknown = { ...envelope, eventId: id },
): OutboxRow => {
  return {
    shard: "shard#3",
    sort: `${timeText(atMs)}#${id}`,
    eventId: id,
    type: "order.placed",
    tenantId: "acme",
    text: JSON.stringify(message),
  };
};
const node = (
  kind: TraceNode["kind"],
  state: TraceNode["state"],
  more: Partial<TraceNode> = {},
): TraceNode => ({
  kind,
  name: "shop.order.charge",
  state,
  children: [],
  ...more,
});
const tree = (...children: readonly TraceNode[]) => [
  node("request", "done", { id: "r1", at: new Date(nowMs - 1_000).toISOString(), children }),
];
const ask = (stored: Stored, roots: readonly TraceNode[] = tree(), id = "r1") =>
  askTables(stores(stored).stores, { id, roots, nowMs });

describe("the outbox", () => {
  test("is queried for rows since the request, and returns those of the request", async () => {
    const { stores: made, asked } = stores({
      rows: [
        row("e1", nowMs - 500),
        row("e2", nowMs - 400, { causedBy: "r9", origRequestId: "r9" }),
        row("e3", nowMs - 60_000),
      ],
    });
    const facts = await askTables(made, {
      id: "r1",
      roots: tree(node("event", "dispatched", { id: "e1" })),
      nowMs,
    });
    expect([...facts.rows.values()]).toEqual([
      {
        kind: "event",
        id: "e1",
        name: "order.placed",
        atMs: nowMs - 500,
        tenantId: "acme",
        causedBy: "r1",
        origRequestId: "r1",
        traceId: "aaa",
      },
    ]);
    expect(facts.asked).toEqual(new Set(["e1"]));
    expect(asked.slice(0, 8).sort()).toEqual(
      Array.from({ length: 8 }, (_, shard) => `shard#${shard} ${timeText(nowMs - 6_000)}`),
    );
  });

  test("returns an event by its ID alone, whatever its row contains", async () => {
    for (const message of ["{", { trace: 7 }, { causedBy: 7 }, { trace: { traceparent: 1 } }]) {
      const stored = {
        ...row("e1", nowMs - 90_000),
        text: typeof message === "string" ? message : JSON.stringify(message),
      };
      expect([...(await ask({ rows: [stored] }, [], "e1")).rows.keys()]).toEqual(["e1"]);
    }
    const unknown = [node("request", "not-seen", { id: "r1" })];
    expect((await ask({ rows: [row("e1", 5)] }, unknown)).rows.size).toBe(1);
  });

  test("does not rule out an event if it has more rows than are read", async () => {
    const rows = Array.from({ length: 700 }, (_, index) =>
      row(`x${String(index).padStart(3, "0")}`, nowMs - 500, {}),
    );
    expect((await ask({ rows }, tree(node("event", "dispatched", { id: "e1" })))).asked).toEqual(
      new Set(),
    );
  });

  test("returns rows that were set aside, up to the limit", async () => {
    const item = (id: string, shard: string, more: object = {}) => ({
      pk: "aside",
      sk: `${timeText(nowMs - 500)}#${id}#${shard}`,
      asideReason: "too odd",
      ...more,
    });
    const found = await ask(
      {
        aside: [
          item("e1", "shard#3"),
          item("j1", "due#1", {
            eventId: "j1",
            type: "shop.order.charge",
            tenantId: "acme",
            envelope: "d g {}",
          }),
          item("e9", "shard#1"),
        ],
      },
      tree(node("event", "dispatched", { id: "e1" }), node("job", "not-seen", { id: "j1" })),
    );
    expect([...found.rows.values()]).toMatchObject([
      { kind: "event", id: "e1", name: "unknown", aside: "too odd", atMs: nowMs - 500 },
      { kind: "job", id: "j1", name: "shop.order.charge", tenantId: "acme" },
    ]);
    const many = Array.from({ length: 1_001 }, (_, index) =>
      item(index === 1_000 ? "e1" : "x", "shard#3"),
    );
    expect((await ask({ aside: many }, [], "e1")).rows.size).toBe(0);
  });

  test("returns a delayed job by its ID", async () => {
    const jobId = dueId(nowMs + 90_000, "later");
    const text = JSON.stringify({ jobId, causedBy: "r1", origRequestId: "r1" });
    const due = dueRow({
      jobId,
      name: "shop.order.remind",
      tenantId: "acme",
      group: "g",
      deduplicationId: "d",
      text,
    });
    const other = { ...due, eventId: "other", sort: `${due.sort}!` };
    expect((await ask({ rows: [other, due] }, [], jobId)).rows.get(jobId)).toEqual({
      ...{
        kind: "job",
        id: jobId,
        name: "shop.order.remind",
        atMs: nowMs + 90_000,
        tenantId: "acme",
      },
      ...{ causedBy: "r1", origRequestId: "r1" },
    });
    const gone = await ask(
      {},
      tree(
        node("job", "waiting", { id: jobId }),
        node("job", "not-seen", { id: "none" }),
        node("job", "done", { id: "j3" }),
      ),
    );
    expect([gone.rows.size, gone.asked]).toEqual([0, new Set([jobId, "none"])]);
    const odd = { ...due, text: "odd" };
    expect((await ask({ rows: [odd] }, [], jobId)).rows.get(jobId)).not.toHaveProperty("causedBy");
  });
});

describe("claims and steps", () => {
  const key = (kind: "event" | "job", handler: string, id: string) =>
    keyText(messageClaim(kind, handler, id, "acme"));
  const common = { owner: "o", expiresAt: 0 };

  test("are read only for runs without a completion line", async () => {
    const consumers = [
      node("consumer", "not-seen", { name: "a.b.c" }),
      node("consumer", "done", { name: "a.b.d" }),
    ];
    const nodes = tree(
      node("event", "dispatched", { id: "e1", tenantId: "acme", children: consumers }),
      node("job", "failed", { id: "j1", tenantId: "acme" }),
      node("delivery", "unended", { id: "d1", tenantId: "acme", name: "webhook" }),
      node("job", "done", { id: "j2", tenantId: "acme" }),
      node("job", "failed", { id: "j3", tenantId: "acme", again: true }),
      node("message", "not-seen", { id: "m1" }),
    );
    const { claims } = await ask(
      {
        claims: {
          [key("event", "a.b.c", "e1")]: { ...common, status: "COMPLETED" },
          [key("job", "keelson.delivery.send", "d1")]: {
            ...common,
            status: "INPROGRESS",
            leaseUntilMs: 7,
          },
        },
      },
      nodes,
    );
    expect(claims).toEqual(
      new Map<string, unknown>([
        [runKey("e1", "a.b.c"), { isDone: true }],
        [runKey("j1", "shop.order.charge"), undefined],
        [runKey("d1", "keelson.delivery.send"), { isDone: false, leaseUntilMs: 7 }],
      ]),
    );
  });

  test("give the status of steps", async () => {
    const claim = messageClaim("job", "a.b.c", "j1", "acme");
    const nodes = tree(
      ...["k1", "k2", "k3"].map((id) => node("step", "unknown", { id })),
      node("step", "done", { id: "k4" }),
    );
    const steps = {
      k1: { claim, record: { ...common, status: "STARTED" } },
      k2: { claim, record: { ...common, status: "NOT_DONE" } },
    } as const;
    const found = await ask(
      {
        steps,
        claims: { [keyText(claim)]: { ...common, status: "INPROGRESS", leaseUntilMs: nowMs } },
      },
      nodes,
    );
    expect(found.steps).toEqual(
      new Map([
        ["k1", "running"],
        ["k2", "not done"],
      ]),
    );
  });

  test("are read without an outbox, by a server that has no messages", async () => {
    const claim = messageClaim("job", "a.b.c", "j1", "acme");
    const steps = { k1: { claim, record: { ...common, status: "NOT_DONE" } } } as const;
    const stored = {
      steps,
      claims: { [key("event", "a.b.c", "e1")]: { ...common, status: "COMPLETED" } as const },
    };
    const nodes = tree(
      node("step", "unknown", { id: "k1" }),
      node("event", "dispatched", {
        ...{ id: "e1", tenantId: "acme" },
        children: [node("consumer", "unended", { name: "a.b.c" })],
      }),
    );
    const made = { ...stores(stored).stores, messages: undefined };
    expect(await askTables(made, { id: "r1", roots: nodes, nowMs })).toEqual({
      rows: new Map(),
      asked: new Set(),
      claims: new Map([[runKey("e1", "a.b.c"), { isDone: true }]]),
      steps: new Map([["k1", "not done"]]),
    });
  });

  test("can tell more than the logs only of an unknown step and of an open run", () => {
    expect(hasOpenRuns(tree(node("step", "done", { id: "k1" })))).toBe(false);
    expect(hasOpenRuns(tree(node("step", "unknown", { id: "k1" })))).toBe(true);
    expect(hasOpenRuns(tree(node("step", "unknown", { id: "k1", again: true })))).toBe(false);
    expect(hasOpenRuns(tree(node("job", "unended", { id: "j1" })))).toBe(true);
  });

  test("are read for at most 200 nodes", async () => {
    const { stores: made, asked } = stores({});
    const nodes = Array.from({ length: 300 }, (_, index) =>
      node("delivery", "not-seen", { id: `d${index}` }),
    );
    await askTables(made, { id: "r1", roots: tree(...nodes), nowMs });
    expect(asked.filter((one) => one.startsWith("claim")).length).toBe(200);
  });
});
