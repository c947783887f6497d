import { expect, test } from "vitest";
import type { TraceNode } from "./node.ts";
import { textOf } from "./text.ts";

const node = (more: Partial<TraceNode>): TraceNode => ({
  kind: "job",
  name: "shop.order.charge",
  state: "done",
  children: [],
  ...more,
});
const print = (roots: readonly TraceNode[], more: object = {}) =>
  textOf({
    id: "r1",
    says: "Nothing is stuck.",
    roots,
    leftOut: 0,
    notes: [],
    logs: { lines: 1, broken: 0 },
    tables: false,
    ...more,
  });

test("a tree has a header, a line for each node, and a line for each attempt unless the only one succeeded", () => {
  const at = "2026-11-02T09:30:00.000Z";
  const attempts = [
    { attempt: 1, state: "failed", at, sinceMs: 30, durationMs: 5, reason: "no money" },
    { state: "handed-back", at, sinceMs: 40 },
    { attempt: 2, state: "done", at, sinceMs: 5_030, durationMs: 12_345 },
  ] as const;
  const root = node({
    ...{
      kind: "request",
      name: "POST /orders",
      id: "r1",
      tenantId: "acme",
      traceId: "t1",
      at,
      sinceMs: 0,
      durationMs: 20,
      status: 201,
    },
    attempts: [{ attempt: 1, state: "done", at, sinceMs: 0, status: 201 }],
    children: [
      node({ kind: "claim", name: "", state: "taken", sinceMs: -3 }),
      node({
        kind: "event",
        name: "order.placed",
        id: "e1",
        state: "dispatched",
        confirmed: true,
        children: [
          node({ kind: "consumer", name: "shop.order.bill", id: "e1", state: "not-seen" }),
        ],
      }),
      node({ id: "j0", state: "merged", into: "j1" }),
      node({
        id: "j1",
        state: "retrying",
        until: at,
        reason: "no money",
        sinceMs: 200_000,
        attempts,
      }),
      node({ id: "j2", state: "waiting", until: at, sinceMs: 7_200_000, again: true }),
      node({ id: "j3", state: "running", until: at, sinceMs: 864_000_000, indirect: true }),
    ],
  });
  expect(print([root])).toEqual(
    [
      "request r1, of acme, at 2026-11-02T09:30:00.000Z, trace t1",
      "",
      "POST /orders → 201          done             +0 ms   20 ms",
      "├─ claim                    taken            -3 ms",
      "├─ event order.placed       dispatched                      e1  (by the tables)",
      "│  └─ shop.order.bill       not seen",
      "├─ job shop.order.charge    merged                          j0  into j1",
      "├─ job shop.order.charge    failed          +3 min          j1  is retried at 2026-11-02T09:30:00.000Z",
      "│  ├─ attempt 1             failed          +30 ms    5 ms  no money",
      "│  ├─ attempt               handed back     +40 ms",
      "│  └─ attempt 2             done           +5.03 s  12.3 s",
      "├─ job shop.order.charge    waiting           +2 h          j2  (also below another, with its effects)  due at 2026-11-02T09:30:00.000Z",
      "└─ job shop.order.charge    running          +10 d          j3  (the lines in between are missing)  until 2026-11-02T09:30:00.000Z",
      "",
      "Nothing is stuck.",
    ].map((line) =>
      expect.toSatisfy(
        (printed: string) => printed.replaceAll(/ +/g, " ") === line.replaceAll(/ +/g, " "),
      ),
    ),
  );
});

test("a request with several answers shows each one", () => {
  const at = "2026-11-02T09:30:00.000Z";
  const attempts = [503, 201].map((status) => ({ state: "done" as const, at, sinceMs: 0, status }));
  const lines = print([node({ kind: "request", name: "", attempts })]);
  expect(lines.slice(0, 5).map((line) => line.replaceAll(/ +/g, " "))).toEqual([
    "request",
    "",
    "request done",
    "├─ attempt → 503 done +0 ms",
    "└─ attempt → 201 done +0 ms",
  ]);
});

test("truncates long names and reasons", () => {
  const [, , line] = print([node({ name: "n".repeat(100), reason: "r".repeat(300) })]);
  expect(line).toBe(`job ${"n".repeat(55)}…  done      ${"r".repeat(159)}…`);
  expect(print([node({ kind: "request", name: "", state: "failed", durationMs: 0 })])[2]).toBe(
    "request  failed    0 ms",
  );
});

test("ends with the stuck node, its fix, the number of nodes left out, and the notes", () => {
  const stuck = {
    kind: "job",
    name: "n",
    state: "failed",
    fix: "mend it\u001b[2J",
    commands: ["do it"],
    reason: "x".repeat(1_000),
  };
  const lines = print([], {
    says: "Stuck: job n",
    stuck,
    leftOut: 7,
    notes: ["1 line mentions it and cannot be read."],
  });
  expect(lines).toEqual([
    "Stuck: job n",
    `  because: ${"x".repeat(299)}…`,
    "  mend it\\u001b[2J",
    "  $ do it",
    "7 more belong to it and are left out.",
    "1 line mentions it and cannot be read.",
  ]);
  expect(print([], { says: "Stuck: job n", stuck: { ...stuck, reason: undefined } })[1]).toBe(
    "  mend it\\u001b[2J",
  );
});

test("shows open children first and counts the rest, and truncates a large tree", () => {
  const children = Array.from({ length: 100 }, (_, index) =>
    node({ id: `j${index}`, state: index === 90 ? "dead-lettered" : "done" }),
  );
  const lines = print([node({ children })]);
  expect(lines).toHaveLength(26);
  expect(lines.join("\n")).toContain("j90");
  expect(lines.join("\n")).toContain("└─ … and 80 more");
  const open = print([
    node({ children: children.map((child) => ({ ...child, state: "failed" as const })) }),
  ]);
  expect(open).toHaveLength(26);
  const wide = Array.from({ length: 20 }, () =>
    node({ children: Array.from({ length: 20 }, () => node({ children: children.slice(0, 20) })) }),
  );
  expect(print([node({ children: wide })]).length).toBe(405);
  expect(print([node({ children: wide })])).toContain("… and more; --json has them");
});
