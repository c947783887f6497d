import { visible } from "../../../base/log/quoted-text.ts";
import type { TraceDocument } from "./document.ts";
import type { TraceAttempt, TraceNode } from "./node.ts";

const limits = Object.freeze({ children: 20, lines: 400, label: 60, text: 160 });

interface Row {
  readonly label: string;
  readonly state: string;
  readonly since: string;
  readonly duration: string;
  readonly rest: string;
}

/** Escapes and shortens text that comes from logs. */
export function textOf({ roots, says, stuck, notes, leftOut }: TraceDocument): readonly string[] {
  const lines: string[] = [];
  for (const root of roots) lines.push(...treeLines(root), "");
  lines.push(sentence(says));
  if (stuck !== undefined) {
    if (stuck.reason !== undefined) lines.push(`  because: ${shown(stuck.reason, 300)}`);
    lines.push(
      `  ${visible(stuck.fix)}`,
      ...stuck.commands.map((command) => `  $ ${visible(command)}`),
    );
  }
  if (leftOut > 0) lines.push(`${leftOut} more belong to it and are left out.`);
  return [...lines, ...notes.map(sentence)];
}

function sentence(text: string): string {
  return visible(text);
}

function treeLines(root: TraceNode): string[] {
  const { id, tenantId, traceId, at, kind } = root;
  const head = [
    `${kind} ${id ?? ""}`.trim(),
    ...(tenantId === undefined ? [] : [`of ${tenantId}`]),
    ...(at === undefined ? [] : [`at ${at}`]),
    ...(traceId === undefined ? [] : [`trace ${traceId}`]),
  ];
  const rows: Row[] = [];
  addRows(rows, { ...root, id: undefined }, "", "");
  const told = rows.slice(0, limits.lines);
  const width = (column: keyof Row) =>
    told.reduce((most, row) => Math.max(most, row[column].length), 0);
  const [label, state, since, duration] = [
    width("label"),
    width("state"),
    width("since"),
    width("duration"),
  ];
  return [
    head.map((part) => shown(part, 200)).join(", "),
    "",
    ...told.map((row) =>
      [
        row.label.padEnd(label),
        row.state.padEnd(state),
        row.since.padStart(since),
        row.duration.padStart(duration),
        row.rest,
      ]
        .join("  ")
        .trimEnd(),
    ),
    ...(rows.length > told.length ? ["… and more; --json has them"] : []),
  ];
}

function addRows(rows: Row[], node: TraceNode, first: string, others: string): void {
  // Stop early: rows beyond the limit are not printed.
  if (rows.length > limits.lines) return;
  const attempts = told(node.attempts ?? []);
  // The reason is printed once, at the attempt.
  const reason = attempts.some((attempt) => attempt.reason !== undefined) ? undefined : node.reason;
  rows.push(rowOf({ ...node, reason }, first));
  const children = chosen(node.children);
  const hidden = node.children.length - children.length;
  const parts: ((branch: string, below: string) => void)[] = [
    ...attempts.map((attempt) => (branch: string) => void rows.push(attemptRow(attempt, branch))),
    ...children.map(
      (child) => (branch: string, below: string) => addRows(rows, child, branch, below),
    ),
    ...(hidden > 0
      ? [(branch: string) => void rows.push({ ...blank, label: `${branch}… and ${hidden} more` })]
      : []),
  ];
  for (const [index, part] of parts.entries()) {
    const isLast = index === parts.length - 1;
    part(`${others}${isLast ? "└─ " : "├─ "}`, `${others}${isLast ? "   " : "│  "}`);
  }
}

const blank: Row = Object.freeze({ label: "", state: "", since: "", duration: "", rest: "" });

/** A single first attempt that did not fail is not printed. */
function told(attempts: readonly TraceAttempt[]): readonly TraceAttempt[] {
  const isOdd = ({ state, attempt = 1 }: TraceAttempt) => state === "failed" || attempt > 1;
  return attempts.length > 1 || attempts.some(isOdd) ? attempts : [];
}

/** Unfinished children come first within the limit; the order stays. */
function chosen(children: readonly TraceNode[]): readonly TraceNode[] {
  if (children.length <= limits.children) return children;
  const isQuiet = ({ state }: TraceNode) => ["done", "replayed", "dispatched"].includes(state);
  const open = children.filter((child) => !isQuiet(child)).slice(0, limits.children);
  const quiet = new Set(children.filter(isQuiet).slice(0, limits.children - open.length));
  const told = new Set([...open, ...quiet]);
  return children.filter((child) => told.has(child));
}

function rowOf(node: TraceNode, branch: string): Row {
  const {
    kind,
    name,
    id,
    state,
    until,
    reason,
    status,
    sinceMs,
    durationMs,
    again,
    indirect,
    confirmed,
  } = node;
  const title =
    kind === "consumer" || (kind === "request" && name !== "") ? name : `${kind} ${name}`;
  const answered = status === undefined ? "" : ` → ${status}`;
  const rest = [
    ...(id === undefined || kind === "consumer" ? [] : [id]),
    ...(again === true ? ["(also below another, with what follows)"] : []),
    ...(indirect === true ? ["(what lies between is not seen)"] : []),
    ...(until === undefined ? [] : [`${untilWords[state] ?? "until"} ${until}`]),
    ...(confirmed === true ? ["(by the tables)"] : []),
    ...(reason === undefined ? [] : [shown(reason, limits.text)]),
  ];
  return {
    label: `${branch}${shown(`${title}${answered}`.trim(), limits.label)}`,
    state: stateWords[state] ?? state,
    since: sinceMs === undefined ? "" : signed(sinceMs),
    duration: durationMs === undefined ? "" : time(durationMs),
    rest: rest.map((part) => visible(part)).join("  "),
  };
}

function attemptRow(
  { attempt, state, sinceMs, durationMs, status, reason }: TraceAttempt,
  branch: string,
): Row {
  const answered = status === undefined ? "" : ` → ${status}`;
  return {
    label: `${branch}attempt${attempt === undefined ? "" : ` ${attempt}`}${answered}`,
    state: stateWords[state] ?? state,
    since: signed(sinceMs),
    duration: durationMs === undefined ? "" : time(durationMs),
    rest: reason === undefined ? "" : shown(reason, limits.text),
  };
}

const stateWords: Readonly<Record<string, string>> = {
  retrying: "failed",
  "set-aside": "set aside",
  "gave-up": "gave up",
  "in-outbox": "in the outbox",
  "taken-back": "taken back",
  "handed-back": "handed back",
  unended: "no end seen",
  "not-seen": "not seen",
};

const untilWords: Readonly<Record<string, string>> = {
  retrying: "comes again at",
  waiting: "due at",
  interrupted: "lease ended at",
};

function time(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  if (ms < 100_000) return `${(ms / 1_000).toFixed(ms < 10_000 ? 2 : 1)} s`;
  if (ms < 6_000_000) return `${Math.round(ms / 60_000)} min`;
  if (ms < 172_800_000) return `${Math.round(ms / 3_600_000)} h`;
  return `${Math.round(ms / 86_400_000)} d`;
}

/** Negative if the clocks of processes differ. */
function signed(ms: number): string {
  return `${ms < 0 ? "-" : "+"}${time(Math.abs(ms))}`;
}

function shown(text: string, length: number): string {
  const escaped = visible(text);
  return escaped.length <= length ? escaped : `${escaped.slice(0, length - 1)}…`;
}
