import type { SharedEvent } from "./envelope.ts";

/** A kept event, as `ctx.events` gives it. */
export interface KeptEvent<Payload = unknown> extends SharedEvent<Payload> {
  /** When it was published: events of a type are in this order, then in that of their IDs. */
  readonly keptAt: Date;
}

/** Which kept events are read. */
export interface EventRange {
  /** The first time, included. Default: that of the oldest event. */
  readonly since?: Date;
  /** The last time, excluded. Default: none. */
  readonly until?: Date;
  /** How many at the most. Default: all. */
  readonly limit?: number;
}
