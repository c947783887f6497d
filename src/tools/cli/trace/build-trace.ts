import { deliveryJob } from "../../../parts/messages/delivery.ts";
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
import type { TraceLine } from "./log-records.ts";
import { runKey, type TableFacts, type TraceNode } from "./node.ts";
import {
  type Attempt,
  dispatchState,
  effectNodes,
  isDone,
  isoOf,
  jobState,
  least,
  type RunSummary,
  runState,
  type Standing,
  summarize,
} from "./standing.ts";

interface TraceParts {
  /** ID of a request, event, job, delivery or trace. */
  readonly id: string;
  readonly lines: readonly TraceLine[];
  readonly facts: TableFacts;
  readonly consumers: ReadonlyMap<string, readonly { readonly name: string }[]>;
  readonly nowMs: number;
}

const limits = { roots: 20, nodes: 20_000, depth: 60, attempts: 50 };

/** Never throws, even on malformed lines. */
export function buildTrace(parts: TraceParts) {
  const links = linkTrace(indexLines(parts.lines), parts.facts.rows.values());
  const roots = links.rootsOf(parts.id);
  const building = new Building(parts, links);
  // Keeps the latest roots, because a reused request ID usually means the last request.
  const told = roots.slice(-limits.roots).map((root) => building.tree(root));
  return { roots: told, leftOut: building.leftOut + roots.length - told.length };
}

type Common = Omit<TraceNode, "state" | "children">;

