import {
  type Origin,
  originKey,
  type Producer,
  type Subject,
  type TraceIndex,
} from "./line-index.ts";
import { type RowFact, runKey } from "./node.ts";

export interface TraceLinks {
  /** Includes origins without lines, known only from their effects. */
  readonly origins: ReadonlyMap<string, Origin>;
  readonly subjects: ReadonlyMap<string, Subject>;
  /** Subjects by {@link originPlace}, {@link runPlace} or {@link subjectPlace}. */
  readonly below: ReadonlyMap<string, readonly Below[]>;
  /** In chronological order. */
  rootsOf(id: string): readonly Root[];
}

export interface Below {
  readonly subject: Subject;
  readonly ms: number | undefined;
  readonly isAgain: boolean;
  readonly isIndirect: boolean;
}

/** A subject is a root if its cause is unknown or if it is part of a cycle. */
export type Root = { readonly origin: Origin } | { readonly subject: Subject };

export const originPlace = (key: string): string => `origin ${key}`;
export const runPlace = (subject: string, handler: string): string =>
  `run ${runKey(subject, handler)}`;
export const subjectPlace = (id: string): string => `subject ${id}`;

export function linkTrace(index: TraceIndex, rows: Iterable<RowFact>): TraceLinks {
  const { origins, aliases } = merged(index.origins);
  const subjects = new Map(index.subjects);
  for (const row of rows) addRow(subjects, row);
  const below = new Map<string, Below[]>();
  const parents = new Map<string, Parent>();

  const originOf = (asked: Pick<Origin, "requestId" | "traceId" | "tenantId">): Origin => {
    // A system run that works for a tenant starts without a tenant.
    for (const key of [originKey(asked), originKey({ ...asked, tenantId: undefined })]) {
      const known = origins.get(aliases.get(key) ?? key);
      if (known !== undefined) return known;
    }
    const made = { ...asked, key: originKey(asked), lines: [] };
    origins.set(made.key, made);
    return made;
  };
  const place = (by: Producer): { readonly place: string; readonly parent: Parent } => {
    if ("subject" in by)
      return { place: runPlace(by.subject, by.handler), parent: { subject: by.subject } };
    const origin = aliases.get(by.origin) ?? by.origin;
    return { place: originPlace(origin), parent: { origin } };
  };
  const put = (where: string, item: Below) => {
    const others = below.get(where);
    if (others === undefined) below.set(where, [item]);
    else others.push(item);
  };

  /** The loop below appends subjects that are only named as a cause. */
  const list = [...subjects.values()];
  const indirect = new Map<string, Origin>();
  for (let at = 0; at < list.length; at += 1) {
    const subject = list[at] as Subject; // safe: within the list
    const { id, cause } = subject;
    const producers = subject.producers.filter(({ tenantId }) =>
      isSame(tenantId, subject.tenantId),
    );
    // The first producer is the cause. Senders that use the same key share one delivery, which the
    // first sender caused.
    const first = producers.find(({ by }) => isCause(by, cause?.causedBy));
    const seen = new Set<string>();
    for (const produced of [...(first === undefined ? [] : [first]), ...producers]) {
      const { place: where, parent } = place(produced.by);
      if (seen.has(where)) continue;
      seen.add(where);
      if (produced === first) parents.set(id, parent);
      put(where, { subject, ms: produced.ms, isAgain: produced !== first, isIndirect: false });
    }
    if (first !== undefined) continue;
    const isMissing = indirect.get(id);
    if (cause !== undefined && cause.causedBy === cause.origin.requestId) {
      const { key } = originOf(cause.origin);
      parents.set(id, { origin: key });
      put(originPlace(key), { subject, ms: undefined, isAgain: false, isIndirect: false });
    } else if (cause !== undefined) {
      const { causedBy } = cause;
      if (!subjects.has(causedBy)) {
        const missing = namedSubject(causedBy);
        subjects.set(causedBy, missing);
        indirect.set(causedBy, originOf(cause.origin));
        list.push(missing);
      }
      parents.set(id, { subject: causedBy });
      put(subjectPlace(causedBy), { subject, ms: undefined, isAgain: false, isIndirect: false });
    } else if (isMissing !== undefined) {
      parents.set(id, { origin: isMissing.key });
      put(originPlace(isMissing.key), { subject, ms: undefined, isAgain: false, isIndirect: true });
    }
  }
  return { origins, subjects, below, rootsOf: (id) => rootsOf(id, { origins, subjects, parents }) };
}

/** A request writes lines before its tenant is known; they belong to the request of that tenant. */
function merged(given: TraceIndex["origins"]): {
  origins: Map<string, Origin>;
  aliases: ReadonlyMap<string, string>;
} {
  const [origins, aliases] = [new Map(given), new Map<string, string>()];
  const named = new Map<string, Origin[]>();
  for (const origin of given.values()) {
    const anonymous = originKey({ ...origin, tenantId: undefined });
    if (origin.tenantId !== undefined)
      named.set(anonymous, [...(named.get(anonymous) ?? []), origin]);
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

function namedSubject(id: string): Subject {
  return {
    ...{
      id,
      kind: undefined,
      name: undefined,
      tenantId: undefined,
      cause: undefined,
      dueMs: undefined,
      takenBackMs: undefined,
    },
    ...{ producers: [], runs: new Map(), way: [] },
  };
}

function addRow(subjects: Map<string, Subject>, row: RowFact): void {
  const { kind, id, name, atMs, tenantId, causedBy, origRequestId, traceId } = row;
  const subject = subjects.get(id) ?? namedSubject(id);
  subjects.set(id, subject);
  subject.kind ??= kind;
  subject.name ??= name;
  subject.tenantId ??= tenantId;
  if (kind === "job") subject.dueMs ??= atMs;
  if (causedBy !== undefined && origRequestId !== undefined) {
    subject.cause ??= { causedBy, origin: { requestId: origRequestId, traceId, tenantId } };
  }
}

/** Some lines do not name their tenant. */
function isSame(one: string | undefined, other: string | undefined): boolean {
  return one === undefined || other === undefined || one === other;
}

function isCause(by: Producer, causedBy: string | undefined): boolean {
  if (causedBy === undefined) return true;
  return "subject" in by
    ? by.subject === causedBy
    : (JSON.parse(by.origin) as readonly unknown[])[0] === causedBy; // safe: `originKey` built it
}

type Parent = { readonly origin: string } | { readonly subject: string };

interface Climbing extends Pick<TraceLinks, "origins" | "subjects"> {
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
    // Safe, here and below: every parent is in one of the two maps.
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
