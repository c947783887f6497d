import type { SharedEvent } from "./envelope.ts";

/** Kept event, as returned by `ctx.events`. */
export interface KeptEvent<Payload = unknown> extends SharedEvent<Payload> {
  /** Time of publication. Events of a type are ordered by this time, then by ID. */
  readonly keptAt: Date;
}

/** Range of kept events to read. */
export interface EventRange {
  /** Start of the range, inclusive. Default: the time of the oldest event. */
  readonly since?: Date;
  /** End of the range, exclusive. Default: no end. */
  readonly until?: Date;
  /** Maximum number of events. Default: all. */
  readonly limit?: number;
}
