import type { ConfigSource } from "./cascade.ts";
import type { RowOwner } from "./rows.ts";

export type ReadSource = ConfigSource | "request";

export interface ConfigReads {
  /** `owner` is whose value was read, `version` that of the row that supplied it, if any. */
  note(owner: RowOwner, id: string, source: ReadSource, version: number | undefined): void;
}

/** Member of a `ctx` that records that a request parameter replaced a configured value. */
export const parameterUsed: unique symbol = Symbol("keelson.parameterUsed");

/** The `ctx` of a test may lack the member. */
export interface NotesParameters {
  [parameterUsed]?(id: string): void;
}
