import { deliveryJob } from "../../../parts/messages/delivery.ts";
import { type Attempt, isDone, summarize } from "./attempts.ts";
import type { TraceLine } from "./line.ts";
import { indexLines, type Origin, type Subject } from "./line-index.ts";
import {
  type Below,
  linkTrace,
  originPlace,
  type Root,
  runPlace,
  subjectPlace,
  type TraceLinks,
} from "./links.ts";
import { runKey, type TableFacts, type TraceAttempt, type TraceNode } from "./node.ts";
import { dispatchState, effectNodes, jobState, runState, type Standing } from "./standing.ts";

export interface TraceParts {
  /** Of a request, event, job, delivery or trace. */
  readonly id: string;
  readonly lines: readonly TraceLine[];
  readonly facts: TableFacts;
  /** By event type. */
  readonly consumers: ReadonlyMap<string, readonly string[]>;
  readonly nowMs: number;
}

const limits = Object.freeze({ roots: 20, nodes: 20_000, depth: 60, attempts: 50 });

export interface BuiltTrace {
  readonly roots: readonly TraceNode[];
  /** Nodes beyond the limits. */
  readonly leftOut: number;
}

/** Never throws, even on malformed lines. */
export function buildTrace(parts: TraceParts): BuiltTrace {
  const index = indexLines(parts.lines);
  const links = linkTrace(index, parts.facts.rows.values());
  const roots = links.rootsOf(parts.id);
  const building = new Building(parts, links);
  // Keep the latest roots: a reused request ID usually means its last request.
  const told = roots.slice(-limits.roots).map((root) => building.tree(root));
  return { roots: told, leftOut: building.leftOut + roots.length - told.length };
}

class Building {
  readonly #parts: TraceParts;
  readonly #links: TraceLinks;
  readonly #told = new Set<string>();
  #left: number = limits.nodes;
  leftOut = 0;
  #startMs = 0;

  constructor(parts: TraceParts, links: TraceLinks) {
    this.#parts = parts;
    this.#links = links;
  }

  tree(root: Root): TraceNode {
    if ("subject" in root) {
      const { subject } = root;
      this.#startMs = this.#beginOf(subject) ?? subject.dueMs ?? this.#parts.nowMs;
      return this.#subject({ subject, ms: undefined, isAgain: false, isIndirect: false }, 0);
    }
    return this.#origin(root.origin);
  }

