import { type Contract, type LockedEvent, type LockedSchedule, routeText } from "./contract.ts";
import { compareKeys } from "./locked-keys.ts";
import { routeChanges, routeKey } from "./route-changes.ts";
import { type Broken, type Change, type Role, schemaChanges } from "./schema-changes.ts";
import type { SchemaNode } from "./shape.ts";

/** Compares two contracts. Breaking changes come first, then changes are sorted by place. */
export function contractChanges(before: Contract, after: Contract): readonly Change[] {
  const changes = [
    ...entryChanges(before.routes, after.routes, {
      key: routeKey,
      where: routeText,
      kind: "route",
      removal: "client",
      changes: routeChanges,
    }),
    ...entryChanges(before.events, after.events, {
      key: ({ type }) => type,
      where: ({ type }) => `event ${type}`,
      kind: "event",
      removal: "consumer",
      changes: eventChanges,
    }),
    ...entryChanges(before.jobs, after.jobs, {
      key: nameOf,
      where: ({ name }) => `job ${name}`,
      kind: "job",
      removal: "consumer",
      changes: (was, is) => partChanges("job", was.input, is.input, `job ${is.name} input`),
    }),
    ...entryChanges(before.channels, after.channels, {
      key: nameOf,
      where: ({ name }) => `channel ${name}`,
      kind: "channel",
      removal: "consumer",
      changes: (was, is) =>
        partChanges("message", was.message, is.message, `channel ${is.name} message`),
    }),
    ...entryChanges(before.consumers, after.consumers, {
      key: ({ name, event }) => `${name} of ${event}`,
      where: ({ name, event }) => `consumer ${name} of ${event}`,
      kind: "consumer",
      removal: undefined,
      changes: () => [],
    }),
    ...entryChanges(before.schedules, after.schedules, {
      key: nameOf,
      where: ({ name }) => `schedule ${name}`,
      kind: "schedule",
      removal: undefined,
      changes: scheduleChanges,
    }),
    ...compareKeys(before.keys, after.keys),
  ];
  return changes.toSorted((one, other) => (sortText(one) < sortText(other) ? -1 : 1));
}

function sortText({ breaks, where, rule }: Change): string {
  return `${breaks === undefined ? 1 : 0} ${where} ${rule}`;
}

interface Entries<Entry> {
  readonly key: (entry: Entry) => string;
  readonly where: (entry: Entry) => string;
  readonly kind: string;
  readonly removal: Broken | undefined;
  readonly changes: (before: Entry, after: Entry) => readonly Change[];
}

function entryChanges<Entry>(
  before: readonly Entry[],
  after: readonly Entry[],
  { key, where, kind, removal, changes }: Entries<Entry>,
): readonly Change[] {
  const byKey = (entries: readonly Entry[]) => new Map(entries.map((entry) => [key(entry), entry]));
  const [was, is] = [byKey(before), byKey(after)];
  return [
    ...[...was].flatMap(([id, entry]): readonly Change[] => {
      const now = is.get(id);
      if (now !== undefined) return changes(entry, now);
      return [
        {
          ...(removal === undefined ? {} : { breaks: removal }),
          where: where(entry),
          rule: `${kind}-removed`,
        },
      ];
    }),
    ...[...is].flatMap(([id, entry]) =>
      was.has(id) ? [] : [{ where: where(entry), rule: `${kind}-added` }],
    ),
  ];
}

function nameOf({ name }: { readonly name: string }): string {
  return name;
}

function partChanges(
  role: Role,
  before: SchemaNode,
  after: SchemaNode,
  where: string,
): readonly Change[] {
  return schemaChanges(
    role,
    before,
    after,
    (path) => `${where}${path === "" || path.startsWith("[") ? path : `.${path}`}`,
  );
}

function eventChanges(before: LockedEvent, after: LockedEvent): readonly Change[] {
  const where = `event ${after.type}`;
  const kept = ({ kept: days }: LockedEvent) => String(days ?? "not kept");
  return [
    ...(before.kept === after.kept
      ? []
      : [{ where, rule: "event-kept-changed", detail: `${kept(before)} -> ${kept(after)}` }]),
    ...partChanges("payload", before.payload, after.payload, `${where} payload`),
  ];
}

function scheduleChanges(before: LockedSchedule, after: LockedSchedule): readonly Change[] {
  const text = ({ cron, timeZone, missed }: LockedSchedule) =>
    `${cron} ${timeZone}, missed: ${missed}`;
  if (text(before) === text(after)) return [];
  return [
    {
      where: `schedule ${after.name}`,
      rule: "schedule-changed",
      detail: `${text(before)} -> ${text(after)}`,
    },
  ];
}