class Building {
  readonly #parts: TraceParts;
  readonly #links: TraceLinks;
  readonly #told = new Set<string>();
  #left = limits.nodes;
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
      return this.#subject({ subject }, 0);
    }
    return this.#origin(root.origin);
  }

  #origin({ key, requestId, traceId, tenantId, lines }: Origin): TraceNode {
    const { attempts, startMs, last } = summarize(lines);
    const below = this.#links.below.get(originPlace(key)) ?? [];
    const earlier = (ms: number, { subject }: Below) => Math.min(ms, this.#beginOf(subject) ?? ms);
    this.#startMs = startMs ?? lines[0]?.ms ?? below.reduce(earlier, this.#parts.nowMs);
    const hasGivenUp = lines.some(({ msg }) => msg === "schedule.gave_up") && !isDone(last?.state);
    const state = hasGivenUp ? "gave-up" : (last?.state ?? "not-seen");
    return {
      ...namedOrigin(lines),
      ...{ id: requestId, state, tenantId, traceId },
      ...this.#times(startMs),
      ...{ durationMs: last?.durationMs, status: last?.status, reason: last?.reason },
      ...this.#attempts(attempts),
      children: [...this.#effects(lines, isDone(last?.state)), ...this.#below(originPlace(key), 0)],
    };
  }

  #below(place: string, depth: number): TraceNode[] {
    const below = this.#links.below.get(place) ?? [];
    const left = depth < limits.depth ? this.#left : 0;
    const sorted = below
      .map((item) => ({ item, ms: item.ms ?? firstMsOf(item.subject), id: item.subject.id }))
      .sort((one, other) => byTime(one.ms, other.ms) || byText(one.id, other.id));
    this.#left = Math.max(0, this.#left - below.length);
    this.leftOut += Math.max(0, below.length - left);
    return sorted.slice(0, left).map(({ item }) => this.#subject(item, depth + 1));
  }

  #subject({ subject, ms, isAgain, isIndirect }: Below, depth: number): TraceNode {
    const { id, kind = "message", name = "" } = subject;
    const common: Common = {
      ...{ kind, name, id },
      tenantId: subject.tenantId ?? subject.producers[0]?.tenantId,
      ...this.#times(ms ?? this.#beginOf(subject)),
      indirect: isIndirect || undefined,
    };
    if (isAgain || this.#told.has(id)) {
      const isEvent = kind === "event";
      const { state } = isEvent ? dispatchState(subject, this.#parts) : this.#job(subject).standing;
      return { ...common, state, again: true, children: [] };
    }
    this.#told.add(id);
    if (kind === "event") return this.#event(subject, common, depth);
    const below = () => this.#below(subjectPlace(id), depth);
    if (kind === "message") return { ...common, state: "not-seen", children: below() };
    const { lines, summary, standing } = this.#job(subject);
    const runs = [...subject.runs.keys()].flatMap((handler) =>
      this.#below(runPlace(id, handler), depth),
    );
    return { ...common, ...this.#run(lines, summary, standing, [...runs, ...below()]) };
  }

  #run(
    lines: readonly TraceLine[],
    { attempts, last }: RunSummary,
    standing: Standing,
    below: readonly TraceNode[],
  ) {
    return {
      ...standing,
      ...{ durationMs: last?.durationMs, reason: standing.reason ?? last?.reason },
      ...this.#attempts(attempts),
      children: [...this.#effects(lines, isDone(standing.state)), ...below],
    };
  }

  /** Includes lines that name another handler than the job's own. */
  #job(subject: Subject) {
    const { id, kind, name = "" } = subject;
    const lines = [...subject.runs.values()].flat().sort((one, other) => one.ms - other.ms);
    const claim = this.#claim(id, kind === "delivery" ? deliveryJob : name);
    const summary = summarize(lines);
    return { lines, summary, standing: jobState(subject, summary, claim, this.#parts) };
  }

  #claim(id: string, handler: string) {
    return this.#parts.facts.claims.get(runKey(id, handler));
  }

  #event(subject: Subject, common: Common, depth: number): TraceNode {
    const { id, name = "", runs } = subject;
    const standing = dispatchState(subject, this.#parts);
    const isOnItsWay = standing.state === "in-outbox" || standing.state === "set-aside";
    const declared = isOnItsWay ? [] : (this.#parts.consumers.get(name) ?? []);
    const handlers = new Set([...runs.keys(), ...declared.map((consumer) => consumer.name)]);
    const consumers = [...handlers]
      .map((handler) => this.#consumer(subject, handler, depth))
      .sort((one, other) => byText(one.name, other.name)); // they start together
    const children = [...consumers, ...this.#below(subjectPlace(id), depth)];
    return { ...common, ...standing, children };
  }

  #consumer(subject: Subject, handler: string, depth: number): TraceNode {
    const { id, runs } = subject;
    const lines = runs.get(handler) ?? [];
    const summary = summarize(lines);
    const standing = runState(subject, summary, this.#claim(id, handler), this.#parts);
    const below = this.#below(runPlace(id, handler), depth + 1);
    return {
      ...{ kind: "consumer", name: handler, id, ...standing },
      ...this.#times(summary.startMs),
      ...this.#run(lines, summary, standing, below),
    };
  }

  /** Uses the rows of events only, because a job's row holds the due time. */
  #beginOf(subject: Subject): number | undefined {
    const row = this.#parts.facts.rows.get(subject.id);
    return firstMsOf(subject) ?? (row?.kind === "event" ? row.atMs : undefined);
  }

  #effects(lines: readonly TraceLine[], isOver: boolean): TraceNode[] {
    const nodes = effectNodes(lines, isOver, this.#parts.facts);
    return nodes.map(({ ms, ...node }) => ({ ...node, ...this.#times(ms) }));
  }

  #attempts(attempts: readonly Attempt[]) {
    if (attempts.length === 0) return {};
    const told = attempts.slice(-limits.attempts).map(({ startMs, endMs: _end, ...rest }) => {
      return { ...rest, at: isoOf(startMs), sinceMs: startMs - this.#startMs };
    });
    return { attempts: told };
  }

  #times(ms: number | undefined) {
    return ms === undefined ? {} : { at: isoOf(ms), sinceMs: ms - this.#startMs };
  }
}

function byTime(one = Number.POSITIVE_INFINITY, other = Number.POSITIVE_INFINITY) {
  return one - other;
}

function byText(one: string, other: string) {
  return one < other ? -1 : 1;
}

function firstMsOf({ producers, runs, way }: Subject): number | undefined {
  const starts = [...runs.values()].flatMap((lines) => [summarize(lines).startMs, lines[0]?.ms]);
  const isUnseen = producers.length + starts.length === 0;
  const known = [producers[0]?.ms, ...starts, isUnseen ? way[0]?.ms : undefined];
  return least(known.filter((ms) => ms !== undefined));
}

function namedOrigin(lines: readonly TraceLine[]): Pick<TraceNode, "kind" | "name"> {
  const handler = lines.findLast((line) => line.handler)?.handler ?? "";
  if (lines.some(({ firesAt }) => firesAt)) return { kind: "schedule", name: handler };
  if (lines.some(({ msg }) => msg.startsWith("run."))) return { kind: "run", name: handler };
  const asked = lines.findLast(({ msg, method }) => msg === "request.completed" && method);
  const { method = handler, route } = asked ?? {};
  return { kind: "request", name: route === undefined ? method : `${method} ${route}` };
}