  #origin({ key, requestId, traceId, tenantId, lines }: Origin): TraceNode {
    const { attempts, startMs, last } = summarize(lines);
    const below = this.#links.below.get(originPlace(key)) ?? [];
    this.#startMs =
      startMs ??
      lines[0]?.ms ??
      below.reduce(
        (least, { subject }) => Math.min(least, this.#beginOf(subject) ?? least),
        this.#parts.nowMs,
      );
    const { kind, name } = namedOrigin(lines);
    const gaveUp = lines.find(({ msg }) => msg === "schedule.gave_up");
    const state =
      gaveUp !== undefined && !isDone(last?.state) ? "gave-up" : (last?.state ?? "not-seen");
    return {
      ...{ kind, name, id: requestId, state, tenantId, traceId },
      ...(startMs === undefined ? {} : this.#times(startMs)),
      ...{ durationMs: last?.durationMs, status: last?.status, reason: last?.reason },
      ...this.#attempts(attempts),
      children: [...this.#effects(lines, isDone(last?.state)), ...this.#below(originPlace(key), 0)],
    };
  }

  #below(place: string, depth: number): TraceNode[] {
    const below = this.#links.below.get(place) ?? [];
    const left = depth < limits.depth ? this.#left : 0;
    const sorted = below
      .map((item) => ({ item, ms: item.ms ?? firstMsOf(item.subject) ?? Number.POSITIVE_INFINITY }))
      .sort(
        (one, other) =>
          compared(one.ms, other.ms) || compared(one.item.subject.id, other.item.subject.id),
      );
    this.#left = Math.max(0, this.#left - below.length);
    this.leftOut += Math.max(0, below.length - left);
    return sorted.slice(0, left).map(({ item }) => this.#subject(item, depth + 1));
  }

  #subject({ subject, ms, isAgain, isIndirect }: Below, depth: number): TraceNode {
    const { id, kind = "message", name = "" } = subject;
    const indirect = isIndirect || undefined;
    const startMs = ms ?? this.#beginOf(subject);
    const tenantId = subject.tenantId ?? subject.producers[0]?.tenantId;
    const common: Omit<TraceNode, "state" | "children"> = {
      kind,
      name,
      id,
      tenantId,
      ...(startMs === undefined ? {} : this.#times(startMs)),
      indirect,
    };
    if (isAgain || this.#told.has(id)) {
      const state =
        kind === "event"
          ? dispatchState(subject, this.#parts).state
          : this.#jobStanding(subject).state;
      return { ...common, state, again: true, children: [] };
    }
    this.#told.add(id);
    if (kind === "event") return this.#event(subject, common, depth);
    if (kind === "message")
      return { ...common, state: "not-seen", children: this.#below(subjectPlace(id), depth) };
    // A job has one handler. Lines that name another handler are shown as well.
    const lines = [...subject.runs.values()].flat().sort((one, other) => one.ms - other.ms);
    const { attempts, last } = summarize(lines);
    const standing = this.#jobStanding(subject);
    const made = [...subject.runs.keys()].flatMap((handler) =>
      this.#below(runPlace(id, handler), depth),
    );
    return {
      ...common,
      ...standing,
      ...{ durationMs: last?.durationMs, reason: standing.reason ?? last?.reason },
      ...this.#attempts(attempts),
      children: [
        ...this.#effects(lines, isDone(standing.state)),
        ...made,
        ...this.#below(subjectPlace(id), depth),
      ],
    };
  }

  #jobStanding(subject: Subject): Standing {
    const { id, kind, name = "" } = subject;
    const lines = [...subject.runs.values()].flat().sort((one, other) => one.ms - other.ms);
    const handler = kind === "delivery" ? deliveryJob : name;
    return jobState(
      subject,
      summarize(lines),
      this.#parts.facts.claims.get(runKey(id, handler)),
      this.#parts,
    );
  }

  #event(
    subject: Subject,
    common: Omit<TraceNode, "state" | "children">,
    depth: number,
  ): TraceNode {
    const { id, name = "", runs } = subject;
    const standing = dispatchState(subject, this.#parts);
    const isOnItsWay = standing.state === "in-outbox" || standing.state === "set-aside";
    const declared = isOnItsWay
      ? []
      : (this.#parts.consumers.get(name) ?? []).filter((handler) => !runs.has(handler));
    const consumers = [...runs.keys(), ...declared].map((handler) =>
      this.#consumer(subject, handler, depth),
    );
    const order = (node: TraceNode) => node.sinceMs ?? Number.POSITIVE_INFINITY;
    consumers.sort(
      (one, other) => compared(order(one), order(other)) || compared(one.name, other.name),
    );
    const children = [...consumers, ...this.#below(subjectPlace(id), depth)];
    return { ...common, ...standing, children };
  }

  #consumer(subject: Subject, handler: string, depth: number): TraceNode {
    const { id, runs } = subject;
    const lines = runs.get(handler) ?? [];
    const summary = summarize(lines);
    const standing = runState(
      subject,
      summary,
      this.#parts.facts.claims.get(runKey(id, handler)),
      this.#parts,
    );
    const { startMs } = summary;
    const below = this.#below(runPlace(id, handler), depth + 1);
    return {
      ...{ kind: "consumer", name: handler, id, ...standing },
      ...(startMs === undefined ? {} : this.#times(startMs)),
      ...{ durationMs: summary.last?.durationMs, reason: standing.reason ?? summary.last?.reason },
      ...this.#attempts(summary.attempts),
      children: [...this.#effects(lines, isDone(standing.state)), ...below],
    };
  }

  /** The row of a job holds its due time, not its creation time. */
  #beginOf(subject: Subject): number | undefined {
    const row = this.#parts.facts.rows.get(subject.id);
    return firstMsOf(subject) ?? (row?.kind === "event" ? row.atMs : undefined);
  }

  #effects(lines: readonly TraceLine[], isOver: boolean): TraceNode[] {
    return effectNodes(lines, isOver, this.#parts.facts).map(({ ms, ...node }) => ({
      ...node,
      ...this.#times(ms),
    }));
  }

  #attempts(attempts: readonly Attempt[]): Pick<TraceNode, "attempts"> {
    if (attempts.length === 0) return {};
    const told = attempts
      .slice(-limits.attempts)
      .map(({ startMs, endMs: _end, ...rest }): TraceAttempt => {
        return { ...rest, ...this.#times(startMs) };
      });
    return { attempts: told };
  }

  #times(ms: number): { readonly at: string; readonly sinceMs: number } {
    return { at: new Date(ms).toISOString(), sinceMs: ms - this.#startMs };
  }
}

function compared(one: number | string, other: number | string): number {
  return one === other ? 0 : one < other ? -1 : 1;
}

function firstMsOf({ producers, runs, way }: Subject): number | undefined {
  const starts = [...runs.values()].flatMap((lines) => [
    summarize(lines).startMs,
    ...lines.slice(0, 1).map(({ ms }) => ms),
  ]);
  const all = [
    producers[0]?.ms,
    ...starts,
    producers.length + starts.length === 0 ? way[0]?.ms : undefined,
  ];
  const known = all.filter((ms) => ms !== undefined);
  return known.length === 0 ? undefined : Math.min(...known);
}

function namedOrigin(lines: readonly TraceLine[]): Pick<TraceNode, "kind" | "name"> {
  const find = (has: (line: TraceLine) => boolean) => lines.find(has);
  const handler = lines.findLast((line) => line.handler !== undefined)?.handler ?? "";
  if (find(({ firesAt }) => firesAt !== undefined) !== undefined)
    return { kind: "schedule", name: handler };
  if (find(({ msg }) => msg.startsWith("run.")) !== undefined)
    return { kind: "run", name: handler };
  const asked = lines.findLast(
    ({ msg, method }) => msg === "request.completed" && method !== undefined,
  );
  const name =
    asked === undefined
      ? handler
      : [asked.method, asked.route].filter((part) => part !== undefined).join(" ");
  return { kind: "request", name };
}
