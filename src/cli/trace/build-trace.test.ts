import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { buildTrace } from "./build-trace.ts";
import type { LogRecord } from "./log-records.ts";
import { jsonOf } from "./trace-document.ts";
import { traceLine } from "./trace-line.ts";
import { noFacts, type RowFact, runKey, type TableFacts, type TraceNode } from "./trace-node.ts";
import { textOf } from "./trace-text.ts";
import { nodesOf, verdictOf } from "./trace-verdict.ts";

const startMs = Date.parse("2026-11-02T09:30:00.000Z");
const at = (ms: number) => new Date(startMs + ms).toISOString();

interface Options {
  readonly id?: string;
  readonly facts?: Partial<TableFacts>;
  readonly consumers?: Readonly<Record<string, readonly string[]>>;
  readonly nowMs?: number;
}

function build(records: readonly LogRecord[], { id = "r1", facts = {}, consumers = {}, nowMs = 60_000 }: Options = {}) {
  const lines = records.flatMap((record) => traceLine(record) ?? []);
  const now = startMs + nowMs;
  const built = buildTrace({
    id,
    lines,
    facts: { ...noFacts, ...facts },
    consumers: new Map(Object.entries(consumers)),
    nowMs: now,
  });
  const verdict = verdictOf(built.roots, { nowMs: now, module: "server.ts" });
  return { ...built, ...verdict, id, notes: [], logs: { lines: lines.length, broken: 0 }, tables: false };
}

/** `kind name state` of all nodes, by their depth. */
function outline(roots: readonly TraceNode[], depth = 0): string[] {
  return roots.flatMap(({ kind, name, state, children }) => [
    `${"  ".repeat(depth)}${[kind, name, state].filter(Boolean).join(" ")}`,
    ...outline(children, depth + 1),
  ]);
}

const request = { requestId: "r1", trace_id: "t1", tenantId: "acme", handler: "shop.order.place" };
const completed = {
  ...request,
  msg: "request.completed",
  method: "POST",
  route: "/orders",
  status: 201,
  durationMs: 20,
  time: at(20),
};
const published = { ...request, msg: "event.published", event: "order.placed", publishedId: "e1", time: at(10) };
const ofEvent = { ...request, origRequestId: "r1", causedBy: "r1", eventId: "e1", handler: "shop.order.bill" };
const ended = (fields: object, ms: number) => ({ outcome: "processed", durationMs: 5, attempt: 1, time: at(ms), ...fields });
const consumed = ended({ ...ofEvent, msg: "event.completed", event: "order.placed" }, 40);
const enqueued = { ...ofEvent, msg: "job.enqueued", job: "shop.order.charge", enqueuedId: "j1", time: at(38) };
const ofJob = { ...request, origRequestId: "r1", causedBy: "e1", jobId: "j1", handler: "shop.order.charge" };
const charged = ended({ ...ofJob, msg: "job.completed" }, 60);
const failed = [
  { ...ofJob, msg: "job.failed", error: "internal", status: 500, message: "no money", time: at(60) },
  { ...charged, outcome: "failed" },
];
const queued = {
  origRequestId: "r1",
  causedBy: "e1",
  tenantId: "acme",
  trace_id: "t1",
  job: "shop.order.charge",
  jobId: "j1",
  queue: "jobs",
  reason: "no money",
};
const chain = [completed, published, consumed, enqueued, charged];

