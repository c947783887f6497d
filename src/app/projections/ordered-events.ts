import {
  behind,
  endOfTime,
  type KeptEventStore,
  type KeptRow,
  keptRows,
} from "../../parts/messages/kept-events.ts";
import { timeText } from "../../parts/messages/outbox-store.ts";

/**
 * Allowance for clock skew between processes, in milliseconds. Events published more than this
 * after the rebuild's start reach the new version without a replay.
 */
const marginMs = 60_000;

interface Replayed {
  readonly type: string;
  readonly row: KeptRow;
}

/** Yields a tenant's events of all types, sorted by time. */
export async function* inOrder(
  kept: KeptEventStore,
  tenantId: string | undefined,
  types: readonly string[],
  range: {
    readonly startedMs: number;
    readonly after: string;
    readonly nowMs: number;
    readonly signal: AbortSignal | undefined;
  },
): AsyncGenerator<Replayed> {
  const { startedMs, after, nowMs, signal } = range;
  const from = after === "" ? timeText(0) : behind(after);
  const untilMs = Math.min(startedMs + marginMs, endOfTime);
  const streams = types.map((type) => ({
    type,
    rows: keptRows(kept, { tenantId, type }, { from, untilMs, nowMs, signal }),
  }));
  const heads = new Map<(typeof streams)[number], KeptRow>();
  const advance = async (stream: (typeof streams)[number]) => {
    const next = await stream.rows.next();
    if (next.done === true) heads.delete(stream);
    else heads.set(stream, next.value);
  };
  for (const stream of streams) await advance(stream);
  while (heads.size > 0) {
    const [stream, row] = [...heads].reduce((one, other) =>
      other[1].sort < one[1].sort ? other : one,
    );
    yield { type: stream.type, row };
    await advance(stream);
  }
}
