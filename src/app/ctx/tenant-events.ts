import { assertKnownOptions } from "../../base/errors/option-table.ts";
import { quoted } from "../../base/errors/quoted.ts";
import type { Lazy } from "../../base/process/lazy.ts";
import type { Database } from "../../base/types/database.ts";
import { checkPayload, readEnvelope } from "../../parts/messages/envelope.ts";
import {
  type EventRange,
  endOfTime,
  type KeptEvent,
  type KeptEventStore,
  keptRows,
} from "../../parts/messages/kept-events.ts";
import { timeText } from "../../parts/messages/outbox-store.ts";
import type { Runtime } from "../runtime/runtime.ts";

interface Reading {
  readonly runtime: Pick<Runtime, "server" | "clock">;
  readonly tenantId: string | undefined;
  readonly signal: AbortSignal | undefined;
  readonly database: Database;
}

/** @throws the errors that `ctx.events` documents, and the signal's abort reason. */
export async function* tenantEvents(
  { runtime, tenantId, signal, database }: Reading,
  store: Lazy<KeptEventStore>,
  type: string,
  range: EventRange = {},
): AsyncGenerator<KeptEvent> {
  const declaration = runtime.server.registry.events.get(type);
  if (declaration?.keptDays === undefined) {
    throw new Error(
      `ctx.events: no feature of this server keeps the event ${String(type)}; declare it with r.event(type, schema, { keepDays })`,
    );
  }
  if (tenantId === undefined) {
    throw new Error(
      "ctx.events: the run has no tenant; read the events of a tenant in a run that belongs to it",
    );
  }
  const { sinceMs, untilMs, limit } = boundsOf(range);
  const reader = (await store.open()).through(database);
  let left = limit;
  if (left === 0) return;
  const rows = { from: timeText(sinceMs), untilMs, nowMs: runtime.clock.now(), signal };
  for await (const { text, atMs } of keptRows(reader, { tenantId, type }, rows)) {
    const event = readEnvelope(text);
    const refuse = (problems: string) =>
      new Error(
        `ctx.events: the payload of ${type} ${event.eventId} does not fit its schema any more (${problems})`,
      );
    yield {
      ...event,
      payload: await checkPayload(declaration.schema, event.payload, refuse),
      keptAt: new Date(atMs),
    };
    left -= 1;
    if (left === 0) return;
  }
}

const rangeOptions: readonly string[] = ["since", "until", "limit"] satisfies (keyof EventRange)[];

function boundsOf(range: EventRange) {
  assertKnownOptions("ctx.events", range, rangeOptions);
  const { since, until, limit = Number.POSITIVE_INFINITY } = range;
  if (limit !== Number.POSITIVE_INFINITY && !(Number.isInteger(limit) && limit >= 0)) {
    throw new TypeError(`ctx.events: \`limit\` is ${quoted(limit)}; pass a whole number`);
  }
  return { sinceMs: timeOf("since", since, 0), untilMs: timeOf("until", until, endOfTime), limit };
}

function timeOf(name: string, given: unknown, otherwise: number): number {
  if (given === undefined) return otherwise;
  const ms = given instanceof Date ? given.getTime() : Number.NaN;
  if (Number.isNaN(ms))
    throw new TypeError(`ctx.events: \`${name}\` is ${quoted(given)}; pass a valid Date`);
  return Math.min(Math.max(ms, 0), endOfTime);
}