describe("a trace", () => {
  test("is a tree of a request, its commit, its events, their consumers, and what these enqueue", () => {
    const { roots, says, stuck } = build(chain);
    expect(outline(roots)).toEqual([
      "request POST /orders done",
      "  commit done",
      "  event order.placed dispatched",
      "    consumer shop.order.bill done",
      "      job shop.order.charge done",
    ]);
    expect(roots[0]).toMatchObject({
      id: "r1",
      tenantId: "acme",
      traceId: "t1",
      status: 201,
      at: at(0),
      sinceMs: 0,
      durationMs: 20,
    });
    const [, event] = roots[0]?.children ?? [];
    expect(event).toMatchObject({ id: "e1", at: at(10), sinceMs: 10 });
    expect(event?.children[0]?.attempts).toEqual([{ attempt: 1, state: "done", durationMs: 5, at: at(35), sinceMs: 35 }]);
    expect([says, stuck]).toEqual(["Nothing is stuck.", undefined]);
  });

  test.each(["r1", "e1", "j1", "t1"])("is found by each of its IDs: %s", (id) => {
    expect(build(chain, { id }).roots).toEqual(build(chain).roots);
  });

  test("of an ID that no line has is none", () => {
    expect(build(chain, { id: "e9" }).roots).toEqual([]);
    expect(build([{ msg: "order.seen", time: at(0) }]).roots).toEqual([]);
  });

  test("without the lines in between says what is not seen", () => {
    expect(outline(build([charged]).roots)).toEqual(["request not-seen", "  message not-seen", "    job shop.order.charge done"]);
    const [message] = build([charged]).roots[0]?.children ?? [];
    expect(message).toMatchObject({ kind: "message", id: "e1", indirect: true });
    expect(build([charged]).says).toContain("2 of these have no end or no line");
    // Without the line of who enqueued it, it is known by which event: not by which of its consumers.
    expect(outline(build([completed, consumed, charged]).roots)).toEqual([
      "request POST /orders done",
      "  event order.placed dispatched",
      "    consumer shop.order.bill done",
      "    job shop.order.charge done",
    ]);
  });

  test("has the consumers that the server declares, where no line is of them", () => {
    const consumers = { "order.placed": ["shop.order.bill", "shop.order.count"] };
    expect(outline(build(chain, { consumers }).roots).slice(2)).toEqual([
      "  event order.placed dispatched",
      "    consumer shop.order.bill done",
      "      job shop.order.charge done",
      "    consumer shop.order.count not-seen",
    ]);
    expect(build(chain, { consumers }).says).toContain("1 of these has no end or no line");
  });

  test("of a request whose lines name no tenant yet, or that failed, is the tenant's", () => {
    const refusal = { ...request, tenantId: undefined, msg: "request_id.rejected", time: at(1) };
    expect(build([...chain, refusal]).roots).toEqual(build(chain).roots);
    const other = { ...completed, tenantId: "globex" };
    expect(build([...chain, refusal, other]).roots).toHaveLength(3);
    const { roots, says } = build([
      { ...request, msg: "request.failed", error: "not_found", status: 404, message: "no order", time: at(20) },
      { ...completed, status: 404 },
    ]);
    expect(roots[0]).toMatchObject({ state: "failed", status: 404, reason: "not_found: no order" });
    expect(says).toBe("Nothing is stuck: the request was answered with 404.");
  });

  test("of a schedule, of a run of the server, and of what a system run enqueues for a tenant", () => {
    const schedule = { requestId: "s1", trace_id: "t2", handler: "shop.bills.monthly", firesAt: at(0) };
    const lines = [
      ended({ ...schedule, msg: "schedule.completed" }, 30),
      { ...schedule, msg: "job.enqueued", job: "shop.order.charge", enqueuedId: "j2", time: at(28) },
      ended(
        { ...ofJob, requestId: "s1", origRequestId: "s1", causedBy: "s1", trace_id: "t2", jobId: "j2", msg: "job.completed" },
        50,
      ),
    ];
    expect(outline(build(lines, { id: "j2" }).roots)).toEqual([
      "schedule shop.bills.monthly done",
      "  job shop.order.charge done",
    ]);
    const run = { requestId: "u1", handler: "keelson.run", trace_id: "t3" };
    expect(outline(build([{ ...run, msg: "run.started", reason: "repair", time: at(0) }], { id: "u1" }).roots)).toEqual([
      "run keelson.run unended",
    ]);
    const gaveUp = { ...schedule, msg: "schedule.gave_up", attempts: 5, time: at(90) };
    const { stuck } = build([{ ...schedule, msg: "schedule.failed", message: "no", time: at(80) }, gaveUp], { id: "s1" });
    expect(stuck).toMatchObject({ kind: "schedule", state: "gave-up", fix: "fix the cause; it fires at its next time" });
  });
});

