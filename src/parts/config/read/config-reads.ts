import type { ConfigSource } from "./cascade.ts";
import type { RowOwner } from "./rows.ts";

export type ReadSource = ConfigSource | "request";

export interface ConfigReads {
  /** Records a read for `owner`; `version` belongs to the row that supplied the value, if any. */
  note(owner: RowOwner, id: string, source: ReadSource, version: number | undefined): void;
}

/** Member of a `ctx` that records that a request parameter replaced a configured value. */
export const parameterUsed: unique symbol = Symbol("keelson.parameterUsed");

/** Part of a `ctx` that records request parameters; the `ctx` of a test may lack it. */
export interface NotesParameters {
  [parameterUsed]?(id: string): void;
}
