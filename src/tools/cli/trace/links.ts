import {
  append,
  type Origin,
  type OriginId,
  originKey,
  type Producer,
  type Subject,
  subjectOf,
  type TraceIndex,
} from "./line-index.ts";
import { type RowFact, runKey } from "./node.ts";

export type TraceLinks = ReturnType<typeof linkTrace>;

export interface Below {
  readonly subject: Subject;
  readonly ms?: number;
  readonly isAgain?: boolean;
  readonly isIndirect?: boolean;
}

/** Root of a tree: an origin, or a subject whose cause is unknown or part of a cycle. */
export type Root = { readonly origin: Origin } | { readonly subject: Subject };

export const originPlace = (key: string) => `origin ${key}`;
export const runPlace = (subject: string, handler: string) => `run ${runKey(subject, handler)}`;
export const subjectPlace = (id: string) => `subject ${id}`;

export function linkTrace(index: TraceIndex, rows: Iterable<RowFact>) {
  // Includes origins known only from their effects.
  const { origins, aliases } = merged(index.origins);
  const subjects = new Map(index.subjects);
  for (const row of rows) addRow(subjects, row);
  const below = new Map<string, Below[]>();
  const parents = new Map<string, Parent>();
  const originOf = (asked: OriginId): Origin => {
    // Also looks without the tenant: a system run that works for a tenant starts without one.
    for (const key of [originKey(asked), originKey({ ...asked, tenantId: undefined })]) {
      const known = origins.get(aliases.get(key) ?? key);
      if (known !== undefined) return known;
    }
    const made = { ...asked, key: originKey(asked), lines: [] };
    origins.set(made.key, made);
    return made;
  };
  const whereOf = (by: Producer): { place: string; parent: Parent } => {
    if ("subject" in by) return { place: runPlace(by.subject, by.handler), parent: by };
    const origin = aliases.get(by.origin) ?? by.origin;
    return { place: originPlace(origin), parent: { origin } };
  };
  const putBelow = (origin: Origin, item: Below) => {
    parents.set(item.subject.id, { origin: origin.key });
    append(below, originPlace(origin.key), item);
  };

  /** The loop appends subjects named only as a cause. */
  const list = [...subjects.values()];
  const indirect = new Map<string, Origin>();
  for (const subject of list) {
    const { id, cause, tenantId } = subject;
    // Some lines do not name their tenant.
    const producers = subject.producers.filter(
      (one) => tenantId === undefined || (one.tenantId ?? tenantId) === tenantId,
    );
    // Senders that use the same key share one delivery, which the first sender caused.
    const first = producers.find(({ by }) => isCause(by, cause?.causedBy));
    const seen = new Set<string>();
    for (const produced of first === undefined ? producers : [first, ...producers]) {
      const { place, parent } = whereOf(produced.by);
      if (produced === first) parents.set(id, parent);
      if (!seen.has(place))
        append(below, place, { subject, ms: produced.ms, isAgain: produced !== first });
      seen.add(place);
    }
    if (first !== undefined) continue;
    const missing = indirect.get(id);
    if (missing !== undefined) putBelow(missing, { subject, isIndirect: true });
    // An event of another sender is its own cause, and the root of its tree.
    if (cause === undefined || (cause.causedBy === id && subject.kind === "event")) continue;
    const { causedBy, origin } = cause;
    if (causedBy === origin.requestId && !subjects.has(causedBy)) {
      putBelow(originOf(origin), { subject });
      continue;
    }
    if (!subjects.has(causedBy)) {
      list.push(subjectOf(subjects, causedBy));
      indirect.set(causedBy, originOf(origin));
    }
    parents.set(id, { subject: causedBy });
    append(below, subjectPlace(causedBy), { subject });
  }
  return { below, rootsOf: (id: string) => rootsOf(id, { origins, subjects, parents }) };
}

/** Joins the lines that a request wrote before and after its tenant was known. */
function merged(given: TraceIndex["origins"]) {
  const [origins, aliases] = [new Map(given), new Map<string, string>()];
  const named = new Map<string, Origin[]>();
  for (const origin of given.values()) {
    const anonymous = originKey({ ...origin, tenantId: undefined });
    if (origin.tenantId !== undefined) append(named, anonymous, origin);
  }
  for (const [key, [only, ...others]] of named) {
    const anonymous = origins.get(key);
    if (anonymous === undefined || only === undefined || others.length > 0) continue;
    origins.delete(key);
    aliases.set(key, only.key);
    const lines = [...only.lines, ...anonymous.lines].sort((one, other) => one.ms - other.ms);
    origins.set(only.key, { ...only, lines });
  }
  return { origins, aliases };
}

function addRow(subjects: Map<string, Subject>, row: RowFact) {
  const { kind, id, name, atMs, tenantId, causedBy, origRequestId, traceId } = row;
  const subject = subjectOf(subjects, id);
  subject.kind ??= kind;
  subject.name ??= name;
  subject.tenantId ??= tenantId;
  if (kind === "job") subject.dueMs ??= atMs;
  if (causedBy !== undefined && origRequestId !== undefined) {
    subject.cause ??= { causedBy, origin: { requestId: origRequestId, traceId, tenantId } };
  }
}

function isCause(by: Producer, causedBy: string | undefined) {
  if (causedBy === undefined) return true;
  // Safe cast: `originKey` made this text from a list.
  return "subject" in by
    ? by.subject === causedBy
    : (JSON.parse(by.origin) as readonly unknown[])[0] === causedBy;
}

type Parent = { readonly origin: string } | { readonly subject: string };

interface Climbing extends TraceIndex {
  readonly parents: ReadonlyMap<string, Parent>;
}

function rootsOf(id: string, { origins, subjects, parents }: Climbing): readonly Root[] {
  const roots = new Map<string, Root>();
  for (const origin of origins.values()) {
    if (origin.requestId === id || origin.traceId === id)
      roots.set(originPlace(origin.key), { origin });
  }
  const seen = new Set<string>();
  for (let at = subjects.get(id); at !== undefined; ) {
    const parent = parents.get(at.id);
    seen.add(at.id);
    // The casts to Origin and Subject are safe: every parent is in one of the two maps.
    if (parent !== undefined && "origin" in parent) {
      roots.set(originPlace(parent.origin), { origin: origins.get(parent.origin) as Origin });
      break;
    }
    // A cycle has no start, so the requested subject becomes the root.
    const isEnd = parent === undefined || seen.has(parent.subject);
    if (isEnd)
      roots.set(subjectPlace(at.id), {
        subject: parent === undefined ? at : (subjects.get(id) as Subject),
      });
    at = isEnd ? undefined : subjects.get(parent.subject);
  }
  const atMs = (root: Root) => ("origin" in root ? (root.origin.lines[0]?.ms ?? 0) : 0);
  return [...roots.values()].sort((one, other) => atMs(one) - atMs(other));
}