describe("attempts", () => {
  const retry = { ...queued, msg: "queue.retry", afterMs: 5_000, time: at(61) };
  const letter = { ...queued, msg: "queue.dead_lettered", time: at(62) };
  const until = at(5_061);

  test("that failed come again when their queue says so", () => {
    const { roots, says } = build([...chain.slice(0, 4), ...failed, retry], { nowMs: 1_000 });
    expect([...nodesOf(roots)].at(-1)).toMatchObject({
      kind: "job",
      state: "retrying",
      until,
      reason: "no money",
      queue: "jobs",
    });
    expect(says).toBe(`Nothing is stuck: job shop.order.charge j1 has failed, and comes again at ${until}.`);
    expect(build([...chain.slice(0, 4), ...failed, retry], { nowMs: 3_600_000 }).stuck).toMatchObject({
      state: "retrying",
      fix: "it has not come again: start a process that takes from its queue, or look at its dead-letter queue",
      commands: ["npx keelson doctor server.ts"],
    });
  });

  test("are each told, and the last decides", () => {
    const again = { ...charged, attempt: 2, time: at(5_100) };
    const { roots } = build([...chain.slice(0, 4), ...failed, retry, again]);
    const job = [...nodesOf(roots)].at(-1);
    expect(job).toMatchObject({
      state: "done",
      reason: undefined,
      attempts: [
        { state: "failed", reason: "no money" },
        { state: "done", attempt: 2 },
      ],
    });
    const replayed = { ...charged, replayed: true, attempt: 3, time: at(5_200) };
    expect([...nodesOf(build([...chain.slice(0, 4), replayed]).roots)].at(-1)).toMatchObject({ state: "replayed" });
    const handedBack = { ...charged, outcome: "handed-back", attempt: 3, time: at(5_200) };
    expect([...nodesOf(build([...chain, handedBack]).roots)].at(-1)).toMatchObject({
      state: "done",
      attempts: [{ state: "done" }, { state: "handed-back" }],
    });
  });

  test("without a line at their end, as with `log.requests: false`, are those that failed", () => {
    const lines = [
      failed[0],
      { ...failed[0], time: at(70), message: undefined, error: "internal" },
      { ...ofJob, msg: "order.charging", time: at(90) },
    ];
    const job = [...nodesOf(build([...chain.slice(0, 4), ...(lines as LogRecord[])]).roots)].at(-1);
    expect(job).toMatchObject({
      state: "unended",
      attempts: [{ state: "failed", reason: "no money" }, { state: "failed" }, { state: "unended" }],
    });
  });

  test("that were given up are what is stuck, until they are moved back", () => {
    const lines = [...chain.slice(0, 4), ...failed, letter];
    const { stuck, says } = build(lines);
    expect(says).toBe("Stuck: job shop.order.charge j1");
    expect(stuck).toMatchObject({ kind: "job", id: "j1", state: "dead-lettered", reason: "no money" });
    expect(stuck?.fix).toBe("fix the cause, then move it back from the dead-letter queue of jobs");
    expect(build([...lines, { ...charged, time: at(90_000) }]).stuck).toBeUndefined();
  });

  test("of a delivery whose message is all that is seen of it", () => {
    const { roots } = build([{ ...letter, job: "keelson.delivery.send", jobId: "d1", queue: undefined }], { id: "d1" });
    expect(outline(roots)).toEqual(["request not-seen", "  message not-seen", "    delivery dead-lettered"]);
    expect(
      build([{ ...letter, job: "keelson.delivery.send", jobId: "d1", queue: undefined }], { id: "d1" }).stuck?.fix,
    ).toContain("its dead-letter queue");
  });

  test("of an event that was never run, since its message cannot be read", () => {
    const lost = { ...letter, job: undefined, jobId: undefined, event: "order.placed", eventId: "e1", causedBy: "r1" };
    const { roots, stuck } = build([completed, published, lost]);
    expect(outline(roots).at(-1)).toBe("  event order.placed dead-lettered");
    expect(stuck).toMatchObject({ kind: "event", state: "dead-lettered" });
  });

  test("that failed with nothing more are waited for, and stuck in the end", () => {
    expect(build([...chain.slice(0, 4), ...failed], { nowMs: 1_000 }).says).toContain(
      "has failed, and its queue delivers it again",
    );
    expect(build([...chain.slice(0, 4), ...failed], { nowMs: 900_000 }).stuck).toMatchObject({ state: "failed" });
  });

  test("of requests: a client that was gone, a retry that got the stored answer, one without a status", () => {
    const aborted = { ...completed, aborted: true };
    const again = { ...completed, replayed: true, time: at(300), durationMs: 3 };
    const [root] = build([aborted, again]).roots;
    expect(root).toMatchObject({
      state: "replayed",
      attempts: [{ state: "failed", reason: "the client was gone" }, { state: "replayed" }],
    });
    expect(outline(build([{ ...completed, method: undefined, route: undefined }]).roots)).toEqual([
      "request shop.order.place done",
    ]);
  });
});

