import { visible } from "../../../base/log/redaction.ts";
import type { TraceDocument } from "./document.ts";
import type { TraceAttempt, TraceNode } from "./node.ts";

const limits = { children: 20, lines: 400, label: 60, text: 160 };

type Row = Readonly<Record<"label" | "state" | "since" | "duration" | "rest", string>>;

/** Escapes and shortens text that comes from logs. */
export function textOf({ roots, says, stuck, notes, leftOut }: TraceDocument): readonly string[] {
  const lines: string[] = [];
  for (const root of roots) lines.push(...treeLines(root), "");
  lines.push(visible(says));
  if (stuck?.reason !== undefined) lines.push(`  because: ${shown(stuck.reason, 300)}`);
  if (stuck !== undefined) {
    const commands = stuck.commands.map((command) => `  $ ${visible(command)}`);
    lines.push(`  ${visible(stuck.fix)}`, ...commands);
  }
  if (leftOut > 0) lines.push(`${leftOut} more belong to it and are left out.`);
  return [...lines, ...notes.map(visible)];
}

function treeLines(root: TraceNode) {
  const { id, tenantId, traceId, at, kind } = root;
  const head = present([
    `${kind} ${id ?? ""}`.trim(),
    tenantId && `of ${tenantId}`,
    at && `at ${at}`,
    traceId && `trace ${traceId}`,
  ]);
  const rows: Row[] = [];
  addRows(rows, { ...root, id: undefined }, "", "");
  const told = rows.slice(0, limits.lines);
  const width = (column: keyof Row) => Math.max(...told.map((row) => row[column].length));
  const [label, state] = [width("label"), width("state")];
  const [since, duration] = [width("since"), width("duration")];
  const lineOf = (row: Row) => {
    const texts = [row.label.padEnd(label), row.state.padEnd(state)];
    const times = [row.since.padStart(since), row.duration.padStart(duration)];
    return [...texts, ...times, row.rest].join("  ").trimEnd();
  };
  const more = rows.length > told.length ? ["… and more; --json has them"] : [];
  return [head.map((part) => shown(part, 200)).join(", "), "", ...told.map(lineOf), ...more];
}

function present(texts: readonly (string | undefined)[]) {
  return texts.filter((text) => text !== undefined);
}

function addRows(rows: Row[], node: TraceNode, first: string, others: string) {
  if (rows.length > limits.lines) return;
  const attempts = told(node.attempts ?? []);
  // The reason is printed once, at the attempt.
  const reason = attempts.some((attempt) => attempt.reason !== undefined) ? undefined : node.reason;
  rows.push(rowOf({ ...node, reason }, first));
  const children = chosen(node.children);
  const hidden = node.children.length - children.length;
  let left = attempts.length + children.length + Number(hidden > 0);
  const next = () => {
    left -= 1;
    const [branch, below] = left === 0 ? ["└─ ", "   "] : ["├─ ", "│  "];
    return [`${others}${branch}`, `${others}${below}`] as const;
  };
  for (const attempt of attempts) rows.push(attemptRow(attempt, next()[0]));
  for (const child of children) addRows(rows, child, ...next());
  if (hidden > 0) rows.push({ ...blank, label: `${next()[0]}… and ${hidden} more` });
}

const blank: Row = { label: "", state: "", since: "", duration: "", rest: "" };

function told(attempts: readonly TraceAttempt[]) {
  const isOdd = ({ state, attempt = 1 }: TraceAttempt) => state === "failed" || attempt > 1;
  return attempts.length > 1 || attempts.some(isOdd) ? attempts : [];
}

/** Keeps the order. Beyond the limit, leaves out finished children first. */
function chosen(children: readonly TraceNode[]) {
  if (children.length <= limits.children) return children;
  const isQuiet = ({ state }: TraceNode) => ["done", "replayed", "dispatched"].includes(state);
  const open = children.filter((child) => !isQuiet(child)).slice(0, limits.children);
  const quiet = new Set(children.filter(isQuiet).slice(0, limits.children - open.length));
  const told = new Set([...open, ...quiet]);
  return children.filter((child) => told.has(child));
}

function rowOf(node: TraceNode, branch: string) {
  const { kind, name, id, state, until, into, reason, again, indirect, confirmed } = node;
  const isNamed = kind === "consumer" || (kind === "request" && name !== "");
  const title = isNamed ? name : `${kind} ${name}`;
  const rest = present([
    kind === "consumer" ? undefined : id,
    again && "(also below another, with its effects)",
    indirect && "(the lines in between are missing)",
    until && `${untilWords[state] ?? "until"} ${until}`,
    into && `into ${into}`,
    confirmed && "(by the tables)",
    reason && shown(reason, limits.text),
  ]);
  return {
    label: `${branch}${shown(`${title}${answered(node)}`.trim(), limits.label)}`,
    ...cells(node),
    rest: rest.map(visible).join("  "),
  };
}

function attemptRow(given: TraceAttempt, branch: string) {
  const { attempt, reason = "" } = given;
  const label = `${branch}attempt${attempt === undefined ? "" : ` ${attempt}`}${answered(given)}`;
  return { label, ...cells(given), rest: shown(reason, limits.text) };
}

type Told = Pick<TraceNode, "status" | "sinceMs" | "durationMs"> & { readonly state: string };

function answered({ status }: Told) {
  return status === undefined ? "" : ` → ${status}`;
}

function cells({ state, sinceMs, durationMs }: Told) {
  return {
    state: stateWords[state] ?? state,
    since: sinceMs === undefined ? "" : signed(sinceMs),
    duration: durationMs === undefined ? "" : time(durationMs),
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
  retrying: "is retried at",
  waiting: "due at",
  interrupted: "lease ended at",
};

function time(ms: number) {
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  if (ms < 100_000) return `${(ms / 1_000).toFixed(ms < 10_000 ? 2 : 1)} s`;
  if (ms < 6_000_000) return `${Math.round(ms / 60_000)} min`;
  if (ms < 172_800_000) return `${Math.round(ms / 3_600_000)} h`;
  return `${Math.round(ms / 86_400_000)} d`;
}

/** A time can be negative if the clocks of processes differ. */
function signed(ms: number) {
  return `${ms < 0 ? "-" : "+"}${time(Math.abs(ms))}`;
}

function shown(text: string, length: number) {
  const escaped = visible(text);
  return escaped.length <= length ? escaped : `${escaped.slice(0, length - 1)}…`;
}
