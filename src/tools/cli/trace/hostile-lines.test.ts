import { execFileSync } from "node:child_process";
import { tmpdir } from "node:os";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  at,
  build,
  chain,
  completed,
  ended,
  ofJob,
  outline,
  published,
  queued,
  request,
} from "../../../../test/fixtures/trace-records.ts";
import { jsonOf } from "./document.ts";
import type { LogRecord } from "./log-records.ts";
import type { TraceNode } from "./node.ts";
import { summarize } from "./standing.ts";
import { textOf } from "./text.ts";

describe("hostile lines", () => {
  const job = (id: string, causedBy: string) =>
    ended({ ...ofJob, jobId: id, causedBy, msg: "job.completed" }, 50);

  test("with circular causes still give a tree", () => {
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

  test("with many children, a deep chain or many requests give a bounded tree, and the rest is counted", () => {
    const many = Array.from({ length: 21_000 }, (_, index) => ({
      ...published,
      publishedId: `e${index}`,
    }));
    const wide = build([completed, ...many]);
    expect(wide.leftOut).toBe(1_000);
    expect(textOf(wide).length).toBeLessThan(40);
    expect(textOf(wide).join("\n")).toMatch(/… and 19981 more/);
    const deep = build(
      Array.from({ length: 200 }, (_, index) =>
        job(`j${index + 1}`, index === 0 ? "r1" : `j${index}`),
      ),
    );
    expect(deep.leftOut).toBeGreaterThan(0);
    expect(
      build(Array.from({ length: 50 }, (_, index) => ({ ...completed, trace_id: `t${index}` })))
        .leftOut,
    ).toBe(30);
  });

  test("of one request ID that many requests share give its last attempts", () => {
    const lines = Array.from({ length: 150_000 }, (_, ms) => ({ ms, msg: "request.completed" }));
    const { attempts, startMs, last } = summarize(lines);
    expect([attempts.length, startMs, last?.endMs]).toEqual([150_000, 0, 149_999]);
  });
});

test("no line's text reaches the terminal unescaped, wherever it is shown", () => {
  const odd = "x\u001b[31m\u009b2J\u202e\r\ny";
  const fields = [
    "handler",
    "tenantId",
    "trace_id",
    "event",
    "job",
    "channel",
    "method",
    "route",
    "reason",
    "message",
    "error",
    "queue",
    "step",
    "stepKey",
  ];
  const lines = [
    ...chain,
    { ...request, msg: "once.commit_uncertain", message: odd, time: at(12) },
    { ...ofJob, jobId: "j2", msg: "step.unknown", stepKey: "k", step: "s", time: at(61) },
    { ...ofJob, jobId: "j2", msg: "job.failed", message: odd, time: at(62) },
    { ...queued, jobId: "j3", msg: "queue.dead_lettered", time: at(63) },
    { ...request, msg: "delivery.enqueued", channel: "c", deliveryId: "d1", time: at(64) },
  ];
  for (const name of fields) {
    const built = build(lines.map((line) => (name in line ? { ...line, [name]: odd } : line)));
    const text = [...textOf(built), jsonOf(built).replaceAll("\n", "")].join("");
    expect(text).toContain("\\u001b");
    expect(text).not.toMatch(/[\p{Cc}\u202e]/u);
  }
});

/** The words of commands, as a shell hands them to a program. */
function wordsOf(commands: readonly string[]): string[][] {
  const script = commands.map((command) => `${command}; printf '\\0'`).join("\n");
  // Instead of the program: each word with its end, and an empty one after each command.
  const program = 'npx() { for word in "$@"; do printf \'%s\\0\' "$word"; done; }';
  const printed = execFileSync("sh", ["-c", `${program}\n${script}`], {
    encoding: "utf8",
    cwd: tmpdir(),
    env: {},
  });
  const [words, all]: [string[], string[][]] = [[], []];
  for (const word of printed.split("\0").slice(0, -1)) {
    if (word === "") all.push(words.splice(0));
    else words.push(word);
  }
  return all;
}

test("an ID from a line is one word in the printed commands, and never an option", () => {
  const odd = [
    "$(touch owned)",
    "`touch owned`",
    "a; touch owned",
    "a && touch owned | cat > owned",
    "a' 'b\" $HOME",
    "a\nb\r",
    "*",
    "~",
    "=touch",
    "#",
    "!!",
    "-x",
    "--retry",
    "--event=e1",
    "\\",
    "e1",
  ];
  const step = (stepKey: string) => ({
    ...ofJob,
    msg: "step.unknown",
    step: "charge",
    stepKey,
    time: at(59),
  });
  const aside = (eventId: string) => ({
    msg: "event.set_aside",
    type: "order.placed",
    eventId,
    reason: "r",
    time: at(15),
  });
  const lastCommand = (lines: readonly LogRecord[]) => String(build(lines).stuck?.commands.at(-1));
  const steps = odd.map((id) => lastCommand([...chain.slice(0, 4), step(id)]));
  const puts = odd.map((id) =>
    lastCommand([completed, { ...published, publishedId: id }, aside(id)]),
  );

  const isOption = (id: string) => id.startsWith("-");
  expect(wordsOf(steps)).toEqual(
    odd.map((id) => [
      "keelson",
      "steps",
      "resolve",
      "server.ts",
      ...(isOption(id) ? ["--retry", "--", id] : [id, "--retry"]),
    ]),
  );
  expect(wordsOf(puts)).toEqual(
    odd.map((id) => [
      "keelson",
      "outbox",
      "put-back",
      ...(isOption(id) ? [`--event=${id}`] : ["--event", id]),
    ]),
  );
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
            : {
                jobId: id,
                handler: kind === "job" ? "shop.order.charge" : "keelson.delivery.send",
              };
        if (kind === "event")
          write({ ...by, msg: "event.published", event: "order.placed", publishedId: id });
        else if (kind === "job")
          write({ ...by, msg: "job.enqueued", job: "shop.order.charge", enqueuedId: id });
        else write({ ...by, msg: "delivery.enqueued", channel: "webhook", deliveryId: id });
        const run = { ...request, ...own, origRequestId: requestId, causedBy };
        for (let attempt = 1; attempt <= failures; attempt += 1) {
          write({ ...run, msg: `${kind === "event" ? "event" : "job"}.failed`, message: "no" });
          write({ ...run, msg: `${kind}.completed`, outcome: "failed", attempt, durationMs: 1 });
        }
        follow(run, id, id, children);
        write({
          ...run,
          msg: `${kind}.completed`,
          outcome: "processed",
          attempt: failures + 1,
          durationMs: 1,
        });
      }
    };
    follow(request, requestId, `${requestId} ${tenantId} t${index}`, made);
    write({
      ...request,
      msg: "request.completed",
      method: "POST",
      route: "/orders",
      status: 201,
      durationMs: 9,
    });
  }
  return { records, edges };
}