describe("claims, commits and steps", () => {
  test("are told as far as lines say", () => {
    const taken = { ...request, msg: "once.taken", time: at(2) };
    expect(outline(build([...chain, taken]).roots)[1]).toBe("  claim taken");
    expect(
      outline(
        build([
          { ...completed, replayed: true },
          { ...taken, msg: "once.replayed" },
        ]).roots,
      ),
    ).toEqual(["request POST /orders replayed", "  claim replayed"]);
    const uncertain = { ...request, msg: "once.commit_uncertain", message: "socket hang up", time: at(5) };
    expect(build([{ ...completed, status: 500 }, uncertain]).stuck).toMatchObject({
      kind: "commit",
      state: "unknown",
      reason: "socket hang up",
      commands: [],
    });
  });

  const step = { ...ofJob, msg: "step.unknown", step: "charge", stepKey: "k1", time: at(59) };
  const lines = [...chain.slice(0, 4), ...failed, step];
  test("of which nobody knows how they ended are what is stuck", () => {
    const { stuck } = build(lines);
    expect(stuck).toMatchObject({ kind: "step", name: "charge", id: "k1", state: "unknown" });
    expect(stuck?.commands[1]).toBe("npx keelson steps resolve server.ts k1 --retry");
  });

  test.each([
    ["done", "done"],
    ["not done", "failed"],
    ["running", "running"],
    ["unknown", "unknown"],
  ] as const)("are as the tables have them: %s", (standing, state) => {
    const { roots } = build(lines, { facts: { steps: new Map([["k1", standing]]) } });
    expect([...nodesOf(roots)].find(({ kind }) => kind === "step")).toMatchObject({ state, confirmed: true });
  });

  test("are over with their run", () => {
    expect(build([...chain, step]).stuck).toBeUndefined();
    expect(build([...lines, { ...step, msg: "step.given", time: at(60) }]).stuck).toBeUndefined();
  });
});

