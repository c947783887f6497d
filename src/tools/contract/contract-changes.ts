import { sortedBy } from "../../app/openapi/canonical.ts";
import {
  type Contract,
  type LockedEvent,
  type LockedReceiver,
  type LockedSchedule,
  nameOf,
  routeText,
} from "./contract.ts";
import { compareKeys } from "./locked-keys.ts";
import { routeChanges, routeKey } from "./route-changes.ts";
import { type Broken, type Change, partChanges } from "./schema-changes.ts";

/** Breaking changes come first. */
export function contractChanges(before: Contract, after: Contract): readonly Change[] {
  const changes = [
    ...entryChanges("route", before.routes, after.routes, {
      key: routeKey,
      where: routeText,
      removal: "client",
      changes: routeChanges,
    }),
    ...entryChanges("event", before.events, after.events, {
      key: ({ type }) => type,
      removal: "consumer",
      changes: eventChanges,
    }),
    ...entryChanges("job", before.jobs, after.jobs, {
      key: nameOf,
      removal: "consumer",
      changes: (was, is, where) => partChanges("job", was.input, is.input, `${where} input`),
    }),
    ...entryChanges("channel", before.channels, after.channels, {
      key: nameOf,
      removal: "consumer",
      changes: (was, is, where) =>
        partChanges("message", was.message, is.message, `${where} message`),
    }),
    ...entryChanges("receiver", before.receivers ?? [], after.receivers ?? [], {
      key: nameOf,
      changes: receiverChanges,
    }),
    ...entryChanges("consumer", before.consumers, after.consumers, {
      key: ({ name, event }) => `${name} of ${event}`,
    }),
    ...entryChanges("schedule", before.schedules, after.schedules, {
      key: nameOf,
      changes: scheduleChanges,
    }),
    ...compareKeys(before.keys, after.keys),
  ];
  return sortedBy(changes, ({ breaks, where, rule }) => `${breaks ? 0 : 1} ${where} ${rule}`);
}

function entryChanges<Entry>(
  kind: string,
  before: readonly Entry[],
  after: readonly Entry[],
  {
    key,
    where = (entry) => `${kind} ${key(entry)}`,
    removal: breaks,
    changes = () => [],
  }: {
    key: (entry: Entry) => string;
    where?: (entry: Entry) => string;
    removal?: Broken;
    changes?: (before: Entry, after: Entry, where: string) => readonly Change[];
  },
): Change[] {
  const byKey = (entries: readonly Entry[]) => new Map(entries.map((entry) => [key(entry), entry]));
  const [was, is] = [byKey(before), byKey(after)];
  return [
    ...[...was].flatMap(([id, entry]): readonly Change[] => {
      const now = is.get(id);
      return now === undefined
        ? [{ breaks, where: where(entry), rule: `${kind}-removed` }]
        : changes(entry, now, where(now));
    }),
    ...[...is].flatMap(([id, entry]) =>
      was.has(id) ? [] : [{ where: where(entry), rule: `${kind}-added` }],
    ),
  ];
}

function eventChanges(before: LockedEvent, after: LockedEvent, where: string): Change[] {
  const text = ({ kept }: LockedEvent) => String(kept ?? "not kept");
  return [
    ...changed(text(before), text(after), where, "event-kept-changed"),
    ...partChanges("payload", before.payload, after.payload, `${where} payload`),
  ];
}

/** Others do not learn that an event no longer fits, so it must not break silently. */
function receiverChanges(before: LockedReceiver, after: LockedReceiver, where: string): Change[] {
  const text = ({ event, bus }: LockedReceiver) => `${event} on ${bus}`;
  return [
    ...changed(text(before), text(after), where, "receiver-changed"),
    ...partChanges("job", before.input, after.input, `${where} input`),
  ];
}

function scheduleChanges(before: LockedSchedule, after: LockedSchedule, where: string): Change[] {
  const text = ({ cron, timeZone, missed }: LockedSchedule) =>
    `${cron} ${timeZone}, missed: ${missed}`;
  return changed(text(before), text(after), where, "schedule-changed");
}

function changed(before: string, after: string, where: string, rule: string): Change[] {
  return before === after ? [] : [{ where, rule, detail: `${before} -> ${after}` }];
}
