import { describe, expect, test } from "vitest";
import {
  at,
  build,
  chain,
  charged,
  completed,
  consumed,
  ended,
  enqueued,
  failed,
  type Options,
  ofJob,
  outline,
  published,
  queued,
  request,
  startMs,
} from "../../../../test/fixtures/trace-records.ts";
import type { LogRecord } from "./log-records.ts";
import { type RowFact, runKey } from "./node.ts";
import { nodesOf } from "./verdict.ts";

describe("a trace", () => {
  test("is a tree of a request, its commit, its events, their consumers, and the jobs these enqueue", () => {
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
    expect(event?.children[0]?.attempts).toEqual([
      { attempt: 1, state: "done", durationMs: 5, at: at(35), sinceMs: 35 },
    ]);
    expect([says, stuck]).toEqual(["Nothing is stuck.", undefined]);
  });

  test("of an event of others begins with the event, which is its own cause", () => {
    const own = { requestId: "o1", origRequestId: "o1", trace_id: "t2" };
    const handler = "uploads.upload.stored";
    const received = { ...own, causedBy: "o1", eventId: "o1", handler };
    const event = "aws.s3 Object Created";
    const scan = { ...own, causedBy: "o1", jobId: "j9", handler: "uploads.upload.scan" };
    const records = [
      { ...received, msg: "job.enqueued", job: scan.handler, enqueuedId: "j9", time: at(3) },
      ended({ ...received, msg: "event.completed", event }, 5),
      ended({ ...scan, msg: "job.completed" }, 9),
      // The line that names its sender is lost.
      ended({ ...scan, msg: "job.completed", jobId: "j8" }, 10),
    ];
    const consumers = { [event]: [handler, "uploads.upload.audited"] };
    const { roots } = build(records, { id: "o1", consumers });
    expect(outline(roots)).toEqual([
      `event ${event} dispatched`,
      "  consumer uploads.upload.audited not-seen",
      `  consumer ${handler} done`,
      "    job uploads.upload.scan done",
      "  job uploads.upload.scan done",
    ]);
    expect(build(records, { id: "j8", consumers }).roots).toEqual(roots);
  });

  test.each(["r1", "e1", "j1", "t1"])("is found by each of its IDs: %s", (id) => {
    expect(build(chain, { id }).roots).toEqual(build(chain).roots);
  });

  test("of an unknown ID is empty", () => {
    expect(build(chain, { id: "e9" }).roots).toEqual([]);
    expect(build([{ msg: "order.seen", time: at(0) }]).roots).toEqual([]);
  });

  test("marks nodes without a line of their own as not seen", () => {
    expect(outline(build([charged]).roots)).toEqual([
      "request not-seen",
      "  message not-seen",
      "    job shop.order.charge done",
    ]);
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

  test("sorts consumers that no line mentions by name", () => {
    const consumers = { "order.placed": ["shop.b", "shop.c", "shop.a"] };
    const unseen = outline(build(chain, { consumers }).roots).filter((row) => /not-seen/.test(row));
    expect(unseen).toEqual(["a", "b", "c"].map((name) => `    consumer shop.${name} not-seen`));
  });

  test("includes the consumers that the server declares but no line mentions", () => {
    const consumers = { "order.placed": ["shop.order.bill", "shop.order.count"] };
    expect(outline(build(chain, { consumers }).roots).slice(2)).toEqual([
      "  event order.placed dispatched",
      "    consumer shop.order.bill done",
      "      job shop.order.charge done",
      "    consumer shop.order.count not-seen",
    ]);
    expect(build(chain, { consumers }).says).toContain("1 of these has no end or no line");
  });

  test("of a request includes lines without a tenant, and shows the reason of a failed one", () => {
    const refusal = { ...request, tenantId: undefined, msg: "request_id.rejected", time: at(1) };
    expect(build([...chain, refusal]).roots).toEqual(build(chain).roots);
    const other = { ...completed, tenantId: "globex" };
    expect(build([...chain, refusal, other]).roots).toHaveLength(3);
    const { roots, says } = build([
      {
        ...request,
        msg: "request.failed",
        error: "not_found",
        status: 404,
        message: "no order",
        time: at(20),
      },
      { ...completed, status: 404 },
    ]);
    expect(roots[0]).toMatchObject({ state: "failed", status: 404, reason: "not_found: no order" });
    expect(build([{ ...request, msg: "request.failed", time: at(20) }]).roots[0]).toMatchObject({
      state: "failed",
      reason: undefined,
    });
    expect(
      build([{ ...request, msg: "request.failed", error: "odd", message: "why", time: at(20) }])
        .roots[0],
    ).toMatchObject({
      reason: "why",
    });
    expect(says).toBe("Nothing is stuck: the request was answered with 404.");
  });

  test("starts at a schedule, at a run of the server, or at a system run that enqueues a tenant's job", () => {
    const schedule = {
      requestId: "s1",
      trace_id: "t2",
      handler: "shop.bills.monthly",
      firesAt: at(0),
    };
    const lines = [
      ended({ ...schedule, msg: "schedule.completed" }, 30),
      {
        ...schedule,
        msg: "job.enqueued",
        job: "shop.order.charge",
        enqueuedId: "j2",
        time: at(28),
      },
      ended(
        {
          ...ofJob,
          requestId: "s1",
          origRequestId: "s1",
          causedBy: "s1",
          trace_id: "t2",
          jobId: "j2",
          msg: "job.completed",
        },
        50,
      ),
    ];
    expect(outline(build(lines, { id: "j2" }).roots)).toEqual([
      "schedule shop.bills.monthly done",
      "  job shop.order.charge done",
    ]);
    const run = { requestId: "u1", handler: "keelson.run", trace_id: "t3" };
    expect(
      outline(
        build([{ ...run, msg: "run.started", reason: "repair", time: at(0) }], { id: "u1" }).roots,
      ),
    ).toEqual(["run keelson.run unended"]);
    const gaveUp = { ...schedule, msg: "schedule.gave_up", attempts: 5, time: at(90) };
    const { stuck } = build(
      [{ ...schedule, msg: "schedule.failed", message: "no", time: at(80) }, gaveUp],
      { id: "s1" },
    );
    expect(stuck).toMatchObject({
      kind: "schedule",
      state: "gave-up",
      fix: "fix the cause; it fires at its next time",
    });
  });
});

describe("attempts", () => {
  const retry = { ...queued, msg: "queue.retry", afterMs: 5_000, time: at(61) };
  const letter = { ...queued, msg: "queue.dead_lettered", time: at(62) };
  const until = at(5_061);

  test("that failed are retried at the time that their queue logged", () => {
    const { roots, says } = build([...chain.slice(0, 4), ...failed, retry], { nowMs: 1_000 });
    expect([...nodesOf(roots)].at(-1)).toMatchObject({
      kind: "job",
      state: "retrying",
      until,
      reason: "no money",
      queue: "jobs",
    });
    expect(says).toBe(
      `Nothing is stuck: job shop.order.charge j1 has failed, and is retried at ${until}.`,
    );
    expect(
      build([...chain.slice(0, 4), ...failed, retry], { nowMs: 3_600_000 }).stuck,
    ).toMatchObject({
      state: "retrying",
      fix: "it has not been redelivered: start a process that takes messages from its queue, or look at its dead-letter queue",
      commands: ["npx keelson doctor server.ts"],
    });
  });

  test("are all listed, and the last one decides the state", () => {
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
    expect([...nodesOf(build([...chain.slice(0, 4), replayed]).roots)].at(-1)).toMatchObject({
      state: "replayed",
    });
    const handedBack = { ...charged, outcome: "handed-back", attempt: 3, time: at(5_200) };
    expect([...nodesOf(build([...chain, handedBack]).roots)].at(-1)).toMatchObject({
      state: "done",
      attempts: [{ state: "done" }, { state: "handed-back" }],
    });
  });

  test("are dated by the first one, and consumers are sorted by name with their jobs below them", () => {
    const again = { ...consumed, replayed: true, attempt: 2, time: at(5_000) };
    const other = { ...consumed, handler: "shop.order.audit", time: at(45) };
    const beside = { ...other, handler: "shop.order.archive" };
    const long = { ...consumed, handler: "shop.order.long", durationMs: 30, time: at(50) };
    const [, event] = build([...chain, other, beside, long, again]).roots[0]?.children ?? [];

    expect(event?.children.map(({ name, at: began, sinceMs }) => [name, began, sinceMs])).toEqual([
      ["shop.order.archive", at(40), 40],
      ["shop.order.audit", at(40), 40],
      ["shop.order.bill", at(35), 35],
      ["shop.order.long", at(20), 20],
    ]);
    expect(event?.children[2]?.children[0]).toMatchObject({
      name: "shop.order.charge",
      sinceMs: 38,
    });
  });

  test("without a completion line, as with `log.requests: false`, count as failed", () => {
    const lines = [
      failed[0],
      { ...failed[0], time: at(70), message: undefined, error: "internal" },
      { ...ofJob, msg: "order.charging", time: at(90) },
    ];
    const job = [...nodesOf(build([...chain.slice(0, 4), ...(lines as LogRecord[])]).roots)].at(-1);
    expect(job).toMatchObject({
      state: "unended",
      attempts: [
        { state: "failed", reason: "no money" },
        { state: "failed" },
        { state: "unended" },
      ],
    });
  });

  test("that failed have ended, even with another line at the same time", () => {
    const lines = [failed[0], { ...ofJob, msg: "order.seen", time: at(60) }] as LogRecord[];
    expect(
      [...nodesOf(build([...chain.slice(0, 4), ...lines], { nowMs: 1_000 }).roots)].at(-1),
    ).toMatchObject({
      state: "failed",
    });
  });

  test("that end in a dead-letter queue are stuck until their message is moved back", () => {
    const lines = [...chain.slice(0, 4), ...failed, letter];
    const { stuck, says } = build(lines);
    expect(says).toBe("Stuck: job shop.order.charge j1");
    expect(stuck).toMatchObject({
      kind: "job",
      id: "j1",
      state: "dead-lettered",
      reason: "no money",
    });
    expect(stuck?.fix).toBe("fix the cause, then move it back from its dead-letter queue");
    expect(stuck?.commands).toEqual(["npx keelson queue move-back -- server.ts jobs j1"]);
    const unnamed = build([...chain.slice(0, 4), ...failed, { ...letter, queue: undefined }]).stuck;
    expect(unnamed?.commands).toEqual(["npx keelson queue move-back -- server.ts <queue> j1"]);
    expect(build([...lines, { ...charged, time: at(90_000) }]).stuck).toBeUndefined();
    // Moved back, and failed anew.
    const anew = { ...charged, outcome: "failed", time: at(90_000) };
    expect([...nodesOf(build([...lines, anew], { nowMs: 91_000 }).roots)].at(-1)).toMatchObject({
      state: "failed",
    });
  });

  test("of a delivery are shown with a dead-letter line alone", () => {
    const { roots } = build(
      [{ ...letter, job: "keelson.delivery.send", jobId: "d1", queue: undefined }],
      { id: "d1" },
    );
    expect(outline(roots)).toEqual([
      "request not-seen",
      "  message not-seen",
      "    delivery dead-lettered",
    ]);
    expect(
      build([{ ...letter, job: "keelson.delivery.send", jobId: "d1", queue: undefined }], {
        id: "d1",
      }).stuck?.fix,
    ).toContain("its dead-letter queue");
  });

  test("of an event that never ran show an unreadable message as dead-lettered", () => {
    const lost = {
      ...letter,
      job: undefined,
      jobId: undefined,
      event: "order.placed",
      eventId: "e1",
      causedBy: "r1",
    };
    const { roots, stuck } = build([completed, published, lost]);
    expect(outline(roots).at(-1)).toBe("  event order.placed dead-lettered");
    expect(stuck).toMatchObject({ kind: "event", state: "dead-lettered" });
  });

  test("that failed without a retry line wait for redelivery, and are stuck in the end", () => {
    expect(build([...chain.slice(0, 4), ...failed], { nowMs: 1_000 }).says).toContain(
      "has failed, and its queue delivers it again",
    );
    expect(build([...chain.slice(0, 4), ...failed], { nowMs: 900_000 }).stuck).toMatchObject({
      state: "failed",
    });
  });

  test("of requests show a disconnected client, a retry with the stored answer, and a missing status", () => {
    const aborted = { ...completed, aborted: true };
    const again = { ...completed, replayed: true, time: at(300), durationMs: 3 };
    const [root] = build([aborted, again]).roots;
    expect(root).toMatchObject({
      state: "replayed",
      attempts: [{ state: "failed", reason: "the client disconnected" }, { state: "replayed" }],
    });
    expect(outline(build([{ ...completed, method: undefined, route: undefined }]).roots)).toEqual([
      "request shop.order.place done",
    ]);
  });
});

describe("incomplete lines are shown as far as they go:", () => {
  const bare = { requestId: "r1", tenantId: "acme" };
  test.each<[string, readonly LogRecord[], string, readonly string[]]>([
    [
      "a job that is only taken back",
      [{ ...bare, msg: "job.canceled", canceledId: "j9", time: at(1) }],
      "j9",
      ["job taken-back"],
    ],
    [
      "a line without the ID of what it has made",
      [
        { ...bare, msg: "job.canceled", time: at(1) },
        { ...bare, msg: "job.enqueued", job: "a.b.c", time: at(1) },
      ],
      "r1",
      ["request unended"],
    ],
    [
      "a request without a trace, a name or a duration",
      [{ ...bare, msg: "request.completed", status: 200, time: at(1) }],
      "r1",
      ["request done"],
    ],
    [
      "an event without a type",
      [completed, { ...published, event: undefined }],
      "r1",
      ["request POST /orders done", "  commit done", "  event dispatched"],
    ],
    [
      "a retry without a time",
      [
        completed,
        published,
        { ...queued, msg: "queue.retry", jobId: undefined, eventId: "e1", time: at(30) },
      ],
      "r1",
      ["request POST /orders done", "  commit done", "  event order.placed retrying"],
    ],
    [
      "a retry of what nobody has enqueued",
      [{ ...queued, msg: "queue.retry", causedBy: undefined, time: at(30) }],
      "j1",
      ["job shop.order.charge retrying"],
    ],
    [
      "a retry that does not say of what",
      [
        completed,
        { ...queued, msg: "queue.retry", jobId: undefined, requestId: "r1", time: at(30) },
      ],
      "r1",
      ["request POST /orders done"],
    ],
    [
      "a run that does not say which",
      [completed, { ...ofJob, handler: undefined, msg: "job.completed", time: at(30) }],
      "r1",
      ["request POST /orders done"],
    ],
    [
      "a delivery without a channel",
      [
        completed,
        ended(
          { ...ofJob, handler: "keelson.delivery.send", causedBy: "r1", msg: "delivery.completed" },
          50,
        ),
      ],
      "r1",
      ["request POST /orders done", "  delivery done"],
    ],
    [
      "an event of which only the refusal is seen",
      [{ msg: "event.set_aside", type: "order.placed", eventId: "e1", time: at(30) }],
      "e1",
      ["event order.placed set-aside"],
    ],
    [
      "a delivery of which only the dead letter is seen",
      [
        {
          ...queued,
          msg: "queue.dead_lettered",
          job: "keelson.delivery.send",
          causedBy: "r1",
          time: at(30),
        },
      ],
      "j1",
      ["request not-seen", "  delivery dead-lettered"],
    ],
    [
      "a consumer that failed for good",
      [
        completed,
        published,
        { ...consumed, outcome: "failed" },
        {
          ...queued,
          msg: "queue.dead_lettered",
          jobId: undefined,
          job: undefined,
          eventId: "e1",
          time: at(50),
        },
      ],
      "r1",
      [
        "request POST /orders done",
        "  commit done",
        "  event order.placed dispatched",
        "    consumer shop.order.bill dead-lettered",
      ],
    ],
    [
      "a job of two handlers",
      [
        completed,
        charged,
        { ...charged, causedBy: "r1", handler: "shop.order.former", time: at(70) },
      ],
      "j1",
      ["request POST /orders done", "  message not-seen", "    job shop.order.charge done"],
    ],
  ])("%s", (_, records, id, expected) => {
    const { roots } = build(records, { id });
    expect(outline(roots)).toEqual(expected);
  });

  test("names a node without an ID in the verdict, and lists a request that was not seen first", () => {
    const aborted = { ...bare, msg: "once.commit_uncertain", time: at(1) };
    expect(build([aborted]).says).toBe("Stuck: commit");
    const other = ended({ ...ofJob, trace_id: "t2", causedBy: "r1", msg: "job.completed" }, 50);
    expect(build([completed, other]).roots.map(({ state }) => state)).toEqual(["not-seen", "done"]);
  });
});

test("reports the first of two equally stuck nodes, and a worse one before both", () => {
  const letter = (jobId: string, ms: number) => ({
    ...queued,
    jobId,
    causedBy: "r1",
    msg: "queue.dead_lettered",
    time: at(ms),
  });
  const left = { msg: "event.dispatch_failed", events: ["order.placed e1"], time: at(15) };
  expect(
    build([completed, published, left, letter("j7", 80), letter("j8", 90)], { nowMs: 900_000 })
      .stuck,
  ).toMatchObject({
    id: "j7",
  });
});

test("reports the first of the nodes that run or wait", () => {
  const step = {
    ...ofJob,
    msg: "step.unrecorded",
    step: "charge",
    stepKey: "k1",
    reason: "throttled",
    time: at(59),
  };
  const { says } = build([...chain.slice(0, 4), step], {
    facts: { steps: new Map([["k1", "running" as const]]) },
  });
  expect(says).toBe("Nothing is stuck: step charge k1 is running.");
});

test("reads timestamps of Powertools, and ignores lines of browsers and lines without a valid time or message", () => {
  const { time, ...fields } = completed;
  expect(build([{ ...fields, timestamp: time }]).roots).toEqual(build([completed]).roots);
  expect(build([{ ...fields, time: Date.parse(time) }]).roots).toEqual(build([completed]).roots);
  for (const odd of [
    { source: "client" },
    { time: "soon" },
    { time: 9e15 },
    { msg: "x".repeat(300) },
    { msg: 7 },
  ]) {
    expect(build([{ ...completed, ...odd }]).roots).toEqual([]);
  }
});

describe("claims, commits and steps", () => {
  test("are shown from the lines alone", () => {
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
    const uncertain = {
      ...request,
      msg: "once.commit_uncertain",
      message: "socket hang up",
      time: at(5),
    };
    expect(build([{ ...completed, status: 500 }, uncertain]).stuck).toMatchObject({
      kind: "commit",
      state: "unknown",
      reason: "socket hang up",
      commands: [],
    });
  });

  const step = { ...ofJob, msg: "step.unknown", step: "charge", stepKey: "k1", time: at(59) };
  const lines = [...chain.slice(0, 4), ...failed, step];
  test("with an unknown outcome are stuck", () => {
    const { stuck } = build(lines);
    expect(stuck).toMatchObject({ kind: "step", name: "charge", id: "k1", state: "unknown" });
    expect(stuck?.commands[1]).toBe("npx keelson steps resolve server.ts k1 --retry");
  });

  test.each([
    ["done", "done"],
    ["not done", "failed"],
    ["running", "running"],
    ["unknown", "unknown"],
  ] as const)("have the state that the tables confirm: %s", (standing, state) => {
    const { roots } = build(lines, { facts: { steps: new Map([["k1", standing]]) } });
    expect([...nodesOf(roots)].find(({ kind }) => kind === "step")).toMatchObject({
      state,
      confirmed: true,
    });
  });

  test("are no longer stuck once their run is over", () => {
    expect(build([...chain, step]).stuck).toBeUndefined();
    expect(build([...lines, { ...step, msg: "step.given", time: at(60) }]).stuck).toBeUndefined();
  });
});

describe("the tables", () => {
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
  const due: RowFact = {
    ...row,
    kind: "job",
    id: "j9",
    name: "shop.order.remind",
    atMs: startMs + 90_000,
  };
  const rows = (...all: RowFact[]) => ({ rows: new Map(all.map((one) => [one.id, one])) });

  test("show an event in the outbox, which waits for a sweep and is stuck after two", () => {
    const left = {
      msg: "event.dispatch_failed",
      events: ["order.placed e1"],
      reason: "throttled",
      time: at(15),
    };
    const facts = rows(row);
    expect(build([completed, published, left], { facts, nowMs: 5_000 }).says).toBe(
      "Nothing is stuck: event order.placed e1 waits in the outbox for the next sweep.",
    );
    expect(build([completed, published, left], { facts }).stuck).toMatchObject({
      state: "in-outbox",
      reason: "throttled",
    });
    expect(outline(build([completed], { facts }).roots)).toEqual([
      "request POST /orders done",
      "  event order.placed in-outbox",
    ]);
    expect(build([], { facts, id: "e1" }).roots[0]).toMatchObject({
      state: "not-seen",
      children: [{ id: "e1", at: at(9), sinceMs: 0 }],
    });
    expect(outline(build([left], { id: "e1" }).roots)).toEqual(["event in-outbox"]);
    // As logs alone say it, and where the tables say that it has gone since.
    expect(build([completed, published, left]).stuck).toMatchObject({ state: "in-outbox" });
    const asked = { asked: new Set(["e1"]) };
    expect(outline(build([completed, published, left], { facts: asked }).roots).at(-1)).toBe(
      "  event order.placed dispatched",
    );
    expect(
      outline(
        build([{ ...charged, msg: "order.odd" }], { facts: { asked: new Set(["e1"]) } }).roots,
      )[1],
    ).toBe("  message not-seen");
    expect(
      outline(
        build([{ ...published, eventId: "e0", origRequestId: "r1", causedBy: "r1" }], {
          facts: { asked: new Set(["e1", "e0"]) },
        }).roots,
      ),
    ).toContain("    consumer shop.order.place unended");
  });

  test("show an event or a job that was set aside", () => {
    const aside = {
      msg: "event.set_aside",
      type: "order.placed",
      eventId: "e1",
      reason: "MalformedDetail",
      time: at(15),
    };
    expect(build([completed, published, aside]).stuck).toMatchObject({
      state: "set-aside",
      reason: "MalformedDetail",
      commands: ["npx keelson outbox list", "npx keelson outbox put-back --event e1"],
    });
    expect(build([completed], { facts: rows({ ...row, aside: "too odd" }) }).stuck).toMatchObject({
      state: "set-aside",
      reason: "too odd",
    });
    const job = {
      msg: "job.set_aside",
      job: "shop.order.charge",
      jobId: "j1",
      reason: "no job",
      time: at(50),
    };
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

  test("show into which equal job a job was merged", () => {
    const enqueued = { ...request, msg: "job.enqueued", job: "shop.order.pack", time: at(10) };
    const merged = {
      ...{ msg: "job.merged", job: "shop.order.pack", mergedId: "j8", into: "j7" },
      time: at(20),
    };
    const lines = [completed, { ...enqueued, enqueuedId: "j8" }, merged];
    const found = [...nodesOf(build(lines).roots)].at(-1);
    expect(found).toMatchObject({ kind: "job", id: "j8", state: "merged", into: "j7" });
  });

  test("show whether a delayed job is still waiting", () => {
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
    expect(
      job({}, { ...request, msg: "job.canceled", canceledId: "j9", time: at(20) }),
    ).toMatchObject({
      state: "taken-back",
    });
    expect(job({ nowMs: 91_000 })).toMatchObject({ state: "not-seen" });
    expect(job({ nowMs: 91_000, facts: gone })).toMatchObject({ state: "not-seen" });
    expect(job({}, { ...scheduled, dueAt: "soon" })).toMatchObject({ state: "waiting" });
    const left = {
      msg: "job.dispatch_failed",
      jobs: ["shop.order.remind j9", 7],
      reason: "throttled",
      time: at(91_000),
    };
    expect(
      build([completed, scheduled, left], { facts: rows(due), nowMs: 300_000 }).stuck,
    ).toMatchObject({
      state: "waiting",
      reason: "throttled",
      fix: expect.stringContaining("it is due"),
    });
    expect(outline(build([left], { id: "j9" }).roots)).toEqual(["job waiting"]);
    const both = build([{ ...completed, requestId: "j9" }], {
      id: "j9",
      facts: rows({ ...due, causedBy: undefined }),
    });
    expect(outline(both.roots)).toEqual([
      "job shop.order.remind waiting",
      "request POST /orders done",
    ]);
    expect(
      outline(build([], { id: "j9", facts: rows({ ...due, causedBy: undefined }) }).roots),
    ).toEqual(["job shop.order.remind waiting"]);
  });

  test("show whether runs are done, running or interrupted", () => {
    const lines = [completed, published, consumed, enqueued];
    const job = (claim: object | undefined, more: readonly LogRecord[] = []) => {
      const facts = { claims: new Map([[runKey("j1", "shop.order.charge"), claim as never]]) };
      const { roots, says, stuck } = build([...lines, ...more], { facts });
      return { ...[...nodesOf(roots)].at(-1), says, stuckState: stuck?.state };
    };
    expect(job({ isDone: true })).toMatchObject({
      state: "done",
      confirmed: true,
      says: "Nothing is stuck.",
    });
    expect(job({ isDone: false, leaseUntilMs: startMs + 61_000 })).toMatchObject({
      state: "running",
      says: expect.stringContaining(`its claim is held until ${at(61_000)}`),
    });
    expect(
      job({ isDone: false, leaseUntilMs: startMs + 30_000 }, failed.slice(0, 0)),
    ).toMatchObject({
      state: "interrupted",
      says: expect.stringContaining("was interrupted"),
    });
    expect(job({ isDone: false, leaseUntilMs: startMs - 900_000 })).toMatchObject({
      state: "interrupted",
      stuckState: "interrupted",
    });
    expect(job(undefined)).toMatchObject({ state: "not-seen" });
  });
});

describe("a delivery or event that several requests sent", () => {
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

  test("is below its first sender, and the others refer to it", () => {
    const lines = [send("r1", 10), send("r2", 20), sent];
    expect(build(lines).roots).toMatchObject([
      { id: "r1", children: [{ kind: "delivery", state: "done" }] },
    ]);
    expect(build(lines, { id: "r2" }).roots).toMatchObject([
      { id: "r2", children: [{ kind: "delivery", state: "done", again: true, children: [] }] },
    ]);
    for (const ms of [5, 20]) {
      const { roots } = build([send("r1", 10), send("r2", ms), sent], { id: "d1" });
      expect(roots.map(({ id }) => id)).toEqual(["r1"]);
    }
    // Below its cause also where nobody is seen to have sent it there.
    expect(build([send("r2", 5), sent], { id: "d1" }).roots).toMatchObject([
      { id: "r1", state: "not-seen" },
    ]);
  });
  test("is not shown for a request of another tenant", () => {
    const { roots } = build([{ ...send("r2", 5), tenantId: "globex" }, sent], { id: "r2" });
    expect(roots[0]?.children).toEqual([]);
  });
  test("can be an event as well", () => {
    const event = (requestId: string) => ({ ...published, requestId, trace_id: requestId });
    const { roots } = build([event("r1"), event("r2"), { ...consumed, trace_id: "r1" }], {
      id: "r2",
    });
    expect(roots[0]?.children.at(-1)).toMatchObject({
      kind: "event",
      again: true,
      state: "dispatched",
    });
  });
});