describe("tables", () => {
  const row: RowFact = {
    kind: "event",
    id: "e1",
    name: "order.placed",
    atMs: startMs + 9,
    tenantId: "acme",
    causedBy: "r1",
    origRequestId: "r1",
    traceId: "t1",
  };
  const due: RowFact = { ...row, kind: "job", id: "j9", name: "shop.order.remind", atMs: startMs + 90_000 };
  const rows = (...all: RowFact[]) => ({ rows: new Map(all.map((one) => [one.id, one])) });

  test("say that an event is in the outbox, where it waits for a sweep, and is stuck after two", () => {
    const left = { msg: "event.dispatch_failed", events: ["order.placed e1"], reason: "throttled", time: at(15) };
    const facts = rows(row);
    expect(build([completed, published, left], { facts, nowMs: 5_000 }).says).toBe(
      "Nothing is stuck: event order.placed e1 waits in the outbox for the next sweep.",
    );
    expect(build([completed, published, left], { facts }).stuck).toMatchObject({ state: "in-outbox", reason: "throttled" });
    expect(outline(build([completed], { facts }).roots)).toEqual(["request POST /orders done", "  event order.placed in-outbox"]);
    expect(build([], { facts, id: "e1" }).roots[0]).toMatchObject({
      state: "not-seen",
      children: [{ id: "e1", at: at(9), sinceMs: 0 }],
    });
    // As logs alone say it, and where the tables say that it has gone since.
    expect(build([completed, published, left]).stuck).toMatchObject({ state: "in-outbox" });
    const asked = { asked: new Set(["e1"]) };
    expect(outline(build([completed, published, left], { facts: asked }).roots).at(-1)).toBe("  event order.placed dispatched");
    expect(outline(build([{ ...charged, msg: "order.odd" }], { facts: { asked: new Set(["e1"]) } }).roots)[1]).toBe(
      "  message not-seen",
    );
    expect(
      outline(
        build([{ ...published, eventId: "e0", origRequestId: "r1", causedBy: "r1" }], { facts: { asked: new Set(["e1", "e0"]) } })
          .roots,
      ),
    ).toContain("    consumer shop.order.place unended");
  });

  test("say that an event or a job was set aside", () => {
    const aside = { msg: "event.set_aside", type: "order.placed", eventId: "e1", reason: "MalformedDetail", time: at(15) };
    expect(build([completed, published, aside]).stuck).toMatchObject({
      state: "set-aside",
      reason: "MalformedDetail",
      commands: ["npx keelson outbox list", "npx keelson outbox put-back --event e1"],
    });
    expect(build([completed], { facts: rows({ ...row, aside: "too odd" }) }).stuck).toMatchObject({
      state: "set-aside",
      reason: "too odd",
    });
    const job = { msg: "job.set_aside", job: "shop.order.charge", jobId: "j1", reason: "no job", time: at(50) };
    expect(build([...chain.slice(0, 4), job]).stuck).toMatchObject({
      kind: "job",
      state: "set-aside",
      commands: ["npx keelson outbox list"],
    });
    expect(build([completed], { facts: rows({ ...due, aside: "no job" }) }).stuck).toMatchObject({
      kind: "job",
      state: "set-aside",
    });
  });

  test("say of a job that is due later whether it waits", () => {
    const scheduled = {
      ...request,
      msg: "job.scheduled",
      job: "shop.order.remind",
      scheduledId: "j9",
      dueAt: at(90_000),
      time: at(10),
    };
    const job = (options: Options, ...more: LogRecord[]) =>
      [...nodesOf(build([completed, scheduled, ...more], options).roots)].at(-1);
    const gone = { asked: new Set(["j9"]) };
    expect(job({})).toMatchObject({ state: "waiting", until: at(90_000), confirmed: undefined });
    expect(job({ facts: rows(due) })).toMatchObject({ state: "waiting", confirmed: true });
    expect(job({ facts: gone })).toMatchObject({ state: "taken-back", confirmed: true });
    expect(job({}, { ...request, msg: "job.unscheduled", unscheduledId: "j9", time: at(20) })).toMatchObject({
      state: "taken-back",
    });
    expect(job({ nowMs: 91_000 })).toMatchObject({ state: "not-seen" });
    expect(job({ nowMs: 91_000, facts: gone })).toMatchObject({ state: "not-seen" });
    expect(job({}, { ...scheduled, dueAt: "soon" })).toMatchObject({ state: "waiting" });
    const left = { msg: "job.dispatch_failed", jobs: ["shop.order.remind j9", 7], reason: "throttled", time: at(91_000) };
    expect(build([completed, scheduled, left], { facts: rows(due), nowMs: 300_000 }).stuck).toMatchObject({
      state: "waiting",
      reason: "throttled",
      fix: expect.stringContaining("it is due"),
    });
    expect(outline(build([], { id: "j9", facts: rows({ ...due, causedBy: undefined }) }).roots)).toEqual([
      "job shop.order.remind waiting",
    ]);
  });

  test("say of runs whether they are done, running or cut off", () => {
    const lines = [completed, published, consumed, enqueued];
    const job = (claim: object | undefined, more: readonly LogRecord[] = []) => {
      const facts = { claims: new Map([[runKey("j1", "shop.order.charge"), claim as never]]) };
      const { roots, says, stuck } = build([...lines, ...more], { facts });
      return { ...[...nodesOf(roots)].at(-1), says, stuckState: stuck?.state };
    };
    expect(job({ isDone: true })).toMatchObject({ state: "done", confirmed: true, says: "Nothing is stuck." });
    expect(job({ isDone: false, leaseUntilMs: startMs + 61_000 })).toMatchObject({
      state: "running",
      says: expect.stringContaining(`its claim is held until ${at(61_000)}`),
    });
    expect(job({ isDone: false, leaseUntilMs: startMs + 30_000 }, failed.slice(0, 0))).toMatchObject({
      state: "interrupted",
      says: expect.stringContaining("was cut off"),
    });
    expect(job({ isDone: false, leaseUntilMs: startMs - 900_000 })).toMatchObject({
      state: "interrupted",
      stuckState: "interrupted",
    });
    expect(job(undefined)).toMatchObject({ state: "not-seen" });
  });
});

