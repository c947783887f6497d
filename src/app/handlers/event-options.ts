/** Retention of an event, in days or forever. */
export type EventOptions =
  | {
      /** Days for which keelson keeps each event. See `docs/kept-events.md`. */
      readonly keepDays: number;
      readonly keep?: never;
    }
  | {
      /** Keeps each event forever. */
      readonly keep: true;
      readonly keepDays?: never;
    };