/** Who stands below whom, as far as the tree says that nothing lies between. */
function told(roots: readonly TraceNode[]): string[] {
  const found: string[] = [];
  const walk = (node: TraceNode, carrier: string) => {
    const own =
      node.kind === "request"
        ? `${node.id} ${node.tenantId} ${node.traceId}`
        : (node.id ?? carrier);
    if (
      node.id !== undefined &&
      carrier !== "" &&
      node.kind !== "consumer" &&
      node.indirect === undefined
    )
      found.push(`${carrier} > ${node.id}`);
    for (const child of node.children) walk(child, own);
  };
  for (const root of roots) walk(root, "");
  return found;
}

describe("for any log lines", () => {
  test("their order does not matter", () => {
    fc.assert(
      fc.property(
        requests,
        fc.constantFrom("r1", "r2", "t0", "event1", "job2"),
        fc.infiniteStream(fc.nat()),
        (asked, id, order) => {
          const { records } = happening(asked);
          const shuffled = records
            .map((record) => ({ record, at: order.next().value }))
            .sort((one, other) => one.at - other.at);
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

  test("any subset of them gives only edges that exist", () => {
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

  test("nothing throws, and no text reaches the terminal unescaped", () => {
    const id = fc.constantFrom("r1", "a", "b", "c");
    const text = fc.oneof(
      id,
      fc
        .array(
          fc.constantFrom(
            "a",
            " ",
            "\u0000",
            "\u0007",
            "\u001b",
            "\u007f",
            "\u0090",
            "\u200b",
            "\u2028",
            "\u2066",
            "\ud800",
            "\u{e0001}",
          ),
          { maxLength: 12 },
        )
        .map((all) => all.join("")),
      fc.constant("\u001b[31m\u009b2J\u202e\r\n"),
    );
    const field = fc.oneof(
      text,
      fc.double(),
      fc.boolean(),
      fc.constant(null),
      fc.array(text, { maxLength: 3 }),
    );
    const msg = fc.constantFrom(
      ...[
        "request.completed",
        "event.published",
        "job.enqueued",
        "job.scheduled",
        "job.canceled",
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
        "job.merged",
      ],
      ...[
        "step.unknown",
        "schedule.gave_up",
        "run.failed",
        "once.taken",
        "once.commit_uncertain",
        "__proto__",
        "constructor",
      ],
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
      "canceledId",
      "mergedId",
      "into",
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