describe("one delivery that several have sent", () => {
  const send = (requestId: string, ms: number) => ({
    requestId,
    trace_id: requestId,
    tenantId: "acme",
    handler: "shop.order.place",
    msg: "delivery.enqueued",
    channel: "webhook",
    deliveryId: "d1",
    time: at(ms),
  });
  const sent = ended(
    {
      requestId: "r1",
      trace_id: "r1",
      tenantId: "acme",
      origRequestId: "r1",
      causedBy: "r1",
      jobId: "d1",
      handler: "keelson.delivery.send",
      msg: "delivery.completed",
      channel: "webhook",
    },
    90,
  );

  test("stands below the first, and is named by the others", () => {
    const lines = [send("r1", 10), send("r2", 20), sent];
    expect(build(lines).roots).toMatchObject([{ id: "r1", children: [{ kind: "delivery", state: "done" }] }]);
    expect(build(lines, { id: "r2" }).roots).toMatchObject([
      { id: "r2", children: [{ kind: "delivery", state: "done", again: true, children: [] }] },
    ]);
    const { roots } = build([send("r1", 10), send("r2", 20), sent], { id: "d1" });
    expect(roots.map(({ id }) => id)).toEqual(["r1"]);
  });
  test("is nobody's whose tenant is another", () => {
    const { roots } = build([{ ...send("r2", 5), tenantId: "globex" }, sent], { id: "r2" });
    expect(roots[0]?.children).toEqual([]);
  });
  test("is an event as well", () => {
    const event = (requestId: string) => ({ ...published, requestId, trace_id: requestId });
    const { roots } = build([event("r1"), event("r2"), { ...consumed, trace_id: "r1" }], { id: "r2" });
    expect(roots[0]?.children.at(-1)).toMatchObject({ kind: "event", again: true, state: "dispatched" });
  });
});

describe("hostile lines", () => {
  const job = (id: string, causedBy: string) => ended({ ...ofJob, jobId: id, causedBy, msg: "job.completed" }, 50);

  test("that cause each other are told all the same", () => {
    const { roots } = build([job("a", "b"), job("b", "c"), job("c", "b")], { id: "a" });
    expect(outline(roots)).toEqual(["job shop.order.charge done"]);
    expect(outline(build([job("b", "c"), job("c", "b")], { id: "b" }).roots)).toEqual([
      "job shop.order.charge done",
      "  job shop.order.charge done",
      "    job shop.order.charge done",
    ]);
    expect(outline(build([job("a", "a")], { id: "a" }).roots)).toEqual([
      "job shop.order.charge done",
      "  job shop.order.charge done",
    ]);
  });

  test("of a million children, a deep chain and many requests are bounded, and say how much is left out", () => {
    const many = Array.from({ length: 21_000 }, (_, index) => ({ ...published, publishedId: `e${index}` }));
    const wide = build([completed, ...many]);
    expect(wide.leftOut).toBe(1_000);
    expect(textOf(wide).length).toBeLessThan(40);
    expect(textOf(wide).join("\n")).toMatch(/… and 19981 more/);
    const deep = build(Array.from({ length: 200 }, (_, index) => job(`j${index + 1}`, index === 0 ? "r1" : `j${index}`)));
    expect(deep.leftOut).toBeGreaterThan(0);
    expect(build(Array.from({ length: 50 }, (_, index) => ({ ...completed, trace_id: `t${index}` }))).leftOut).toBe(30);
  });
});

