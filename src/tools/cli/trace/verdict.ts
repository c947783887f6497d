import { command, keelson } from "../doctor/outcome.ts";
import type { TraceNode, TraceState } from "./node.ts";

export interface Verdict {
  /** Node that needs an operator to continue. */
  readonly stuck?:
    | (Told & { readonly fix: string; readonly commands: readonly string[] })
    | undefined;
  readonly says: string;
}

type Told = Pick<TraceNode, "kind" | "name" | "id" | "state" | "reason">;

/**
 * Time after which an overdue node is stuck: one in the outbox or waiting for its due time, and one
 * that its queue redelivers.
 */
const [sweepsMs, visibilityMs] = [30_000, 300_000];

/** Reports the node in the worst state; of two in the same state, the first. */
export function verdictOf(
  roots: readonly TraceNode[],
  { nowMs, module }: { readonly nowMs: number; readonly module: string },
): Verdict {
  let [worst, waiting]: [TraceNode?, TraceNode?] = [];
  let unseen = 0;
  for (const node of nodesOf(roots)) {
    if (node.state === "not-seen" || node.state === "unended") unseen += 1;
    if (isStuck(node, nowMs)) worst = first(worst, node);
    else if (isWaiting(node)) waiting = first(waiting, node);
  }
  if (worst !== undefined) {
    const { kind, name, id, state, reason } = worst;
    const help = helpFor(worst, module);
    return { stuck: { kind, name, id, state, reason, ...help }, says: `Stuck: ${titleOf(worst)}` };
  }
  if (waiting !== undefined)
    return { says: `Nothing is stuck: ${titleOf(waiting)} ${waitText(waiting)}.` };
  const failed = roots.find(({ state }) => state === "failed");
  const lacks = unseen === 1 ? "has no end or no line" : "have no end or no line";
  const seen = unseen === 0 ? "" : `; ${unseen} of these ${lacks} in the logs`;
  if (failed?.status !== undefined)
    return { says: `Nothing is stuck: the request was answered with ${failed.status}${seen}.` };
  return { says: `Nothing is stuck${seen}.` };
}

export function* nodesOf(roots: readonly TraceNode[]): Generator<TraceNode> {
  for (const node of roots) {
    yield node;
    yield* nodesOf(node.children);
  }
}

/** States from worst to best. */
const ranks: readonly TraceState[] = [
  ...(["unknown", "dead-lettered", "set-aside", "gave-up", "in-outbox"] as const),
  ...(["failed", "interrupted", "retrying", "waiting", "running"] as const),
];

function first(one: TraceNode | undefined, other: TraceNode) {
  return one !== undefined && ranks.indexOf(one.state) <= ranks.indexOf(other.state) ? one : other;
}

const message: ReadonlySet<string> = new Set(["event", "consumer", "job", "delivery"]);

function isStuck({ kind, state, until, at, attempts, again }: TraceNode, nowMs: number) {
  if (again === true) return false;
  const isLate = (time: string | undefined, ms: number) =>
    time !== undefined && Date.parse(time) + ms < nowMs;
  if (["unknown", "dead-lettered", "set-aside", "gave-up"].includes(state)) return true;
  if (["in-outbox", "waiting"].includes(state)) return isLate(until ?? at, sweepsMs);
  if (["retrying", "interrupted"].includes(state)) return isLate(until, visibilityMs);
  const isFailed = state === "failed" && message.has(kind);
  return isFailed && isLate(attempts?.at(-1)?.at, visibilityMs);
}

function isWaiting({ kind, state, again }: TraceNode) {
  if (again === true || kind === "claim") return false;
  const isOpen = ["in-outbox", "waiting", "retrying", "interrupted", "running"].includes(state);
  return isOpen || (state === "failed" && message.has(kind));
}

function titleOf({ kind, name, id }: TraceNode) {
  const words = [kind === "consumer" ? "" : kind, name, id ?? ""];
  return words.filter((word) => word !== "").join(" ");
}

function waitText({ state, until = "" }: TraceNode) {
  const running = until === "" ? "is running" : `is running, and its claim is held until ${until}`;
  const texts: Partial<Record<TraceState, string>> = {
    waiting: `is due at ${until}`,
    retrying: `has failed, and is retried at ${until}`,
    running,
    interrupted: "was interrupted, and is retried when its message's visibility timeout ends",
    failed: "has failed, and its queue delivers it again",
  };
  return texts[state] ?? "waits in the outbox for the next sweep";
}

// Anyone may write IDs to logs, so an ID is quoted as one shell word and never parsed as an option.

function resolveCommand(module: string, id: string, end: string) {
  const start = keelson("steps", "resolve", module);
  return id.startsWith("-")
    ? `${start} ${end} -- ${command(id)}`
    : `${start} ${command(id)} ${end}`;
}

function putBackCommand(id: string) {
  const event = id.startsWith("-") ? [`--event=${id}`] : ["--event", id];
  return keelson("outbox", "put-back", ...event);
}

function moveBackCommand(module: string, queue = "<queue>", id: string) {
  const start = keelson("queue", "move-back");
  const of = queue === "<queue>" ? queue : command(queue);
  return `${start} -- ${command(module)} ${of} ${command(id)}`;
}

function helpFor({ kind, id = "", state, queue }: TraceNode, module: string) {
  const help = (fix: string, ...commands: readonly string[]) => ({ fix, commands });
  const doctor = keelson("doctor", module);
  const list = keelson("outbox", "list");
  switch (state) {
    case "unknown":
      if (kind !== "step")
        return help(
          "keelson does not know whether the commit was written: look at its rows, and send it again",
        );
      return help(
        "ask the called service for the outcome, by the step's ID, and resolve the step; then move its message back, or let the client retry",
        ...["--result <json>", "--retry"].map((end) => resolveCommand(module, id, end)),
      );
    case "dead-lettered":
      return help(
        "fix the cause, then move it back from its dead-letter queue",
        moveBackCommand(module, queue, id),
      );
    case "set-aside":
      return kind === "event"
        ? help("fix the cause, then put it back", list, putBackCommand(id))
        : help("its row is not a job: look at it in the outbox table, partition aside", list);
    case "gave-up":
      return help("fix the cause; it fires at its next time");
    case "in-outbox":
      return help(
        "a running process sweeps the outbox every ten seconds: start one, or let it reach the bus",
        doctor,
      );
    case "waiting":
      return help(
        "it is due; a running process sends it within ten seconds: start one, or let it reach the queue",
        doctor,
      );
    default:
      return help(
        "it has not been redelivered: start a process that takes messages from its queue, or look at its dead-letter queue",
        doctor,
      );
  }
}