/** What really happened: a request, and what follows from it. */
interface Made {
  readonly kind: "event" | "job" | "delivery";
  readonly failures: number;
  readonly children: readonly Made[];
}
const made: fc.Arbitrary<Made> = fc.letrec<{ made: Made }>((tie) => ({
  made: fc.record({
    kind: fc.constantFrom("event", "job", "delivery"),
    failures: fc.nat(2),
    children: fc.oneof({ maxDepth: 3 }, fc.constant([]), fc.array(tie("made"), { maxLength: 3 })),
  }),
})).made;
interface Asked {
  readonly requestId: string;
  readonly tenantId: string;
  readonly made: readonly Made[];
}
const requests: fc.Arbitrary<Asked[]> = fc.array(
  fc.record({
    requestId: fc.constantFrom("r1", "r2"),
    tenantId: fc.constantFrom("acme", "globex"),
    made: fc.array(made, { maxLength: 3 }),
  }),
  { minLength: 1, maxLength: 4 },
);

/** The lines of requests, and who has caused what. */
function happening(asked: readonly Asked[]): { records: LogRecord[]; edges: Set<string> } {
  const [records, edges]: [LogRecord[], Set<string>] = [[], new Set()];
  let ids = 0;
  const write = (record: object) => void records.push({ ...record, time: at(records.length * 3) });
  for (const [index, { requestId, tenantId, made }] of asked.entries()) {
    const request = { requestId, trace_id: `t${index}`, tenantId, handler: "shop.order.place" };
    const follow = (by: object, causedBy: string, from: string, all: readonly Made[]) => {
      for (const { kind, failures, children } of all) {
        ids += 1;
        const id = `${kind}${ids}`;
        edges.add(`${from} > ${id}`);
        const own =
          kind === "event"
            ? { eventId: id, handler: "shop.order.bill" }
            : { jobId: id, handler: kind === "job" ? "shop.order.charge" : "keelson.delivery.send" };
        if (kind === "event") write({ ...by, msg: "event.published", event: "order.placed", publishedId: id });
        else if (kind === "job") write({ ...by, msg: "job.enqueued", job: "shop.order.charge", enqueuedId: id });
        else write({ ...by, msg: "delivery.enqueued", channel: "webhook", deliveryId: id });
        const run = { ...request, ...own, origRequestId: requestId, causedBy };
        for (let attempt = 1; attempt <= failures; attempt += 1) {
          write({ ...run, msg: `${kind === "event" ? "event" : "job"}.failed`, message: "no" });
          write({ ...run, msg: `${kind}.completed`, outcome: "failed", attempt, durationMs: 1 });
        }
        follow(run, id, id, children);
        write({ ...run, msg: `${kind}.completed`, outcome: "processed", attempt: failures + 1, durationMs: 1 });
      }
    };
    follow(request, requestId, `${requestId} ${tenantId} t${index}`, made);
    write({ ...request, msg: "request.completed", method: "POST", route: "/orders", status: 201, durationMs: 9 });
  }
  return { records, edges };
}

/** Who stands below whom, as far as the tree says that nothing lies between. */
function told(roots: readonly TraceNode[]): string[] {
  const found: string[] = [];
  const walk = (node: TraceNode, carrier: string) => {
    const own = node.kind === "request" ? `${node.id} ${node.tenantId} ${node.traceId}` : (node.id ?? carrier);
    if (node.id !== undefined && carrier !== "" && node.kind !== "consumer" && node.indirect === undefined)
      found.push(`${carrier} > ${node.id}`);
    for (const child of node.children) walk(child, own);
  };
  for (const root of roots) walk(root, "");
  return found;
}

describe("whatever the lines", () => {
  test("their order does not matter", () => {
    fc.assert(
      fc.property(
        requests,
        fc.constantFrom("r1", "r2", "t0", "event1", "job2"),
        fc.infiniteStream(fc.nat()),
        (asked, id, order) => {
          const { records } = happening(asked);
          const shuffled = records.map((record) => ({ record, at: order.next().value })).sort((one, other) => one.at - other.at);
          expect(
            build(
              shuffled.map(({ record }) => record),
              { id },
            ),
          ).toEqual(build(records, { id }));
        },
      ),
    );
  });

  test("any part of them gives no edge that is not", () => {
    fc.assert(
      fc.property(requests, fc.infiniteStream(fc.boolean()), (asked, stays) => {
        const { records, edges } = happening(asked);
        const some = records.filter(() => stays.next().value);
        for (const id of ["r1", "r2", "t0", "event1", "job2"]) {
          expect(told(build(some, { id }).roots).filter((edge) => !edges.has(edge))).toEqual([]);
        }
        // All of them give every edge.
        const all = ["r1", "r2"].flatMap((id) => told(build(records, { id }).roots));
        expect([...edges].filter((edge) => !all.includes(edge))).toEqual([]);
      }),
    );
  });

  test("nothing throws, and nothing of them reaches the terminal unescaped", () => {
    const id = fc.constantFrom("r1", "a", "b", "c");
    const text = fc.oneof(id, fc.string({ unit: "binary", maxLength: 12 }), fc.constant("\u001b[31m\u009b2J\u202e\r\n"));
    const field = fc.oneof(text, fc.double(), fc.boolean(), fc.constant(null), fc.array(text, { maxLength: 3 }));
    const msg = fc.constantFrom(
      ...[
        "request.completed",
        "event.published",
        "job.enqueued",
        "job.scheduled",
        "job.unscheduled",
        "delivery.enqueued",
        "event.completed",
      ],
      ...[
        "job.completed",
        "event.failed",
        "job.failed",
        "queue.retry",
        "queue.dead_lettered",
        "event.set_aside",
        "event.dispatch_failed",
      ],
      ...["step.unknown", "schedule.gave_up", "run.failed", "once.taken", "once.commit_uncertain", "__proto__", "constructor"],
    );
    const names = [
      "requestId",
      "origRequestId",
      "causedBy",
      "eventId",
      "jobId",
      "publishedId",
      "enqueuedId",
      "scheduledId",
      "deliveryId",
      "unscheduledId",
    ];
    const record = fc
      .tuple(
        msg,
        fc.integer({ min: -9e15, max: 9e15 }),
        fc.dictionary(fc.constantFrom(...names), id),
        fc.dictionary(
          fc.constantFrom(
            "handler",
            "tenantId",
            "trace_id",
            "reason",
            "message",
            "status",
            "durationMs",
            "attempt",
            "afterMs",
            "dueAt",
            "events",
            "step",
            "stepKey",
            "firesAt",
            "route",
            "outcome",
            "event",
            "job",
            "channel",
          ),
          field,
        ),
      )
      .map(([msg, time, ids, fields]) => ({ msg, time, ...fields, ...ids }));
    fc.assert(
      fc.property(fc.array(record, { maxLength: 30 }), (records) => {
        const built = build(records);
        const printed = [...textOf(built), jsonOf(built).replaceAll("\n", "")].join("");
        expect(printed).not.toMatch(/[\p{Cc}\u202a-\u202e\u2066-\u2069]/u);
        expect(JSON.parse(jsonOf(built))).toEqual(JSON.parse(JSON.stringify(built)));
      }),
    );
  });
});
